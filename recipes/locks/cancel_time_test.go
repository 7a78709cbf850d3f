package locks_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A waiter that gives up leaves no watch on the server, however long the lock is held.
func TestGivingUpLeavesNoWatch(t *testing.T) {
	for name, lock := range swept {
		if name == "downgrade" { // no one lock, whose wait has a limit
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				h, err := lock(other).Acquire(t.Context())
				require.NoError(t, err)
				time.Sleep(time.Second)
				before := srv.Watches()
				for range 20 {
					got, err := lock(c).TryAcquire(t.Context(), 100*time.Millisecond)
					if err == nil { // readers
						require.NoError(t, got.Release())
					}
				}
				synctest.Wait()
				assert.Equal(t, before, srv.Watches())
				require.NoError(t, h.Release())
			})
		})
	}
}

// The wait ends at the instant at which the lock is granted, or just beside it. The
// result is either a hold or an error, and nothing is left of the other.
func TestWaitEndsAsTheLockIsGranted(t *testing.T) {
	const heldFor, latency = 100 * time.Millisecond, time.Millisecond
	// From the release: it reaches the server, the event the waiter, whose look
	// goes there and comes back.
	const granted = heldFor + 4*latency
	offs := []time.Duration{-2 * latency, -latency, -1, 1, latency}
	for range 30 { // which of the two comes first is left to chance
		offs = append(offs, 0)
	}
	eachLock(t, func(t *testing.T, lock func(*framework.Client) locks.Lock) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(latency))
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		granteds := 0
		for i, off := range offs {
			h, err := lock(other).Acquire(t.Context())
			require.NoError(t, err)
			time.AfterFunc(heldFor, func() { _ = h.Release() })
			var got *locks.Hold
			if i%2 == 0 {
				ctx, cancel := context.WithTimeout(t.Context(), granted+off)
				got, err = lock(c).Acquire(ctx)
				cancel()
			} else {
				got, err = lock(c).TryAcquire(t.Context(), granted+off)
			}
			require.True(t, (got == nil) != (err == nil), "%v, %v", got, err)
			if got != nil {
				granteds++
				_ = got.Release()
			}
			time.Sleep(time.Second)
			require.Empty(t, srv.Ephemerals(0))
			require.Empty(t, srv.Watches())
		}
		t.Logf("granted %d of %d", granteds, len(offs))
	})
}

// tripwire is a clock that does something at the n-th look at it.
type tripwire struct {
	left atomic.Int64
	trip func()
}

func (w *tripwire) look() {
	if w.left.Add(-1) == 0 {
		w.trip()
	}
}

func (w *tripwire) Now() time.Time {
	w.look()
	return time.Now()
}

func (w *tripwire) Since(t time.Time) time.Duration { return w.Now().Sub(t) }

// The clock is looked at where a grant is decided, so this cancels just there.
func TestCancelledAtEachLookAtTheClock(t *testing.T) {
	for name, lock := range swept {
		t.Run(name, func(t *testing.T) {
			w := new(tripwire)
			onItsClock := func(cfg *framework.Config) { *cfg = cfg.WithSeams(session.Key{}, session.Seams{Clock: w}) }
			cancelledAtEachLook(t, lock, w, onItsClock, func(ctx context.Context) context.Context { return ctx })
		})
	}
}

// watched is a context that counts who looks whether it has ended.
type watched struct {
	context.Context
	wire *tripwire
}

func (c watched) Err() error {
	c.wire.look()
	return c.Context.Err()
}

// The context ends just when the library looks at it.
func TestCancelledAtEachLookAtTheContext(t *testing.T) {
	for name, lock := range swept {
		t.Run(name, func(t *testing.T) {
			w := new(tripwire)
			cancelledAtEachLook(t, lock, w, func(*framework.Config) {}, func(ctx context.Context) context.Context { return watched{ctx, w} })
		})
	}
}

func cancelledAtEachLook(t *testing.T, lock func(*framework.Client) locks.Lock, w *tripwire, change func(*framework.Config), of func(context.Context) context.Context) {
	t.Helper()
	granted, refused := 0, 0
	for n := int64(1); granted < 3 && !t.Failed(); n++ { // the last ones were cancelled too late
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
			c := kit.Connect(t, srv, change)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w.trip = cancel
			w.left.Store(n)
			h, err := lock(c).Acquire(of(ctx))
			w.left.Store(0)
			require.True(t, (h == nil) != (err == nil), "%v, %v", h, err)
			if h != nil {
				granted++
				require.NoError(t, h.Release())
			} else {
				refused++
				require.ErrorIs(t, err, context.Canceled)
			}
			time.Sleep(45 * time.Second)
			require.Empty(t, srv.Ephemerals(0), "at look %d", n)
			require.Empty(t, srv.Watches())
		})
	}
	assert.NotZero(t, refused)
}

// queued are the locks of which each has its own way through a queue.
var queued = map[string]func(c *framework.Client) locks.Lock{
	"mutex":           swept["mutex"],
	"read":            swept["read"],
	"semaphore mutex": swept["semaphore mutex"],
	"multi":           swept["multi"],
}

// A server that goes on refusing for a while is asked again, with pauses, and
// not without end: the caller's context ends also those.
func TestPausesEndWithTheContext(t *testing.T) {
	const lost, busy = -4, -7
	for name, lock := range swept {
		for _, op := range []string{"", "getChildren", "getChildren2", "create2", "multi"} {
			t.Run(name+" "+op, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory())
					c := kit.Connect(t, srv)
					require.NoError(t, c.EnsurePath(t.Context(), "/l"))
					rules := []*zktest.Rule{}
					for _, code := range []int32{lost, busy} {
						rules = append(rules, srv.On(zktest.Match{Session: c.SessionID(), Op: op, Func: func(r zktest.Request) bool {
							return r.Op != "ping" && r.Op != "connect" && (op != "" || r.Op != "delete")
						}}, zktest.Fail(code)))
					}
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					began := time.Now()
					if h, err := lock(c).Acquire(ctx); err == nil { // it needs no such request
						require.NoError(t, h.Release())
					} else {
						require.ErrorIs(t, err, context.DeadlineExceeded)
						assert.Equal(t, 20*time.Second, time.Since(began))
					}
					asked := 0
					for _, rule := range rules {
						asked += rule.Fired()
						rule.Remove()
					}
					assert.Less(t, asked, 250, "with pauses")
					h, err := lock(c).TryAcquire(t.Context(), time.Minute)
					require.NoError(t, err)
					require.NoError(t, h.Release())
				})
			})
		}
	}
}

// Somebody comes between the look at the queue and the contender in it: who does not
// want to wait gives the contender back.
func TestTryAcquireIsOvertaken(t *testing.T) {
	for name, lock := range queued {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				require.NoError(t, c.EnsurePath(t.Context(), "/l"))
				h, err := lock(other).Acquire(t.Context()) // its parents are there from now on
				require.NoError(t, err)
				require.NoError(t, h.Release())
				writes := func(r zktest.Request) bool { return r.Op == "create2" || r.Op == "create" || r.Op == "multi" }
				late := srv.On(zktest.Match{Session: c.SessionID(), Nth: 1, Func: writes}, zktest.Delay(time.Second))
				before := make(chan *locks.Hold, 1)
				time.AfterFunc(500*time.Millisecond, func() {
					theirs := lock(other)
					if name == "read" {
						theirs = swept["write"](other)
					}
					h, err := theirs.Acquire(t.Context())
					assert.NoError(t, err)
					before <- h
				})
				_, err = lock(c).TryAcquire(t.Context(), 0)
				require.ErrorIs(t, err, locks.ErrNotAcquired)
				assert.Equal(t, 1, late.Fired())
				time.Sleep(time.Minute)
				assert.Empty(t, srv.Ephemerals(c.SessionID()))
				require.NoError(t, (<-before).Release())
				h, err = lock(c).TryAcquire(t.Context(), 0)
				require.NoError(t, err)
				require.NoError(t, h.Release())
			})
		})
	}
}

// A client that is closed is not one that is not connected: nothing can be had of it
// later.
func TestTryAcquireOfAClosedClient(t *testing.T) {
	for name, lock := range swept {
		for _, wait := range []time.Duration{-1, 0, 1, time.Second} {
			t.Run(fmt.Sprint(name, " ", wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
					require.NoError(t, c.Close())
					h, err := lock(c).TryAcquire(t.Context(), wait)
					require.ErrorIs(t, err, framework.ErrClosed)
					require.NotErrorIs(t, err, framework.ErrNotConnected)
					assert.False(t, framework.Retryable(err))
					assert.Nil(t, h)
				})
			})
		}
	}
}

// A context can end for any reason: an errgroup's ends with the first error of
// the group, and a hold's says how it was lost. No call may take the reason for
// what a server has said, nor tell it to its caller as that.
func TestEndOfAContextIsNoAnswer(t *testing.T) {
	t.Parallel()
	tried, missing, wrong := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(endables)) {
		e := endables[name]
		for _, when := range []string{"before", "in flight", "not connected"} {
			t.Run(name+", "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					for cause, err := range e.endFor(t, when) {
						tried++
						if !assert.Error(t, err, "cause %s", cause) {
							missing++
							continue
						}
						assert.ErrorIs(t, err, context.Canceled)
						for target, one := range meant {
							if errors.Is(err, one) && !e.mayMatch(when, one) {
								wrong++
								assert.Fail(t, "wrong match", "cause %s: %v matches %s", cause, err, target)
							}
						}
						for _, typ := range []any{new(*carrier), new(*locks.LostError), new(*framework.TransactionError), new(*framework.ConfigError)} {
							if errors.As(err, typ) {
								wrong++
								assert.Fail(t, "wrong type", "cause %s: %v is a %T", cause, err, typ)
							}
						}
						assert.ErrorContains(t, err, "(cause: "+meant[cause].Error()+")")
					}
				})
			})
		}
	}
	t.Logf("%d calls, %d causes, before, in flight and not connected: %d ends; %d without an error, %d wrong matches",
		len(endables), len(meant), tried, missing, wrong)
}
