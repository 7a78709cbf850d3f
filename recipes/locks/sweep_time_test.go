package locks_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// swept are all ways to take a lock, over nodes below /l.
var swept = map[string]func(c *framework.Client) locks.Lock{
	"mutex": func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/l/m") },
	"look-ahead": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMutex(c, "/l/m", locks.LookAhead())
	},
	"revocable": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMutex(c, "/l/m", locks.Revocable())
	},
	"write": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, "/l/rw").WriteLock()
	},
	"read": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, "/l/rw").ReadLock()
	},
	"downgrade": func(c *framework.Client) locks.Lock {
		return downgrade{locks.NewInterProcessReadWriteLock(c, "/l/rw")}
	},
	"semaphore": func(c *framework.Client) locks.Lock {
		return leases{locks.NewInterProcessSemaphore(c, "/l/s", 3), 3}
	},
	"semaphore mutex": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessSemaphoreMutex(c, "/l/s")
	},
	"multi": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l/a"), locks.NewInterProcessMutex(c, "/l/b"),
			locks.NewInterProcessSemaphoreMutex(c, "/l/s"))
	},
}

// leases takes several leases of a semaphore at once.
type leases struct {
	s *locks.InterProcessSemaphore
	n int
}

func (l leases) Acquire(ctx context.Context) (*locks.Hold, error) { return l.s.AcquireN(ctx, l.n) }

func (l leases) TryAcquire(ctx context.Context, wait time.Duration) (*locks.Hold, error) {
	return l.s.TryAcquireN(ctx, l.n, wait)
}

// downgrade takes the write side, then the read side, and gives the write side back.
type downgrade struct {
	l *locks.InterProcessReadWriteLock
}

func (l downgrade) Acquire(ctx context.Context) (r *locks.Hold, err error) {
	w, err := l.l.WriteLock().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if released := w.Release(); r != nil && errors.Is(released, locks.ErrLockLost) {
			_ = r.Release()
			r, err = nil, released
		}
	}()
	return l.l.ReadLock().Acquire(w.Context()) //nolint:contextcheck // the hold's context is ctx's child
}

func (l downgrade) TryAcquire(ctx context.Context, _ time.Duration) (*locks.Hold, error) {
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

func sweepOnce(t *testing.T, moment int, taken bool, lock func(*framework.Client) locks.Lock,
	meddle func(*testing.T, int, *zktest.Server, *framework.Client) context.Context) {
	sweepCall(t, taken, lock, acquires, func(srv *zktest.Server, c *framework.Client) context.Context { return meddle(t, moment, srv, c) })
}

// callOfALock uses a lock, and returns what it has not given back.
type callOfALock func(ctx context.Context, lock locks.Lock) (*locks.Hold, error)

func acquires(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
	return lock.Acquire(ctx)
}

// sweepCall meddles with one call, and looks whether anything is left behind.
func sweepCall(t *testing.T, taken bool, lock func(*framework.Client) locks.Lock, call callOfALock,
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
	if ctx.Err() != nil {
		require.NotEqual(t, errStuck, context.Cause(ctx))
	}
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
	t.Parallel()
	sweep(t, 52, func(t *testing.T, moment int, _ *zktest.Server, _ *framework.Client) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(moment)*time.Millisecond/2+1)
		t.Cleanup(cancel)
		return ctx
	})
}

func TestClosedAtAnyMoment(t *testing.T) {
	t.Parallel()
	sweep(t, 52, func(t *testing.T, moment int, _ *zktest.Server, c *framework.Client) context.Context {
		time.AfterFunc(time.Duration(moment)*time.Millisecond/2, func() { _ = c.Close() })
		return t.Context()
	})
}

func TestDisconnectedAtAnyMoment(t *testing.T) {
	t.Parallel()
	sweep(t, 52, func(t *testing.T, moment int, srv *zktest.Server, c *framework.Client) context.Context {
		id := c.SessionID()
		time.AfterFunc(time.Duration(moment)*time.Millisecond/2, func() { _ = srv.Disconnect(id) })
		return t.Context()
	})
}

func TestExpiredAtAnyMoment(t *testing.T) {
	t.Parallel()
	sweep(t, 52, func(t *testing.T, moment int, srv *zktest.Server, c *framework.Client) context.Context {
		id := c.SessionID()
		time.AfterFunc(time.Duration(moment)*time.Millisecond/2, func() { _ = srv.ExpireSession(id) })
		return t.Context()
	})
}

// calls are the ways to use a lock that ask servers.
var calls = map[string]callOfALock{
	"acquire": acquires,
	"try": func(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
		return lock.TryAcquire(ctx, 0)
	},
	"try for a while": func(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
		return lock.TryAcquire(ctx, time.Minute)
	},
	"commit": func(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
		return committing(ctx, lock, (*locks.Transaction).Commit)
	},
	"commit and release": func(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
		return committing(ctx, lock, (*locks.Transaction).CommitAndRelease)
	},
	"participants": func(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
		h, err := lock.Acquire(ctx)
		if queue, ok := lock.(interface {
			Participants(context.Context) ([]locks.Participant, error)
		}); ok && err == nil {
			_, _ = queue.Participants(ctx)
		}
		return h, err
	},
}

// committing writes under a hold. What becomes of the write is not looked at here.
func committing(ctx context.Context, lock locks.Lock,
	commit func(*locks.Transaction, context.Context, ...framework.CommitOption) ([]framework.Result, error)) (*locks.Hold, error) {
	h, err := lock.Acquire(ctx)
	if err == nil {
		tx := h.Transaction()
		tx.Set("/l", []byte("x"), framework.AnyVersion)
		_, _ = commit(tx, ctx)
	}
	return h, err
}

// cause is something that happens at a request.
type cause func(t *testing.T, c *framework.Client, srv *zktest.Server, cancel func()) zktest.Fault

func always(f zktest.Fault) cause {
	return func(*testing.T, *framework.Client, *zktest.Server, func()) zktest.Fault { return f }
}

// causes are all that can happen at a request: it is cut before or after it was
// applied, refused with each code that a client can see, or meanwhile the caller
// gives up, the client is closed, its session expires or an operator deletes its
// nodes.
func causes() map[string]cause {
	all := map[string]cause{
		"cut before":        always(zktest.CutBefore()),
		"cut after":         always(zktest.CutAfter()),
		"part of the reply": always(zktest.CutReply(7)),
		"cancelled": func(_ *testing.T, _ *framework.Client, _ *zktest.Server, cancel func()) zktest.Fault {
			return zktest.Call(func(zktest.Request) { cancel() })
		},
		"closed": func(_ *testing.T, c *framework.Client, _ *zktest.Server, _ func()) zktest.Fault {
			return zktest.Call(func(zktest.Request) { go func() { _ = c.Close() }() })
		},
		"expired": func(_ *testing.T, c *framework.Client, srv *zktest.Server, _ func()) zktest.Fault {
			id := c.SessionID()
			return zktest.Call(func(zktest.Request) { _ = srv.ExpireSession(id) })
		},
		"nodes deleted": func(t *testing.T, c *framework.Client, srv *zktest.Server, _ func()) zktest.Fault {
			id, operator := c.SessionID(), connect(t, srv)
			return zktest.Call(func(zktest.Request) {
				for _, node := range srv.Ephemerals(id) {
					_ = operator.Delete(context.Background(), node, framework.AnyVersion)
				}
			})
		},
	}
	for _, code := range []int32{-4, -5, -6, -7, -8, noNode, -102, -110, -112, -118, -119, -122, -127} {
		all[fmt.Sprint("code ", code)] = always(zktest.Fail(code))
	}
	return all
}

const noNode = -101

// countedAt is at which requests something can happen. Nothing can be done about
// a server that says of a node it has that it has been deleted.
func countedAt(cause string) func(zktest.Request) bool {
	return func(r zktest.Request) bool {
		return r.Op != "ping" && r.Op != "connect" && (cause != fmt.Sprint("code ", noNode) || r.Op != "delete" && r.Op != "multi")
	}
}

// table prints what was tried, a line for each row; a leak would have failed the test.
func table(t *testing.T, title string, tried map[[2]string]int) {
	t.Helper()
	total, last := 0, ""
	for _, key := range slices.SortedFunc(maps.Keys(tried), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		if key[0] != last {
			_, _ = fmt.Fprintf(t.Output(), "\nsweep: %s: %-18s", title, key[0])
		}
		_, _ = fmt.Fprintf(t.Output(), "  %s %d", key[1], tried[key])
		total, last = total+tried[key], key[0]
	}
	_, _ = fmt.Fprintf(t.Output(), "\nsweep: %s: %d in all, 0 leaks\n", title, total)
}

// everySweep has sweeps try every cause at every call, which takes minutes.
var everySweep = flag.Bool("sweeps", false, "sweep all calls of all locks for all causes, and not only what is picked")

// picked is what is swept each time: Acquire for all causes, save that most codes
// are tried on two locks only; and asking.
func picked(cause, kind, usage string) bool {
	switch usage {
	case "acquire":
		return !strings.HasPrefix(cause, "code") || slices.Contains([]string{"code -101", "code -102", "code -112"}, cause) ||
			kind == "mutex" || kind == "multi"
	case "try":
		return cause == "cut before" || cause == "code -102"
	}
	return false
}

// Everything that can happen at a request happens at each in turn, for every
// lock and every call, until there is none left.
func TestEachRequestFails(t *testing.T) {
	t.Parallel()
	awaits, tried := make(map[[2]string]int), make(map[[2]string]int)
	for name, happens := range causes() {
		tries := countedAt(name)
		t.Run(name, func(t *testing.T) {
			for kind, lock := range swept {
				for usage, call := range calls {
					for _, taken := range []bool{false, true} {
						if usage != "acquire" && taken {
							continue // who waits, waits in the same way
						}
						if !*everySweep && !picked(name, kind, usage) {
							continue
						}
						sub := fmt.Sprintf("%s taken=%v", kind, taken)
						if usage != "acquire" {
							sub = kind + " " + usage
						}
						t.Run(sub, func(t *testing.T) {
							n := sweepRequests(t, taken, lock, call, tries, happens)
							tried[[2]string{name, kind}] += n
							if name == "cut before" {
								awaits[[2]string{kind, fmt.Sprintf("%s%s", usage, map[bool]string{true: " (taken)"}[taken])}] += n
							}
						})
					}
				}
			}
		})
	}
	table(t, "locks, awaits", awaits)
	table(t, "locks, failed", tried)
}

// sweepRequests returns how many requests there were.
func sweepRequests(t *testing.T, taken bool, lock func(*framework.Client) locks.Lock, call callOfALock, tries func(zktest.Request) bool, happens cause) int {
	t.Helper()
	for nth := 1; ; nth++ {
		hit := false
		synctest.Test(t, func(t *testing.T) {
			var rule *zktest.Rule
			sweepCall(t, taken, lock, call, func(srv *zktest.Server, c *framework.Client) context.Context {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				t.Cleanup(cancel)
				rule = srv.On(zktest.Match{Session: c.SessionID(), Nth: nth, Func: tries}, happens(t, c, srv, cancel))
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

// Everything that can happen at a request happens at each in turn to who waits
// for an owner that takes the same locks one after another, and gives way to it.
func TestEachRequestFailsWhileYielding(t *testing.T) {
	t.Parallel()
	semaphore := func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/l/s") }
	mutex := func(path string) func(*framework.Client) locks.Lock {
		return func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, path) }
	}
	kinds := map[string]yieldState{
		"mutexes": {
			lock: func(c *framework.Client) locks.Lock {
				return locks.NewInterProcessMultiLock(mutex("/l/a")(c), mutex("/l/b")(c))
			},
			first: mutex("/l/b"), then: mutex("/l/a"),
		},
		"mutex and semaphore mutex": {
			lock: func(c *framework.Client) locks.Lock {
				return locks.NewInterProcessMultiLock(semaphore(c), mutex("/l/b")(c))
			},
			first: mutex("/l/b"), then: semaphore,
		},
		"leases": {
			lock: func(c *framework.Client) locks.Lock {
				return leases{locks.NewInterProcessSemaphore(c, "/l/s", 2), 2}
			},
			first: func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/l/s", 2) },
			then:  func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/l/s", 2) },
		},
	}
	awaits, tried := make(map[[2]string]int), make(map[[2]string]int)
	for name, happens := range causes() {
		if !*everySweep && !slices.Contains([]string{"cut after", "code -102", "nodes deleted"}, name) {
			continue
		}
		tries := countedAt(name)
		t.Run(name, func(t *testing.T) {
			for kind, y := range kinds {
				n := 0
				for hit := true; hit; n++ {
					synctest.Test(t, func(t *testing.T) { hit = sweepYielding(t, y, n+1, tries, happens) })
					require.False(t, t.Failed(), "%s, at request %d", kind, n+1)
					require.Less(t, n, 90)
				}
				tried[[2]string{name, kind}] += n - 1
				if name == "cut before" {
					awaits[[2]string{"yielding", kind}] += n - 1
				}
			}
		})
	}
	table(t, "who yields, awaits", awaits)
	table(t, "who yields, failed", tried)
}

// yieldState is a lock, and in which order somebody else takes what it is made of.
type yieldState struct {
	lock, first, then func(*framework.Client) locks.Lock
}

// sweepYielding is whether something happened at the request.
func sweepYielding(t *testing.T, y yieldState, nth int, tries func(zktest.Request) bool, happens cause) bool {
	t.Helper()
	srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
	c, other := connect(t, srv), connect(t, srv)
	require.NoError(t, c.EnsurePath(t.Context(), "/l"))
	first, err := y.first(other).Acquire(t.Context())
	require.NoError(t, err)
	nested := make(chan error, 1)
	time.AfterFunc(20*time.Millisecond, func() {
		ctx, cancel := context.WithTimeout(first.Context(), 2*time.Minute)
		defer cancel()
		then, err := y.then(other).Acquire(ctx)
		if err == nil {
			err = then.Release()
		}
		_ = first.Release()
		nested <- err
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	rule := srv.On(zktest.Match{Session: c.SessionID(), Nth: nth, Func: tries}, happens(t, c, srv, cancel))
	h, err := y.lock(c).Acquire(ctx)
	assert.True(t, (h == nil) != (err == nil), "a hold or an error, never both: %v, %v", h, err)
	if h != nil {
		_ = h.Release()
	}
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, <-nested, "who nests gets both")
	time.Sleep(45 * time.Second)
	assert.Empty(t, srv.Ephemerals(0), "nodes left after %v", err)
	assert.Empty(t, srv.Watches(), "watches left after %v", err)
	h, err = y.lock(other).TryAcquire(t.Context(), time.Minute)
	require.NoError(t, err, "the next acquire works")
	require.NoError(t, h.Release())
	return rule.Fired() > 0
}
