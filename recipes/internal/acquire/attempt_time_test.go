package acquire_test

import (
	"context"
	"errors"
	"sync"
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

// d is what a message takes each way: a round trip is 2d, exactly.
const d = kit.Latency

// standsOn is whether a hold's node is there, of the session given.
func standsOn(t *testing.T, admin *framework.Client, h *locks.Hold, owner int64) {
	t.Helper()
	members := h.Members()
	if members == nil {
		members = []*locks.Hold{h}
	}
	for _, m := range members {
		there, stat, err := admin.Exists(t.Context(), m.Path())
		require.NoError(t, err)
		if assert.True(t, there, "%s is gone", m.Path()) {
			assert.Equal(t, owner, stat.EphemeralOwner)
		}
	}
}

// queues are locks whose nodes stand in one queue or more, and where.
var queues = map[string]struct {
	lock  func(*framework.Client) locks.Lock
	queue string
}{
	"mutex": {kit.MutexAt("/l"), "/l"},
	"multi": {kit.MultiAt("/l"), "/l/b"},
}

// queued are the locks of which each has its own way through a queue.
var queued = map[string]func(c *framework.Client) locks.Lock{
	"mutex":           kit.Locks["mutex"],
	"read":            kit.Locks["read"],
	"semaphore mutex": kit.Locks["semaphore mutex"],
	"multi":           kit.Locks["multi"],
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
						theirs = kit.Locks["write"](other)
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
	kit.EachLock(t, func(t *testing.T, lock func(*framework.Client) locks.Lock) {
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
	for name, lock := range kit.Locks {
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
	for name, lock := range kit.Locks {
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

// A server that goes on refusing for a while is asked again, with pauses, and
// not without end: the caller's context ends also those.
func TestPausesEndWithTheContext(t *testing.T) {
	const lost, busy = -4, -7
	for name, lock := range kit.Locks {
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

// A server that is overwhelmed, or that the session has left, refuses a request:
// it is sent again.
func TestRefusalsThatPass(t *testing.T) {
	for name, code := range map[string]int32{"connection loss": -4, "operation timeout": -7, "request timeout": -122, "throttled": -127, "session moved": -118, "not read only": -119} {
		t.Run(name, func(t *testing.T) {
			kit.EachLock(t, func(t *testing.T, lock func(*framework.Client) locks.Lock) {
				for nth := 1; ; nth++ {
					srv := zktest.Start(t, zktest.InMemory())
					c := kit.Connect(t, srv)
					rule := srv.On(zktest.Match{Session: c.SessionID(), Nth: nth}, zktest.Fail(code))
					h, err := lock(c).Acquire(t.Context())
					require.NoError(t, err, "at request %d", nth)
					require.NoError(t, h.Err())
					hit := rule.Fired() > 0
					rule.Remove()
					require.NoError(t, h.Release())
					time.Sleep(time.Minute)
					assert.Empty(t, srv.Ephemerals(0))
					if !hit {
						require.Greater(t, nth, 2)
						return
					}
				}
			})
		})
	}
}

// A waiter is woken, and its node goes while a write proves the session.
func TestNodeGoesWhileItIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		holder, operator, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(holder, "/l").Acquire(t.Context())
		require.NoError(t, err)
		a := kit.Acquire(t, kit.MutexAt("/l")(c))
		require.True(t, a.Waits())
		time.Sleep(time.Minute) // what its creation has proved is over
		removed := srv.On(zktest.Match{Op: "multi", Session: c.SessionID(), Nth: 1}, zktest.Call(func(r zktest.Request) {
			assert.NoError(t, operator.Delete(t.Context(), r.Path, 0))
		}))
		require.NoError(t, h.Release())
		h = a.Soon()
		assert.Equal(t, 1, removed.Fired())
		standsOn(t, operator, h, c.SessionID())
		require.NoError(t, h.Release())
	})
}

// Somebody deletes the node of one who waits, or who has just been granted.
func TestWaiterWhoseNodeIsDeleted(t *testing.T) {
	for name, q := range queues {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				holder, operator, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				h, err := kit.MutexAt(q.queue)(holder).Acquire(t.Context())
				require.NoError(t, err)
				a := kit.Acquire(t, q.lock(c))
				require.True(t, a.Waits())
				for _, node := range srv.Ephemerals(c.SessionID()) {
					require.NoError(t, operator.Delete(t.Context(), node, 0))
				}
				require.True(t, a.Waits(), "the holder holds")
				require.NoError(t, h.Release())
				h = a.Soon()
				standsOn(t, operator, h, c.SessionID())
				require.NoError(t, h.Release())
			})
		})
	}
}

// So do many waiters, on this client and on others, and those in a local queue.
func TestCrowdWhoseQueueIsDeleted(t *testing.T) {
	for name, lock := range kit.Locks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				operator := kit.Connect(t, srv)
				_, err := lock(operator).Acquire(t.Context())
				require.NoError(t, err)
				var all sync.WaitGroup
				var errs []error
				var mu sync.Mutex
				for range 3 {
					c := kit.Connect(t, srv)
					for range 4 {
						all.Go(func() {
							h, err := lock(c).Acquire(t.Context())
							if err == nil {
								time.Sleep(10 * time.Millisecond)
								// The second of a queue has the lock when it hears that the first has gone, and
								// loses it when it hears that its own node went as well.
								if err = h.Release(); errors.Is(err, locks.ErrNodeDeleted) {
									err = nil
								}
							}
							mu.Lock()
							defer mu.Unlock()
							errs = append(errs, err)
						})
					}
				}
				time.Sleep(time.Second)
				for kit.Raze(t.Context(), operator, "/l") != nil {
					continue // somebody came in between
				}
				all.Wait()
				for _, err := range errs {
					require.NoError(t, err)
				}
				time.Sleep(time.Minute)
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// Somebody deletes the lock over and over: each time just before it is listed, or
// before something is made in it. The waiters do not ask without a pause, and get
// the lock once that is over.
func TestQueueDeletedOverAndOver(t *testing.T) {
	t.Run("listed", func(t *testing.T) {
		deletedOverAndOver(t, zktest.Match{Op: "getChildren"}, zktest.Match{Op: "getChildren2"}, zktest.Match{Op: "multiRead"})
	})
	t.Run("made", func(t *testing.T) { deletedOverAndOver(t, zktest.Match{Op: "createContainer", Path: "/l/*"}) })
}

func deletedOverAndOver(t *testing.T, before ...zktest.Match) {
	t.Helper()
	const long = 20 * time.Second
	for name, lock := range kit.Locks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(100*time.Microsecond))
				operator, c := kit.Connect(t, srv), kit.Connect(t, srv)
				id := c.SessionID()
				var asked atomic.Int32
				rules := []*zktest.Rule{srv.On(zktest.Match{Session: id, Func: func(zktest.Request) bool {
					asked.Add(1)
					return false
				}}, zktest.CutBefore())}
				for _, match := range before {
					match.Session = id
					rules = append(rules, srv.On(match, zktest.Call(func(zktest.Request) {
						_ = kit.Raze(context.Background(), operator, "/l")
					})))
				}
				got := kit.Acquire(t, persistent{lock(c)})
				time.Sleep(long)
				assert.True(t, got.Pending())
				assert.Less(t, asked.Load(), int32(2500), "120 in a second, several for each try")
				for _, rule := range rules {
					rule.Remove()
				}
				require.NoError(t, got.Soon().Release())
			})
		})
	}
}

// persistent acquires again when a part of what it has was deleted, as the write
// side of a downgrade.
type persistent struct{ locks.Lock }

func (l persistent) Acquire(ctx context.Context) (*locks.Hold, error) {
	for {
		h, err := l.Lock.Acquire(ctx)
		if !errors.Is(err, locks.ErrLockLost) {
			return h, err
		}
		time.Sleep(time.Second)
	}
}

// Somebody deletes the lock each time when a waiter has seen who is ahead of it,
// and puts another one there. That the waiter got further each time does not make
// it ask without a pause.
func TestWaiterDeletedOverAndOver(t *testing.T) {
	for name, lock := range map[string]func(*framework.Client) locks.Lock{
		"mutex": kit.MutexAt("/l/m"),
		"multi": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(kit.MutexAt("/l/m")(c), kit.MutexAt("/m")(c))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(100*time.Microsecond))
				operator, c := kit.Connect(t, srv), kit.Connect(t, srv)
				ahead := func() {
					_, _ = operator.Create(context.Background(), "/l/m/x-lock-", nil, framework.EphemeralSequential, framework.Parents())
				}
				ahead()
				var asked atomic.Int32
				srv.On(zktest.Match{Session: c.SessionID(), Func: func(zktest.Request) bool {
					asked.Add(1)
					return false
				}}, zktest.CutBefore())
				rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "getData", Path: "/l/m/*"}, zktest.Call(func(zktest.Request) {
					_ = kit.Raze(context.Background(), operator, "/l")
					ahead()
				}))
				got := kit.Acquire(t, lock(c))
				time.Sleep(20 * time.Second)
				assert.True(t, got.Pending())
				assert.Less(t, asked.Load(), int32(1000))
				rule.Remove()
				_ = kit.Raze(t.Context(), operator, "/l")
				require.NoError(t, got.Soon().Release())
			})
		})
	}
}
