package recipes_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes"
	zktest "github.com/paddock-zk/paddock/testing"
)

// swept are all ways to take a lock, over nodes below /l.
var swept = map[string]func(c *framework.Client) recipes.Lock{
	"mutex": func(c *framework.Client) recipes.Lock { return recipes.NewInterProcessMutex(c, "/l/m") },
	"look-ahead": func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessMutex(c, "/l/m", recipes.LookAhead())
	},
	"revocable": func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessMutex(c, "/l/m", recipes.Revocable())
	},
	"write": func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessReadWriteLock(c, "/l/rw").WriteSide()
	},
	"read": func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessReadWriteLock(c, "/l/rw").ReadSide()
	},
	"downgrade": func(c *framework.Client) recipes.Lock {
		return downgrade{recipes.NewInterProcessReadWriteLock(c, "/l/rw")}
	},
	"semaphore": func(c *framework.Client) recipes.Lock { return three{recipes.NewInterProcessSemaphore(c, "/l/s", 3)} },
	"semaphore mutex": func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessSemaphoreMutex(c, "/l/s")
	},
	"multi": func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessMultiLock(recipes.NewInterProcessMutex(c, "/l/a"), recipes.NewInterProcessMutex(c, "/l/b"),
			recipes.NewInterProcessSemaphoreMutex(c, "/l/s"))
	},
}

// three takes all leases of a semaphore at once.
type three struct {
	s *recipes.InterProcessSemaphore
}

func (l three) Acquire(ctx context.Context) (*recipes.Hold, error) { return l.s.AcquireN(ctx, 3) }

func (l three) TryAcquire(ctx context.Context, wait time.Duration) (*recipes.Hold, error) {
	return l.s.TryAcquireN(ctx, 3, wait)
}

// downgrade takes the write side, then the read side, and gives the write side back.
type downgrade struct {
	l *recipes.InterProcessReadWriteLock
}

func (l downgrade) Acquire(ctx context.Context) (*recipes.Hold, error) {
	w, err := l.l.WriteSide().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	r, err := l.l.ReadSide().Acquire(w.Context()) //nolint:contextcheck // the hold's context is ctx's child
	if released := w.Release(); err == nil && errors.Is(released, recipes.ErrLockLost) {
		_ = r.Release()
		return nil, released
	}
	return r, err
}

func (l downgrade) TryAcquire(ctx context.Context, _ time.Duration) (*recipes.Hold, error) {
	return l.Acquire(ctx)
}

// sweep does one thing at every moment of taking and giving back every lock,
// free and taken, and looks whether anything is left behind.
func sweep(t *testing.T, moments int, meddle func(t *testing.T, moment int, srv *zktest.Server, c *framework.Client) context.Context) {
	for name, lock := range swept {
		for _, taken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s taken=%v", name, taken), func(t *testing.T) {
				for moment := range moments {
					synctest.Test(t, func(t *testing.T) { sweepOnce(t, moment, taken, lock, meddle) })
					if t.Failed() {
						t.Fatalf("at moment %d", moment)
					}
				}
			})
		}
	}
}

func sweepOnce(t *testing.T, moment int, taken bool, lock func(*framework.Client) recipes.Lock,
	meddle func(*testing.T, int, *zktest.Server, *framework.Client) context.Context) {
	sweepCall(t, taken, lock, acquires, func(srv *zktest.Server, c *framework.Client) context.Context { return meddle(t, moment, srv, c) })
}

// callOfALock uses a lock, and returns what it has not given back.
type callOfALock func(ctx context.Context, lock recipes.Lock) (*recipes.Hold, error)

func acquires(ctx context.Context, lock recipes.Lock) (*recipes.Hold, error) {
	return lock.Acquire(ctx)
}

// sweepCall meddles with one call, and looks whether anything is left behind.
func sweepCall(t *testing.T, taken bool, lock func(*framework.Client) recipes.Lock, call callOfALock,
	meddle func(*zktest.Server, *framework.Client) context.Context) {
	srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
	c, other := connect(t, srv), connect(t, srv)
	require.NoError(t, c.EnsurePath(t.Context(), "/l"))
	if taken {
		h, err := lock(other).Acquire(t.Context())
		require.NoError(t, err)
		time.AfterFunc(20*time.Millisecond, func() { _ = h.Release() })
	}
	errStuck := errors.New("waited for nothing")
	ctx, cancel := context.WithTimeoutCause(meddle(srv, c), 5*time.Minute, errStuck)
	defer cancel()
	h, err := call(ctx, lock(c))
	require.NotErrorIs(t, err, errStuck)
	assert.True(t, (h == nil) != (err == nil), "a hold or an error, never both: %v, %v", h, err)
	if h != nil {
		_ = h.Release() // may go on in the background
	}
	time.Sleep(45 * time.Second) // more than a session, and the longest pause of a background job
	assert.Empty(t, srv.Ephemerals(0), "nodes left after %v", err)
	assert.Empty(t, srv.Watches(), "watches left after %v", err)
	next, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h, err = lock(other).Acquire(next)
	require.NoError(t, err, "the next acquire works")
	require.NoError(t, h.Release())
}

func TestCancelledAtAnyMoment(t *testing.T) {
	sweep(t, 52, func(t *testing.T, moment int, _ *zktest.Server, _ *framework.Client) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(moment)*time.Millisecond/2+1)
		t.Cleanup(cancel)
		return ctx
	})
}

func TestClosedAtAnyMoment(t *testing.T) {
	sweep(t, 52, func(t *testing.T, moment int, _ *zktest.Server, c *framework.Client) context.Context {
		time.AfterFunc(time.Duration(moment)*time.Millisecond/2, func() { _ = c.Close() })
		return t.Context()
	})
}

func TestDisconnectedAtAnyMoment(t *testing.T) {
	sweep(t, 52, func(t *testing.T, moment int, srv *zktest.Server, c *framework.Client) context.Context {
		id := c.SessionID()
		time.AfterFunc(time.Duration(moment)*time.Millisecond/2, func() { _ = srv.Disconnect(id) })
		return t.Context()
	})
}

func TestExpiredAtAnyMoment(t *testing.T) {
	sweep(t, 52, func(t *testing.T, moment int, srv *zktest.Server, c *framework.Client) context.Context {
		id := c.SessionID()
		time.AfterFunc(time.Duration(moment)*time.Millisecond/2, func() { _ = srv.ExpireSession(id) })
		return t.Context()
	})
}

// calls are the ways to use a lock that ask servers.
var calls = map[string]callOfALock{
	"acquire": acquires,
	"try": func(ctx context.Context, lock recipes.Lock) (*recipes.Hold, error) {
		return lock.TryAcquire(ctx, 0)
	},
	"try for a while": func(ctx context.Context, lock recipes.Lock) (*recipes.Hold, error) {
		return lock.TryAcquire(ctx, time.Minute)
	},
	"commit": func(ctx context.Context, lock recipes.Lock) (*recipes.Hold, error) {
		return committing(ctx, lock, (*recipes.Transaction).Commit)
	},
	"commit and release": func(ctx context.Context, lock recipes.Lock) (*recipes.Hold, error) {
		return committing(ctx, lock, (*recipes.Transaction).CommitAndRelease)
	},
	"participants": func(ctx context.Context, lock recipes.Lock) (*recipes.Hold, error) {
		h, err := lock.Acquire(ctx)
		if queue, ok := lock.(interface {
			Participants(context.Context) ([]recipes.Participant, error)
		}); ok && err == nil {
			_, _ = queue.Participants(ctx)
		}
		return h, err
	},
}

// committing writes under a hold. What becomes of the write is not looked at here.
func committing(ctx context.Context, lock recipes.Lock,
	commit func(*recipes.Transaction, context.Context, ...framework.CommitOption) ([]framework.Result, error)) (*recipes.Hold, error) {
	h, err := lock.Acquire(ctx)
	if err == nil {
		tx := h.Transaction()
		tx.Set("/l", []byte("x"), framework.AnyVersion)
		_, _ = commit(tx, ctx)
	}
	return h, err
}

// cause is something that happens at a request.
type cause func(c *framework.Client, srv *zktest.Server, cancel func()) zktest.Fault

func always(f zktest.Fault) cause {
	return func(*framework.Client, *zktest.Server, func()) zktest.Fault { return f }
}

// causes are all that can happen at a request: it is cut before or after it was
// applied, refused with each code that a client can see, or meanwhile the caller
// gives up, the client is closed or its session expires.
func causes() map[string]cause {
	all := map[string]cause{
		"cut before":        always(zktest.CutBefore()),
		"cut after":         always(zktest.CutAfter()),
		"part of the reply": always(zktest.CutReply(7)),
		"cancelled": func(_ *framework.Client, _ *zktest.Server, cancel func()) zktest.Fault {
			return zktest.Call(func(zktest.Request) { cancel() })
		},
		"closed": func(c *framework.Client, _ *zktest.Server, _ func()) zktest.Fault {
			return zktest.Call(func(zktest.Request) { go func() { _ = c.Close() }() })
		},
		"expired": func(c *framework.Client, srv *zktest.Server, _ func()) zktest.Fault {
			id := c.SessionID()
			return zktest.Call(func(zktest.Request) { _ = srv.ExpireSession(id) })
		},
	}
	for _, code := range []int32{-4, -5, -6, -7, -8, noNode, -102, -110, -112, -118, -119, -122, -127} {
		all[fmt.Sprint("code ", code)] = always(zktest.Fail(code))
	}
	return all
}

const noNode = -101

// tally counts what was tried: requests that were awaited, by lock and call.
type tally map[string]map[string]int

func (c tally) add(row, column string, n int) {
	if c[row] == nil {
		c[row] = make(map[string]int)
	}
	c[row][column] += n
}

func (c tally) log(t *testing.T, title string) {
	t.Helper()
	total := 0
	for _, row := range slices.Sorted(maps.Keys(c)) {
		line := fmt.Sprintf("sweep: %s: %-18s", title, row)
		for _, column := range slices.Sorted(maps.Keys(c[row])) {
			line += fmt.Sprintf("  %s %d", column, c[row][column])
			total += c[row][column]
		}
		t.Log(line)
	}
	t.Logf("sweep: %s: %d in all, 0 leaks", title, total)
}

// everySweep has TestEachRequestFails try every call, which takes a minute or two.
var everySweep = flag.Bool("sweeps", false, "sweep all calls of all locks, and not only Acquire")

// Everything that can happen at a request happens at each in turn, for every
// lock and every call, until there is none left.
func TestEachRequestFails(t *testing.T) {
	awaits, tried := make(tally), make(tally)
	for name, happens := range causes() {
		// Nothing can be done about a server that says of a node it has that it
		// has been deleted.
		counts := func(r zktest.Request) bool {
			return r.Op != "ping" && r.Op != "connect" && (name != fmt.Sprint("code ", noNode) || r.Op != "delete" && r.Op != "multi")
		}
		t.Run(name, func(t *testing.T) {
			for kind, lock := range swept {
				for usage, call := range calls {
					for _, taken := range []bool{false, true} {
						if usage != "acquire" && (taken || !*everySweep) {
							continue // who waits, waits in the same way
						}
						sub := fmt.Sprintf("%s taken=%v", kind, taken)
						if usage != "acquire" {
							sub = kind + " " + usage
						}
						t.Run(sub, func(t *testing.T) {
							n := sweepRequests(t, taken, lock, call, counts, happens)
							tried.add(name, kind, n)
							if name == "cut before" {
								awaits.add(kind, fmt.Sprintf("%s%s", usage, map[bool]string{true: " (taken)"}[taken]), n)
							}
						})
					}
				}
			}
		})
	}
	awaits.log(t, "awaits")
	tried.log(t, "failed")
}

// sweepRequests returns how many requests there were.
func sweepRequests(t *testing.T, taken bool, lock func(*framework.Client) recipes.Lock, call callOfALock, counts func(zktest.Request) bool, happens cause) int {
	t.Helper()
	for nth := 1; ; nth++ {
		hit := false
		synctest.Test(t, func(t *testing.T) {
			var rule *zktest.Rule
			sweepCall(t, taken, lock, call, func(srv *zktest.Server, c *framework.Client) context.Context {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				t.Cleanup(cancel)
				rule = srv.On(zktest.Match{Session: c.SessionID(), Nth: nth, Func: counts}, happens(c, srv, cancel))
				return ctx
			})
			hit = rule.Fired() > 0
		})
		if t.Failed() {
			t.Fatalf("at request %d", nth)
		}
		if !hit {
			return nth - 1
		}
		require.Less(t, nth, 60)
	}
}
