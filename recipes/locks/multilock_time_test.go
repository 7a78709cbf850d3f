package locks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A MultiLock is lost with any of its members, and its context ends then.
func TestMemberIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, operator := kit.Connect(t, srv), kit.Connect(t, srv)
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
		holder := kit.Connect(t, srv)
		var lockSet []locks.Lock
		for i := range 3 { // each of another client
			at := fmt.Sprintf("/l%d", i)
			h, err := locks.NewInterProcessMutex(holder, at).Acquire(t.Context())
			require.NoError(t, err)
			time.AfterFunc(time.Duration(i+1)*600*time.Millisecond, func() { _ = h.Release() })
			lockSet = append(lockSet, locks.NewInterProcessMutex(kit.Connect(t, srv), at))
		}
		began := time.Now()
		_, err := locks.NewInterProcessMultiLock(lockSet...).TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		assert.Equal(t, time.Second, time.Since(began))
		time.Sleep(10 * time.Second)
		assert.Empty(t, srv.Ephemerals(0))
	})
}

// A MultiLock of many members gives up its contenders together.
func TestMultiLockOfManyMembers(t *testing.T) {
	const n = 1500
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c, other := kit.Connect(t, srv, shortSession), kit.Connect(t, srv)
		lock := multiOf(c, n)
		before := srv.Requests()
		h, err := lock.Acquire(t.Context())
		require.NoError(t, err)
		assert.Less(t, srv.Requests()["multi"]-before["multi"], 5)
		require.NoError(t, h.Release())
		taken, err := locks.NewInterProcessMutex(other, "/l/7").Acquire(t.Context())
		require.NoError(t, err)
		done := steady(t, c)
		slow(srv, c.SessionID(), 4*time.Millisecond, "delete", "getData", "removeWatches", "exists")
		_, err = lock.TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		time.Sleep(20 * time.Second)
		assert.Len(t, srv.Ephemerals(0), 2, "that of the other and that of elsewhere")
		done()
		require.NoError(t, taken.Release())
	})
}

// Paths are so long that one request for all queues is more than may be sent.
func TestOrderedMultiLockWithLongPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond), zktest.MaxFrame(64<<10))
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.MaxRequest = 64 << 10 })
		const n = 60
		members := make([]locks.Lock, n)
		for i := range members {
			members[i] = locks.NewInterProcessMutex(c, fmt.Sprintf("/%d/%s", i, strings.Repeat("x", 3700)))
		}
		lock := locks.NewInterProcessMultiLock(members...)
		_, err := lock.Acquire(t.Context())
		require.ErrorIs(t, err, framework.ErrTooLarge)
		for range 2 {
			h, err := lock.Ordered().Acquire(t.Context())
			require.NoError(t, err)
			assert.Len(t, srv.Ephemerals(c.SessionID()), n)
			require.NoError(t, h.Release())
		}
		h, err := lock.Ordered().TryAcquire(t.Context(), 0)
		require.NoError(t, err)
		require.NoError(t, h.Release())
		assert.Equal(t, 1, srv.Requests()["connect"], "no request was too large")
		assert.Empty(t, srv.Ephemerals(0))
	})
}

// whatever is a lock of the user's.
type whatever func(wait time.Duration) (*locks.Hold, error)

func (l whatever) Acquire(context.Context) (*locks.Hold, error) { return l(-1) }

func (l whatever) TryAcquire(_ context.Context, wait time.Duration) (*locks.Hold, error) {
	return l(wait)
}

func TestMultiLockMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		var none *locks.InterProcessMultiLock
		assert.Nil(t, none.Ordered())
		_, err := none.Acquire(t.Context())
		require.ErrorIs(t, err, locks.ErrInvalidLock)

		rw := locks.NewInterProcessReadWriteLock(c, "/rw")
		m := locks.NewInterProcessMutex(c, "/m")
		for name, sides := range map[string][]locks.Lock{"read first": {rw.ReadLock(), rw.WriteLock()}, "write first": {rw.WriteLock(), rw.ReadLock()}} {
			h, err := locks.NewInterProcessMultiLock(append(sides, m)...).Acquire(t.Context())
			require.NoError(t, err)
			assert.Len(t, h.Members(), 2, name)
			_, err = rw.ReadLock().TryAcquire(t.Context(), 0)
			require.ErrorIs(t, err, locks.ErrNotAcquired, "it has the write side")
			require.NoError(t, h.Release())
		}

		write, err := rw.WriteLock().Acquire(t.Context())
		require.NoError(t, err)
		under, err := locks.NewInterProcessMultiLock(rw.ReadLock(), m, locks.NewInterProcessMutex(c, "/n")).Acquire(write.Context())
		require.NoError(t, err, "the downgrade as a member")
		require.NoError(t, write.Release())
		_, err = locks.NewInterProcessReadWriteLock(c, "/rw").WriteLock().TryAcquire(t.Context(), 0)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		require.NoError(t, under.Release())

		var waits []time.Duration
		theirs := whatever(func(wait time.Duration) (*locks.Hold, error) {
			waits = append(waits, wait)
			h, _ := locks.NewHold(t.Context(), func() error { return nil })
			return h, nil
		})
		both := locks.NewInterProcessMultiLock(theirs, m)
		for _, wait := range []time.Duration{0, time.Hour} {
			h, err := both.TryAcquire(t.Context(), wait)
			require.NoError(t, err)
			tx := h.Transaction()
			_, err = tx.Commit(t.Context())
			require.ErrorIs(t, err, locks.ErrNoFence, "a member is none of ours")
			_, err = tx.CommitAndRelease(t.Context())
			require.ErrorIs(t, err, locks.ErrNoFence)
			require.NoError(t, h.Release())
		}
		assert.Equal(t, []time.Duration{0, time.Hour}, waits)

		_, err = locks.NewInterProcessMultiLock(m, whatever(func(time.Duration) (*locks.Hold, error) { return nil, nil })).Acquire(t.Context())
		require.ErrorIs(t, err, locks.ErrInvalidLock, "neither a hold nor an error")
		time.Sleep(time.Minute)
		assert.Empty(t, srv.Ephemerals(c.SessionID()))
	})
}

// One member may not be had at all: the error says which, and nothing is left of
// the others.
func TestMultiLockMemberIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, operator := kit.Connect(t, srv), kit.Connect(t, srv)
		_, err := operator.Create(t.Context(), "/forbidden", nil, framework.Persistent, framework.ACLs(zk.WorldACL(zk.PermRead)...))
		require.NoError(t, err)
		_, err = locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/forbidden")).Acquire(t.Context())
		require.ErrorIs(t, err, framework.ErrNoAuth)
		require.ErrorContains(t, err, "/forbidden")
		time.Sleep(time.Minute)
		assert.Empty(t, srv.Ephemerals(c.SessionID()))
	})
}

// The queues of a MultiLock are listed with one request, however many they are.
func TestMultiLockListsItsQueuesTogether(t *testing.T) {
	for _, n := range []int{2, 10} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
			c := kit.Connect(t, srv)
			lock := multiOf(c, n)
			h, err := lock.Acquire(t.Context()) // makes the parents
			require.NoError(t, err)
			require.NoError(t, h.Release())
			before := srv.Requests()
			assert.Equal(t, 1.0, took(t, hold(lock, &h)))
			assert.Equal(t, 1.0, took(t, h.Release))
			after := srv.Requests()
			assert.Equal(t, 2, after["multi"]-before["multi"])
			assert.Equal(t, 1, after["multiRead"]-before["multiRead"])
			assert.Equal(t, before["getChildren"], after["getChildren"])
		})
	}
}

func multiOf(c *framework.Client, n int) locks.Lock {
	members := make([]locks.Lock, n)
	for i := range members {
		members[i] = locks.NewInterProcessMutex(c, fmt.Sprintf("/l/%d", i))
	}
	return locks.NewInterProcessMultiLock(members...)
}

// Servers before 3.6 do not know the one request, and end the connection. It is
// tried once.
func TestMultiLockOnServersThatCannotListTogether(t *testing.T) {
	const unimplemented = -6
	for name, fault := range map[string]zktest.Fault{
		"cut": zktest.CutBefore(), "cut after": zktest.CutAfter(), "refused": zktest.Fail(unimplemented),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c := kit.Connect(t, srv)
				for i := range 3 {
					require.NoError(t, c.EnsurePath(t.Context(), fmt.Sprintf("/l/%d", i)))
				}
				tried := srv.On(zktest.Match{Op: "multiRead"}, fault)
				lock := multiOf(c, 3)
				for range 3 {
					h, err := lock.Acquire(t.Context())
					require.NoError(t, err)
					assert.Len(t, srv.Ephemerals(c.SessionID()), 3)
					require.NoError(t, h.Release())
				}
				time.Sleep(time.Minute)
				assert.Empty(t, srv.Ephemerals(0))
				assert.Equal(t, 1, tried.Fired())
			})
		})
	}
}

// A TryAcquire that does not wait lists each queue with a request of its own then.
func TestTryingAMultiLockOnServersThatCannotListTogether(t *testing.T) {
	for name, fault := range map[string]zktest.Fault{"cut": zktest.CutBefore(), "refused": zktest.Fail(-6)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				lock := multiOf(c, 3)
				for i := range 3 {
					require.NoError(t, c.EnsurePath(t.Context(), fmt.Sprintf("/l/%d", i)))
				}
				tried := srv.On(zktest.Match{Op: "multiRead"}, fault)
				for range 2 {
					h, err := lock.TryAcquire(t.Context(), 0)
					require.NoError(t, err)
					require.NoError(t, h.Release())
				}
				h, err := locks.NewInterProcessMutex(other, "/l/1").Acquire(t.Context())
				require.NoError(t, err)
				creations := srv.Requests()["multi"]
				_, err = lock.TryAcquire(t.Context(), 0)
				require.ErrorIs(t, err, locks.ErrNotAcquired)
				assert.Equal(t, creations, srv.Requests()["multi"], "no node was made")
				require.NoError(t, h.Release())
				assert.Equal(t, 1, tried.Fired())
			})
		})
	}
}

// A connection that is lost tells nothing of a server that has listed queues
// together before.
func TestMultiLockListsTogetherAfterALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		lock := multiOf(c, 3)
		for i := range 3 {
			h, err := lock.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release())
			if i == 0 {
				srv.On(zktest.Match{Op: "multiRead", Nth: 1}, zktest.CutBefore())
			}
		}
		before := srv.Requests()
		h, err := lock.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Release())
		assert.Equal(t, 1, srv.Requests()["multiRead"]-before["multiRead"])
	})
}

// One reply for all queues is too large, and those for each are not.
func TestMultiLockWhoseListsAreTooLargeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.MaxReply = 4 << 10 })
		for i := range 3 {
			require.NoError(t, c.EnsurePath(t.Context(), fmt.Sprintf("/l/%d/%s", i, strings.Repeat("x", 3<<10))))
		}
		lock := multiOf(c, 3)
		for range 2 {
			h, err := lock.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release())
		}
		assert.Equal(t, 1, srv.Requests()["connect"])
		assert.Empty(t, srv.Ephemerals(0))
	})
}
