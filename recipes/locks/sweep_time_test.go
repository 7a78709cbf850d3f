package locks_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// sweep does one thing at every moment of taking and giving back every lock,
// free and taken, and looks whether anything is left behind.
func sweep(t *testing.T, moments int, meddle func(t *testing.T, moment int, srv *zktest.Server, c *framework.Client) context.Context) {
	for name, lock := range kit.Locks {
		for _, taken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s taken=%v", name, taken), func(t *testing.T) {
				for moment := range kit.Moments(t, moments, *everySweep) {
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
	c, other := kit.Connect(t, srv, kit.SmallBuffers), kit.Connect(t, srv, kit.SmallBuffers)
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
	kit.NothingLeft(t, srv, "after %v", err)
	next, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h, err = lock(other).Acquire(next)
	require.NoError(t, err, "the next acquire works")
	require.NoError(t, h.Release())
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

// everySweep has sweeps try every failure at every call, and every moment, and other tests
// all of their cases, which takes minutes.
var everySweep = flag.Bool("sweeps", false, "sweep all calls of all locks for all failures and at all moments, and not only what is picked")

// picked is what is tried each time: Acquire of a mutex, a semaphore and a MultiLock for
// three failures, and a third or a sixth of what else can fail, shared out by its name.
func picked(failure, kind, usage string) bool {
	name := fnv.New32a()
	_, _ = name.Write([]byte(failure + kind + usage))
	third, sixth := name.Sum32()%3 == 0, name.Sum32()%6 == 0
	switch usage {
	case "acquire":
		core := kind == "mutex" || kind == "semaphore" || kind == "multi"
		switch failure {
		case "cut after", "cancelled", "code -102":
			return core || sixth
		}
		return core && third || sixth && !strings.HasPrefix(failure, "code")
	case "try":
		return third && (failure == "cut before" || failure == "code -102")
	}
	return false
}

func TestClosedAtAnyMoment(t *testing.T) {
	t.Parallel()
	sweep(t, 52, func(t *testing.T, moment int, _ *zktest.Server, c *framework.Client) context.Context {
		after(moment, func() { _ = c.Close() })
		return t.Context()
	})
}

func TestDisconnectedAtAnyMoment(t *testing.T) {
	t.Parallel()
	sweep(t, 52, func(t *testing.T, moment int, srv *zktest.Server, c *framework.Client) context.Context {
		id := c.SessionID()
		after(moment, func() { _ = srv.Disconnect(id) })
		return t.Context()
	})
}

func TestExpiredAtAnyMoment(t *testing.T) {
	t.Parallel()
	sweep(t, 52, func(t *testing.T, moment int, srv *zktest.Server, c *framework.Client) context.Context {
		id := c.SessionID()
		after(moment, func() { _ = srv.ExpireSession(id) })
		return t.Context()
	})
}

// Everything that can happen at a request happens at each in turn, for every
// lock and every call, until there is none left.
func TestEachRequestFails(t *testing.T) {
	t.Parallel()
	awaits, tried := make(map[[2]string]int), make(map[[2]string]int)
	for name, happens := range kit.Failures() {
		tries := kit.At(name)
		t.Run(name, func(t *testing.T) {
			for kind, lock := range kit.Locks {
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
	kit.Tried(t, "locks, awaits", awaits)
	kit.Tried(t, "locks, failed", tried)
}

// sweepRequests returns at how many requests something happened.
func sweepRequests(t *testing.T, taken bool, lock func(*framework.Client) locks.Lock, call callOfALock, tries func(zktest.Request) bool, happens kit.Failure) int {
	t.Helper()
	n := 0
	for nth := range kit.Requests(t, 60, *everySweep) {
		hit := false
		synctest.Test(t, func(t *testing.T) {
			var rule *zktest.Rule
			sweepCall(t, taken, lock, call, func(srv *zktest.Server, c *framework.Client) context.Context {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				t.Cleanup(cancel)
				rule = srv.On(zktest.Match{Session: c.SessionID(), Nth: nth, Func: tries}, happens(t, srv, c, cancel))
				return ctx
			})
			hit = rule.Fired() > 0
		})
		if t.Failed() {
			t.Fatalf("at request %d", nth)
		}
		if !hit {
			return n
		}
		n++
	}
	require.Fail(t, "a call makes 60 requests")
	return 0
}

// An owner takes the same locks one after another, and a MultiLock gives way to it.
// Everything that can happen at a request of the MultiLock happens at each in turn.
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
				return kit.Leases(locks.NewInterProcessSemaphore(c, "/l/s", 2), 2)
			},
			first: func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/l/s", 2) },
			then:  func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/l/s", 2) },
		},
	}
	awaits, tried := make(map[[2]string]int), make(map[[2]string]int)
	for name, happens := range kit.Failures() {
		if !*everySweep && !slices.Contains([]string{"cut after", "code -102", "nodes deleted"}, name) {
			continue
		}
		tries := kit.At(name)
		t.Run(name, func(t *testing.T) {
			for kind, y := range kinds {
				n, hit := 0, true
				for nth := range kit.Requests(t, 90, *everySweep) {
					synctest.Test(t, func(t *testing.T) { hit = sweepYielding(t, y, nth, tries, happens) })
					require.False(t, t.Failed(), "%s, at request %d", kind, nth)
					if !hit {
						break
					}
					n++
				}
				require.False(t, hit, "90 requests")
				tried[[2]string{name, kind}] += n
				if name == "cut before" {
					awaits[[2]string{"yielding", kind}] += n
				}
			}
		})
	}
	kit.Tried(t, "who yields, awaits", awaits)
	kit.Tried(t, "who yields, failed", tried)
}

// yieldState is a lock, and in which order another owner takes its members.
type yieldState struct {
	lock, first, then func(*framework.Client) locks.Lock
}

// sweepYielding is whether something happened at the request.
func sweepYielding(t *testing.T, y yieldState, nth int, tries func(zktest.Request) bool, happens kit.Failure) bool {
	t.Helper()
	srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
	c, other := kit.Connect(t, srv, kit.SmallBuffers), kit.Connect(t, srv, kit.SmallBuffers)
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
	rule := srv.On(zktest.Match{Session: c.SessionID(), Nth: nth, Func: tries}, happens(t, srv, c, cancel))
	h, err := y.lock(c).Acquire(ctx)
	assert.True(t, (h == nil) != (err == nil), "a hold or an error, never both: %v, %v", h, err)
	if h != nil {
		_ = h.Release()
	}
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, <-nested, "who nests gets both")
	time.Sleep(45 * time.Second)
	kit.NothingLeft(t, srv, "after %v", err)
	h, err = y.lock(other).TryAcquire(t.Context(), time.Minute)
	require.NoError(t, err, "the next acquire works")
	require.NoError(t, h.Release())
	return rule.Fired() > 0
}

// A waiter queues again if others delete the lock, with its parent and with all
// nodes in it.
func TestQueueDeletedAtAnyMoment(t *testing.T) {
	t.Parallel()
	for _, inOne := range []bool{true, false} {
		destroy := kit.Raze
		if !inOne {
			destroy = func(ctx context.Context, c *framework.Client, path string) error {
				return c.Delete(ctx, path, framework.AnyVersion, framework.Recursive())
			}
		}
		t.Run(fmt.Sprintf("in one transaction=%v", inOne), func(t *testing.T) {
			for name, lock := range kit.Locks {
				for _, taken := range []bool{false, true} {
					if !*everySweep && taken != inOne {
						continue
					}
					t.Run(fmt.Sprintf("%s taken=%v", name, taken), func(t *testing.T) {
						for moment := range kit.Moments(t, 52, *everySweep) {
							synctest.Test(t, func(t *testing.T) {
								sweepCall(t, taken, lock, func(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
									h, err := lock.Acquire(ctx)
									if !errors.Is(err, locks.ErrLockLost) { // as the downgrade of a write side that was deleted
										require.NoError(t, err)
									}
									return h, err
								}, func(srv *zktest.Server, _ *framework.Client) context.Context {
									operator := kit.Connect(t, srv, kit.SmallBuffers)
									after(moment, func() { _ = destroy(context.Background(), operator, "/l") })
									return t.Context()
								})
							})
							if t.Failed() {
								t.Fatalf("at moment %d", moment)
							}
						}
					})
				}
			}
		})
	}
}
