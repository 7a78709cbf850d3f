package locks_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// What happens between two requests of an acquisition.

// attempt is an Acquire in a goroutine of its own.
type attempt struct {
	t    *testing.T
	done chan struct{}
	hold *locks.Hold
	err  error
}

func acquire(t *testing.T, lock locks.Lock) *attempt {
	a := &attempt{t: t, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.hold, a.err = lock.Acquire(t.Context())
	}()
	return a
}

// waits reports that it has not been granted, a while from now.
func (a *attempt) waits() bool {
	time.Sleep(time.Minute)
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// soon is the hold, which must come within a session timeout.
func (a *attempt) soon() *locks.Hold {
	a.t.Helper()
	select {
	case <-a.done:
	case <-time.After(time.Minute):
		require.Fail(a.t, "waited for nothing")
	}
	require.NoError(a.t, a.err)
	return a.hold
}

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

// eachLock runs a part of a test for every way to take a lock.
func eachLock(t *testing.T, fn func(t *testing.T, lock func(*framework.Client) locks.Lock)) {
	for name, lock := range swept {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fn(t, lock) })
		})
	}
}

func mutexAt(p string) func(*framework.Client) locks.Lock {
	return func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, p) }
}

func multiAt(p string) func(*framework.Client) locks.Lock {
	return func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, p+"/a"), locks.NewInterProcessMutex(c, p+"/b"))
	}
}

// queues are locks whose nodes stand in one queue or more, and where.
var queues = map[string]struct {
	lock  func(*framework.Client) locks.Lock
	queue string
}{
	"mutex": {mutexAt("/l"), "/l"},
	"multi": {multiAt("/l"), "/l/b"},
}

// A reply was lost, and the next server may be behind the one that had executed
// the request: a write, answered there, comes before it is asked.
func TestSearchComesBehindAWrite(t *testing.T) {
	for name, q := range queues {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := connect(t, srv)
				h, err := q.lock(c).Acquire(t.Context())
				require.NoError(t, err)
				require.NoError(t, h.Release())
				var mu sync.Mutex // guards the variables below: there are two connections
				var asked []string
				lost := false
				srv.On(zktest.Match{Session: c.SessionID(), Func: func(r zktest.Request) bool {
					mu.Lock()
					defer mu.Unlock()
					if lost {
						asked = append(asked, r.Op)
						return false
					}
					lost = r.Op == "create2" || r.Op == "multi"
					return lost
				}}, zktest.CutAfter())
				h = acquire(t, q.lock(c)).soon()
				mu.Lock()
				first, search := slices.Index(asked, "multi"), slices.IndexFunc(asked, func(op string) bool { return op == "getChildren" || op == "multiRead" })
				mu.Unlock()
				require.GreaterOrEqual(t, first, 0)
				assert.Less(t, first, search)
				require.NoError(t, h.Release())
				synctest.Wait()
				assert.Empty(t, srv.Ephemerals(0))
			})
		})
	}
}

// Somebody has a node with our name: it is no node of ours.
func TestNodeOfAnotherUnderOurName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := connect(t, srv), connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/l"))
		var name atomic.Value
		srv.On(zktest.Match{Op: "create2", Session: c.SessionID(), Func: func(r zktest.Request) bool {
			return name.CompareAndSwap(nil, r.Path+"0000000000")
		}}, zktest.CutBefore())
		ours := func() string { return name.Load().(string) }
		srv.On(zktest.Match{Op: "multi", Session: c.SessionID(), Nth: 1}, zktest.Call(func(zktest.Request) {
			_, err := other.Create(t.Context(), ours(), nil, framework.Ephemeral)
			assert.NoError(t, err)
		}))
		a := acquire(t, mutexAt("/l")(c))
		require.True(t, a.waits(), "the other one is first")
		require.NoError(t, other.Delete(t.Context(), ours(), 0))
		h := a.soon()
		standsOn(t, other, h, c.SessionID())
		require.NoError(t, h.Release())
	})
}

// The server we are on is cut off from the majority. It counts no session, so
// no lock can be had there, and none that was held lasts for longer.
func TestReadOnlyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.StartCluster(t, 3, zktest.InMemory(), zktest.ReadOnlyMode())
		minority := (srv.Leader() + 1) % 3
		c := connect(t, &srv.Server, func(cfg *framework.Config) {
			cfg.CanBeReadOnly, cfg.SessionLease, cfg.ConnectString = true, framework.LeaseByServer, srv.Member(minority).ConnectString()
		})
		held, err := locks.NewInterProcessMutex(c, "/held").Acquire(t.Context())
		require.NoError(t, err)
		began := time.Now()
		srv.Partition([]int{minority}, []int{(minority + 1) % 3, (minority + 2) % 3})
		states := c.States().Subscribe()
		defer states.Stop()
		for s := range states.C {
			if s == listeners.ReadOnly {
				break
			}
		}
		assert.NotEqual(t, locks.Held, held.State(), "not by what this server says")
		before := srv.Requests()
		asking := time.Now()
		_, err = locks.NewInterProcessMutex(c, "/l").TryAcquire(t.Context(), 0)
		require.ErrorIs(t, err, framework.ErrNotConnected)
		assert.Zero(t, time.Since(asking))
		_, err = locks.NewInterProcessMutex(c, "/l").TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, framework.ErrNotConnected)
		a := acquire(t, mutexAt("/l")(c))
		require.True(t, a.waits())
		for _, op := range []string{"create2", "getChildren"} {
			assert.Equal(t, before[op], srv.Requests()[op], "this server is not asked: %s", op)
		}
		assert.Equal(t, locks.Lost, held.State())
		select {
		case <-held.Context().Done():
		default:
			assert.Fail(t, "after a session timeout its work ends", "%v", time.Since(began))
		}
		srv.Heal()
		require.NoError(t, a.soon().Release())
	})
}

// A waiter is woken, and its node goes while a write proves the session.
func TestNodeGoesWhileItIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		holder, operator, c := connect(t, srv), connect(t, srv), connect(t, srv)
		h, err := locks.NewInterProcessMutex(holder, "/l").Acquire(t.Context())
		require.NoError(t, err)
		a := acquire(t, mutexAt("/l")(c))
		require.True(t, a.waits())
		time.Sleep(time.Minute) // what its creation has proved is over
		removed := srv.On(zktest.Match{Op: "multi", Session: c.SessionID(), Nth: 1}, zktest.Call(func(r zktest.Request) {
			assert.NoError(t, operator.Delete(t.Context(), r.Path, 0))
		}))
		require.NoError(t, h.Release())
		h = a.soon()
		assert.Equal(t, 1, removed.Fired())
		standsOn(t, operator, h, c.SessionID())
		require.NoError(t, h.Release())
	})
}

// The one ahead is another waiter, and gives up.
func TestNodeAheadIsNotTheHolder(t *testing.T) {
	for name, lock := range swept {
		if name == "read" { // readers do not wait for each other
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				holder, ahead, c := connect(t, srv), connect(t, srv), connect(t, srv)
				h, err := lock(holder).Acquire(t.Context())
				require.NoError(t, err)
				if name == "downgrade" {
					require.NoError(t, h.Release())
					h, err = locks.NewInterProcessReadWriteLock(holder, "/l/rw").WriteLock().Acquire(t.Context())
					require.NoError(t, err)
				}
				ctx, giveUp := context.WithCancel(t.Context())
				go func() { _, _ = lock(ahead).Acquire(ctx) }()
				synctest.Wait()
				a := acquire(t, lock(c))
				require.True(t, a.waits())
				giveUp()
				require.True(t, a.waits(), "the holder holds")
				require.NoError(t, h.Release())
				require.NoError(t, a.soon().Release())
			})
		})
	}
}

// The node ahead goes after we have seen it and before we watch it.
func TestNodeAheadGoesBeforeItIsWatched(t *testing.T) {
	for name, q := range queues {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				holder, operator, c := connect(t, srv), connect(t, srv), connect(t, srv)
				_, err := q.lock(holder).Acquire(t.Context())
				require.NoError(t, err)
				srv.On(zktest.Match{Op: "getData", Session: c.SessionID()}, zktest.Call(func(r zktest.Request) {
					_ = operator.Delete(t.Context(), r.Path, 0)
				}))
				h := acquire(t, q.lock(c)).soon()
				require.NoError(t, h.Release())
				synctest.Wait()
				assert.Empty(t, srv.Watches())
			})
		})
	}
}

// The event comes right behind the reply that says that its watch stands.
func TestEventRightBehindTheReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		holder, operator, c := connect(t, srv), connect(t, srv), connect(t, srv)
		for range 100 {
			h, err := locks.NewInterProcessMutex(holder, "/l").Acquire(t.Context())
			require.NoError(t, err)
			a := acquire(t, mutexAt("/l")(c))
			time.Sleep(2 * time.Millisecond) // it has the list, and asks for the watch
			// Both requests reach the server at one time.
			require.NoError(t, operator.Delete(t.Context(), h.Path(), 0))
			require.NoError(t, a.soon().Release())
		}
	})
}

// Somebody deletes the node of one who waits, or who has just been granted.
func TestWaiterWhoseNodeIsDeleted(t *testing.T) {
	for name, q := range queues {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				holder, operator, c := connect(t, srv), connect(t, srv), connect(t, srv)
				h, err := mutexAt(q.queue)(holder).Acquire(t.Context())
				require.NoError(t, err)
				a := acquire(t, q.lock(c))
				require.True(t, a.waits())
				for _, node := range srv.Ephemerals(c.SessionID()) {
					require.NoError(t, operator.Delete(t.Context(), node, 0))
				}
				require.True(t, a.waits(), "the holder holds")
				require.NoError(t, h.Release())
				h = a.soon()
				standsOn(t, operator, h, c.SessionID())
				require.NoError(t, h.Release())
			})
		})
	}
}

// Somebody deletes the lock's own node again and again, between its creation
// and that of the node below.
func TestParentGoesAgainAndAgain(t *testing.T) {
	const times = 50
	for name, lock := range map[string]func(*framework.Client) locks.Lock{"mutex": mutexAt("/p/l"), "multi": multiAt("/p/l"), "semaphore": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessSemaphore(c, "/p/l", 2)
	}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, operator := connect(t, srv), connect(t, srv)
				var n atomic.Int32
				srv.On(zktest.Match{Session: c.SessionID(), Func: func(r zktest.Request) bool {
					creates := (r.Op == "create2" || r.Op == "multi") && strings.HasPrefix(path.Base(r.Path), "_c_")
					return creates && n.Add(1) <= times
				}}, zktest.Call(func(r zktest.Request) {
					_ = operator.Delete(t.Context(), path.Dir(r.Path), framework.AnyVersion)
				}))
				h, err := lock(c).Acquire(t.Context())
				require.NoError(t, err)
				assert.GreaterOrEqual(t, n.Load(), int32(times))
				require.NoError(t, h.Release())
			})
		})
	}
}

// Containers are reaped before each request.
func TestContainersAreReapedAllTheTime(t *testing.T) {
	eachLock(t, func(t *testing.T, lock func(*framework.Client) locks.Lock) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		h, err := lock(c).Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Release())
		var n atomic.Int32
		srv.On(zktest.Match{Session: c.SessionID(), Func: func(zktest.Request) bool { return n.Add(1) < 30 }},
			zktest.Call(func(zktest.Request) { srv.SweepContainers() }))
		h, err = lock(c).Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Err())
		require.NoError(t, h.Release())
	})
}

// The lock's own node goes between the look at what is missing and the creation
// of what is.
func TestParentIsReapedAsItIsUsed(t *testing.T) {
	eachLock(t, func(t *testing.T, lock func(*framework.Client) locks.Lock) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		h, err := lock(c).Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Release())
		srv.SweepContainers()
		var n atomic.Int32
		srv.On(zktest.Match{Op: "createContainer", Session: c.SessionID(), Func: func(zktest.Request) bool { return n.Add(1) <= 3 }},
			zktest.Call(func(zktest.Request) { srv.SweepContainers() }))
		h, err = lock(c).Acquire(t.Context())
		require.NoError(t, err)
		assert.Greater(t, n.Load(), int32(1))
		require.NoError(t, h.Release())
	})
}

// Who gives up leaves no watch on the server, however long the lock is held.
func TestGivingUpLeavesNoWatch(t *testing.T) {
	for name, lock := range swept {
		if name == "downgrade" { // no one lock, whose wait has a limit
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, other := connect(t, srv), connect(t, srv)
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

// The wait ends at the instant at which the lock is granted, or just beside it:
// it is either a hold or an error, and nothing is left of what it is not.
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
		c, other := connect(t, srv), connect(t, srv)
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

// Whoever looks whether the context has ended finds that it has just then.
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
			c := connect(t, srv, change)
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

// A server that is overwhelmed, or that the session has left, refuses a request:
// it is sent again.
func TestRefusalsThatPass(t *testing.T) {
	for name, code := range map[string]int32{"connection loss": -4, "operation timeout": -7, "request timeout": -122, "throttled": -127, "session moved": -118, "not read only": -119} {
		t.Run(name, func(t *testing.T) {
			eachLock(t, func(t *testing.T, lock func(*framework.Client) locks.Lock) {
				for nth := 1; ; nth++ {
					srv := zktest.Start(t, zktest.InMemory())
					c := connect(t, srv)
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

// Two acquisitions of one session, of which the second loses its reply: it must
// not find the first one's node.
func TestReplyLostBesideAnotherOfTheSession(t *testing.T) {
	for name, q := range queues {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := connect(t, srv)
				lock := q.lock(c)
				if name == "mutex" { // with a node for each
					lock = locks.NewInterProcessMutex(c, "/l", locks.LocalHandovers(0))
				}
				first, err := lock.Acquire(t.Context())
				require.NoError(t, err)
				lost := srv.On(zktest.Match{Session: c.SessionID(), Nth: 1, Func: func(r zktest.Request) bool {
					return r.Op == "create2" || r.Op == "multi"
				}}, zktest.CutAfter())
				a := acquire(t, lock)
				require.True(t, a.waits())
				assert.Equal(t, 1, lost.Fired())
				require.NoError(t, first.Err())
				require.NoError(t, first.Release())
				require.NoError(t, a.soon().Release())
			})
		})
	}
}

// Of many who release at once one does.
func TestReleasedByManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		for range 10 {
			h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
			require.NoError(t, err)
			var released, before atomic.Int32
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					switch err := h.Release(); {
					case err == nil:
						released.Add(1)
					case errors.Is(err, locks.ErrReleased):
						before.Add(1)
					default:
						assert.NoError(t, err)
					}
				})
			}
			wg.Wait()
			assert.Equal(t, int32(1), released.Load())
			assert.Equal(t, int32(99), before.Load())
		}
	})
}

// A release that is refused is tried again, and not only with the end of the
// session.
func TestRefusedReleaseIsTriedAgain(t *testing.T) {
	const noAuth = -102
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		refused := srv.On(zktest.Match{Op: "delete", Session: c.SessionID()}, zktest.Fail(noAuth))
		require.ErrorIs(t, h.Release(), framework.ErrNoAuth)
		time.Sleep(time.Minute)
		assert.Greater(t, refused.Fired(), 5)
		assert.Len(t, srv.Ephemerals(c.SessionID()), 1)
		refused.Remove()
		time.Sleep(10 * time.Second)
		assert.Empty(t, srv.Ephemerals(c.SessionID()))
	})
}

// A MultiLock is lost with any of its members, and its context ends then.
func TestMemberIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, operator := connect(t, srv), connect(t, srv)
		for i := range 2 {
			h, err := multiAt("/l")(c).Acquire(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Second)
			require.NoError(t, operator.Delete(t.Context(), h.Members()[i].Path(), 0))
			time.Sleep(time.Second)
			require.ErrorIs(t, context.Cause(h.Context()), locks.ErrLockLost)
			require.ErrorIs(t, h.Release(), locks.ErrLockLost)
			time.Sleep(time.Second)
			assert.Empty(t, srv.Ephemerals(0), "the other one is given back")
		}
	})
}

// Members that are taken one after another share one wait.
func TestMultiLockWaitsOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		holder := connect(t, srv)
		var lockSet []locks.Lock
		for i := range 3 { // each of another client
			at := fmt.Sprintf("/l%d", i)
			h, err := locks.NewInterProcessMutex(holder, at).Acquire(t.Context())
			require.NoError(t, err)
			time.AfterFunc(time.Duration(i+1)*600*time.Millisecond, func() { _ = h.Release() })
			lockSet = append(lockSet, locks.NewInterProcessMutex(connect(t, srv), at))
		}
		began := time.Now()
		_, err := locks.NewInterProcessMultiLock(lockSet...).TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		assert.Equal(t, time.Second, time.Since(began))
		time.Sleep(10 * time.Second)
		assert.Empty(t, srv.Ephemerals(0))
	})
}

// Who has the read side and wants the write side waits for itself.
func TestUpgradeIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		lock := locks.NewInterProcessReadWriteLock(connect(t, srv), "/l")
		r, err := lock.ReadLock().Acquire(t.Context())
		require.NoError(t, err)
		began := time.Now()
		_, err = lock.WriteLock().TryAcquire(r.Context(), time.Minute)
		require.ErrorIs(t, err, locks.ErrDeadlock)
		assert.Zero(t, time.Since(began))
		require.NoError(t, r.Release())
	})
}

// A directory full of what others have put there.
func TestForeignChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		names := []string{"!x", "~", "0", "_c_", "_c_x", "lock-", "lock-x", "-lock-0", "lock-00000000000", "lock-x0000000000", "lock-+000000001",
			"lock-99999999999", "lock-000000000", "lock-0000000000x", "LOCK-0000000000", "write-0000000000", "lease-1", "lease-00000000001", "__READ__x", "__WRIT__", "locks"}
		for i := len(names); i < 200; i++ {
			names = append(names, fmt.Sprintf("n%03d-%c", i, rune(' '+i%90)))
		}
		for _, below := range []string{"/l/m", "/l/rw", "/l/a", "/l/b", "/l/s/locks", "/l/s/leases"} {
			for _, name := range names {
				if name[len(name)-1] == '/' {
					continue
				}
				_, err := c.Create(t.Context(), below+"/"+name, nil, framework.Persistent, framework.Parents())
				require.NoError(t, err, "%q", name)
			}
		}
		for name, lock := range swept {
			h, err := lock(c).TryAcquire(t.Context(), time.Minute)
			require.NoError(t, err, name)
			require.NoError(t, h.Release())
		}
	})
}

// Numbers whose order means nothing are refused, and our node goes.
func TestNumbersAtTheirEnd(t *testing.T) {
	for name, nodes := range map[string][]string{
		"near":     {"_c_x-lock-2147450000"},
		"last":     {"_c_x-lock-2147483647"},
		"negative": {"_c_x-lock--2147483648"},
		"tied":     {"_c_x-lock-0000000007", "_c_y-lock-0000000007"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, operator := connect(t, srv), connect(t, srv)
				for _, node := range nodes {
					_, err := operator.Create(t.Context(), "/l/"+node, nil, framework.Ephemeral, framework.Parents())
					require.NoError(t, err)
				}
				_, err := locks.NewInterProcessMutex(c, "/l").TryAcquire(t.Context(), time.Minute)
				require.ErrorIs(t, err, locks.ErrSequenceExhausted)
				synctest.Wait()
				assert.Empty(t, srv.Ephemerals(c.SessionID()))
			})
		})
	}
}

// Who comes from a lost hold is told, and does not get another one of it.
func TestLostHoldIsNotEnteredAgain(t *testing.T) {
	for _, name := range []string{"mutex", "write", "read", "multi"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := connect(t, srv)
				h, err := swept[name](c).Acquire(t.Context())
				require.NoError(t, err)
				require.NoError(t, srv.ExpireSession(c.SessionID()))
				<-h.Context().Done()
				_, err = swept[name](c).TryAcquire(context.WithoutCancel(h.Context()), time.Minute)
				require.ErrorIs(t, err, locks.ErrLockLost)
				require.ErrorIs(t, h.Release(), locks.ErrLockLost)
			})
		})
	}
}

// More stand in the queue than fit into one reply: who comes is told, leaves
// nothing, and keeps its connection.
func TestQueueThatIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		operator := connect(t, srv)
		c := connect(t, srv, func(cfg *framework.Config) { cfg.MaxReply = 4 << 10 })
		for _, below := range []string{"/l/m", "/l/rw", "/l/a", "/l/b", "/l/s/locks", "/l/s/leases"} {
			require.NoError(t, operator.EnsurePath(t.Context(), below))
			for range 100 {
				_, err := operator.Create(t.Context(), below+"/_c_00000000-0000-4000-8000-000000000000-lock-", nil, framework.EphemeralSequential)
				require.NoError(t, err)
			}
		}
		for name, lock := range swept {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := lock(c).Acquire(ctx)
			cancel()
			require.ErrorIs(t, err, framework.ErrReplyTooLarge, name)
			synctest.Wait()
			assert.Empty(t, srv.Ephemerals(c.SessionID()), name)
		}
		_, _, w, err := c.ChildrenW(t.Context(), "/l/m")
		require.ErrorIs(t, err, framework.ErrReplyTooLarge)
		assert.Nil(t, w)
		synctest.Wait()
		assert.Empty(t, srv.Watches())
		assert.Equal(t, 2, srv.Requests()["connect"])
	})
}
