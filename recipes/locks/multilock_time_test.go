package locks_test

import (
	"context"
	"fmt"
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
			require.ErrorIs(t, h.Release(), locks.ErrReleased)
		}
		assert.Equal(t, []time.Duration{0, time.Hour}, waits)

		released, _ := locks.NewHold(t.Context(), nil)
		require.NoError(t, released.Release())
		for _, none := range []*locks.Hold{nil, new(locks.Hold), released} {
			_, err = locks.NewInterProcessMultiLock(m, whatever(func(time.Duration) (*locks.Hold, error) { return none, nil })).Acquire(t.Context())
			require.ErrorIs(t, err, locks.ErrInvalidLock, "neither a hold that goes on nor an error")
		}
		time.Sleep(time.Minute)
		assert.Empty(t, srv.Ephemerals(c.SessionID()))
	})
}

// An Ordered MultiLock makes its nodes one by one, and each path may be missing. That costs
// round trips, and no pauses as after failures.
func TestOrderedMultiLockOfNewPaths(t *testing.T) {
	for kind, lock := range map[string]func(c *framework.Client, path string) locks.Lock{
		"mutexes":           func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessMutex(c, path) },
		"semaphores":        func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessSemaphore(c, path, 2) },
		"semaphore mutexes": func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, path) },
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 25
				c := kit.Connect(t, zktest.Start(t, zktest.InMemory(), zktest.Latency(d)))
				for _, life := range []string{"first", "second"} {
					var members []locks.Lock
					for i := range n {
						members = append(members, lock(c, fmt.Sprintf("/%s/l%02d", life, i)))
					}
					began := time.Now()
					require.NoError(t, kit.Hold(t, locks.NewInterProcessMultiLock(members...).Ordered()).Release())
					assert.Less(t, time.Since(began), n*20*d, life)
				}
			})
		})
	}
}

// A semaphore that is named twice counts once, whatever objects it is named by: otherwise the
// MultiLock would wait for itself.
func TestMultiLockOfOneSemaphoreTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
		semaphore := func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessSemaphore(c, path, 1) }
		for name, again := range map[string]locks.Lock{
			"another object":    semaphore(c, "/app/s"),
			"in a namespace":    semaphore(c.UsingNamespace("app"), "/s"),
			"a semaphore mutex": locks.NewInterProcessSemaphoreMutex(c, "/app/s"),
			"a MultiLock":       locks.NewInterProcessMultiLock(semaphore(c, "/app/s")),
		} {
			h, err := locks.NewInterProcessMultiLock(semaphore(c, "/app/s"), again).TryAcquire(t.Context(), time.Minute)
			require.NoError(t, err, name)
			assert.Len(t, h.Members(), 1, name)
			require.NoError(t, h.Release())
		}
	})
}

// A MultiLock without a constructor is refused as a member, too: it may stand for a lock that
// was forgotten.
func TestMultiLockOfAZeroOne(t *testing.T) {
	c, err := framework.Start(framework.Config{ConnectString: "127.0.0.1:1"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	lock := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), &locks.InterProcessMultiLock{})
	_, err = lock.TryAcquire(t.Context(), 0)
	require.ErrorIs(t, err, locks.ErrInvalidLock)
	require.EqualError(t, err, "acquire multi-lock: member 1: invalid lock: it was made without NewInterProcessMultiLock")
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

// A lock that could never be had is told of before the others are taken.
func TestMultiLockChecksAllMembersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		_, err := locks.NewInterProcessMutex(kit.Connect(t, srv), "/a").Acquire(t.Context())
		require.NoError(t, err)
		for name, bad := range map[string]locks.Lock{
			"mutex":           locks.NewInterProcessMutex(c, "/b/"),
			"semaphore mutex": locks.NewInterProcessSemaphoreMutex(c, "/b/"),
			"semaphore":       locks.NewInterProcessSemaphore(c, "/b", 0),
			"another kind":    locks.NewInterProcessSemaphoreMutex(c, "/a"),
			"a side":          locks.NewInterProcessReadWriteLock(c, "/a").ReadLock(),
			"leases":          locks.NewInterProcessSemaphore(c, "/a", 2),
			"other leases":    locks.NewInterProcessMultiLock(locks.NewInterProcessSemaphore(c, "/b", 3), locks.NewInterProcessSemaphore(c, "/b", 2)),
			"a lease":         locks.NewInterProcessMultiLock(locks.NewInterProcessSemaphore(c, "/b", 3), locks.NewInterProcessSemaphoreMutex(c, "/b")),
		} {
			lock := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), bad)
			assert.Zero(t, kit.RoundTrips(t, func() error {
				_, err := lock.Acquire(t.Context())
				require.ErrorIs(t, err, locks.ErrInvalidLock, name)
				require.ErrorContains(t, err, "member 1: ", name)
				return nil
			}))
		}
		children, _, err := kit.Connect(t, srv).Children(t.Context(), "/a")
		require.NoError(t, err)
		require.Len(t, children, 1, "that of the owner")
	})
}

// What a MultiLock of several steps gives back after its wait is on its way. It waits for no server that stands still.
func TestMultiLockGivesBackInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		held := kit.Hold(t, locks.NewInterProcessMutex(other, "/b"))
		lock := locks.NewInterProcessMultiLock(locks.NewInterProcessSemaphore(c, "/a", 2, locks.ReleaseWait(5*time.Second)), locks.NewInterProcessMutex(c, "/b"))
		for _, frozen := range []bool{false, true} {
			if frozen {
				time.AfterFunc(500*time.Millisecond, srv.Freeze)
			}
			began := time.Now()
			_, err := lock.TryAcquire(t.Context(), time.Second)
			require.Error(t, err)
			assert.Less(t, time.Since(began), 1010*time.Millisecond, "frozen: %v", frozen)
			time.Sleep(10 * d)
			if !frozen {
				assert.Empty(t, srv.Ephemerals(c.SessionID()))
			}
		}
		srv.Thaw()
		time.Sleep(time.Minute)
		assert.Empty(t, srv.Ephemerals(c.SessionID()))
		require.NoError(t, held.Release())
	})
}

// wrapped is a lock of an application's that counts.
type wrapped struct {
	locks.Lock
	acquired int
}

func (w *wrapped) Unwrap() locks.Lock { return w.Lock }

func (w *wrapped) Acquire(ctx context.Context) (*locks.Hold, error) {
	w.acquired++
	return w.Lock.Acquire(ctx)
}

// A MultiLock takes what its members wrap, in one step.
func TestMultiLockOfWrappedLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		for _, p := range []string{"/l/a", "/l/b"} {
			require.NoError(t, c.EnsurePath(t.Context(), p))
		}
		a, b := &wrapped{Lock: kit.MutexAt("/l/a")(c)}, &wrapped{Lock: &wrapped{Lock: kit.MutexAt("/l/b")(c)}}
		lock := locks.NewInterProcessMultiLock(a, b)
		before := srv.Requests()["multi"]
		hold, err := lock.Acquire(t.Context())
		require.NoError(t, err)
		assert.Len(t, hold.Members(), 2)
		assert.Zero(t, a.acquired+b.acquired)
		assert.Equal(t, 1, srv.Requests()["multi"]-before, "one transaction makes both nodes")
		require.NoError(t, hold.Release())

		_, err = locks.NewInterProcessMultiLock(&wrapped{}).Acquire(t.Context())
		require.ErrorIs(t, err, locks.ErrInvalidLock)
	})
}

// An Ordered MultiLock whose nodes are too much for one transaction can make room in many queues. It failed in the
// middle of its wait, with the advice to be Ordered.
func TestOrderedMultiLockMovesMuchData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv)
		var all []locks.Lock
		for i := range 7 {
			all = append(all, locks.NewInterProcessMutex(c, fmt.Sprint("/l/", i), locks.NodeData(make([]byte, 90<<10))))
		}
		held := kit.Hold(t, locks.NewInterProcessMutex(kit.Connect(t, srv), "/l/6"))
		multi := kit.Acquire(t, locks.NewInterProcessMultiLock(all...).Ordered())
		require.NoError(t, srv.WaitChildren(t.Context(), "/l/6", 2))
		var others []*kit.Acquisition
		for i := range 6 {
			others = append(others, kit.Acquire(t, locks.NewInterProcessMutex(kit.Connect(t, srv), fmt.Sprint("/l/", i))))
		}
		for _, o := range others {
			require.NoError(t, o.Soon().Release())
		}
		require.NoError(t, held.Release())
		require.NoError(t, multi.Soon().Release())
		kit.NothingLeft(t, srv)
	})
}
