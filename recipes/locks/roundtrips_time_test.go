package locks_test

import (
	"fmt"
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

func TestRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		for _, path := range []string{"/mutex", "/rw", "/sem/locks", "/sem/leases"} {
			require.NoError(t, c.EnsurePath(t.Context(), path))
		}
		rw := locks.NewInterProcessReadWriteLock(c, "/rw")
		for _, tc := range []struct {
			name             string
			lock             locks.Lock
			acquire, release float64
		}{
			{"mutex", locks.NewInterProcessMutex(c, "/mutex"), 1, 1},
			{"write side", rw.WriteLock(), 1, 1},
			{"read side", rw.ReadLock(), 1, 1},
			{"semaphore mutex", locks.NewInterProcessSemaphoreMutex(c, "/sem"), 1, 1},
		} {
			t.Log(tc.name)
			var h *locks.Hold
			assert.Equal(t, tc.acquire, took(t, hold(tc.lock, &h)), "acquire")
			assert.Equal(t, tc.release, took(t, h.Release), "release")
		}
	})
}

func TestRoundTripsWithoutParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		var h *locks.Hold
		// The creation that finds no parent, two to make it however deep it is, and the pair.
		assert.Equal(t, 4.0, took(t, hold(locks.NewInterProcessMutex(c, "/a/b/c/d/e"), &h)))
		assert.Equal(t, 1.0, took(t, h.Release))
	})
}

func TestRoundTripsOfReentry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l")
		h, err := m.Acquire(t.Context())
		require.NoError(t, err)
		var inner *locks.Hold
		assert.Zero(t, took(t, func() (err error) { inner, err = m.Acquire(h.Context()); return err }))
		assert.Zero(t, took(t, func() error { _, err := m.TryAcquire(h.Context(), 0); return err }))
		assert.Zero(t, took(t, inner.Release))
	})
}

func TestRoundTripsOfTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		a, b := kit.Connect(t, srv), kit.Connect(t, srv)
		require.NoError(t, a.EnsurePath(t.Context(), "/l"))
		ma, mb := locks.NewInterProcessMutex(a, "/l"), locks.NewInterProcessMutex(b, "/l")
		var h *locks.Hold
		assert.Equal(t, 2.0, took(t, func() (err error) { h, err = ma.TryAcquire(t.Context(), 0); return err }), "free: look, then take")
		assert.Equal(t, 1.0, took(t, func() error {
			_, err := mb.TryAcquire(t.Context(), 0)
			assert.ErrorIs(t, err, locks.ErrNotAcquired)
			return nil
		}), "taken: look")
		require.NoError(t, h.Release())
		assert.Equal(t, 1.0, took(t, func() (err error) { h, err = mb.TryAcquire(t.Context(), time.Second); return err }))
		require.NoError(t, h.Release())
		began := time.Now()
		h, err := ma.Acquire(t.Context())
		require.NoError(t, err)
		_, err = mb.TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		assert.Equal(t, time.Second+2*d, time.Since(began), "no longer than asked")
		require.NoError(t, h.Release())
	})
}

// One request asks whether any member of a MultiLock is held.
func TestRoundTripsOfTryingAMultiLock(t *testing.T) {
	for _, n := range []int{2, 10, 50} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
			c, other := kit.Connect(t, srv), kit.Connect(t, srv)
			members := []locks.Lock{locks.NewInterProcessSemaphoreMutex(c, "/s")}
			for i := range n - 1 {
				members = append(members, locks.NewInterProcessMutex(c, fmt.Sprintf("/l/%d", i)))
			}
			lock := locks.NewInterProcessMultiLock(members...)
			var h *locks.Hold
			require.NoError(t, hold(lock, &h)()) // makes the parents
			require.NoError(t, h.Release())
			before := srv.Requests()
			assert.Equal(t, 2.0, took(t, func() (err error) { h, err = lock.TryAcquire(t.Context(), 0); return err }), "free: look, then take")
			assert.Equal(t, 2, srv.Requests()["multiRead"]-before["multiRead"])
			require.NoError(t, h.Release())
			last, err := locks.NewInterProcessMutex(other, fmt.Sprintf("/l/%d", n-2)).Acquire(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 1.0, took(t, func() error {
				_, err := lock.TryAcquire(t.Context(), 0)
				assert.ErrorIs(t, err, locks.ErrNotAcquired)
				return nil
			}), "taken: look")
			require.NoError(t, last.Release())
			assert.Equal(t, 1, srv.Requests()["getChildren"]-before["getChildren"], "by the other alone")
		})
	}
}

// After a wait that was longer than what the creation of its node has proved, a
// write comes on top (TestHandOffProvesTheSession).
func TestRoundTripsOfHandOff(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*framework.Config)
		waited time.Duration
	}{
		"by quorum": {func(*framework.Config) {}, 20 * time.Second},
		"by server": {byServer, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				a, b := kit.Connect(t, srv), kit.Connect(t, srv, tc.change)
				h, err := locks.NewInterProcessMutex(a, "/l").Acquire(t.Context())
				require.NoError(t, err)
				got := make(chan time.Time)
				go func() {
					_, err := locks.NewInterProcessMutex(b, "/l").Acquire(t.Context())
					assert.NoError(t, err)
					got <- time.Now()
				}()
				time.Sleep(tc.waited)
				began := time.Now()
				require.NoError(t, h.Release())
				applied := began.Add(d) // the delete reaches the server
				assert.Equal(t, d, (<-got).Sub(applied), "the event")
			})
		})
	}
}

func TestWakeUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 40
		srv := zktest.Start(t, zktest.InMemory())
		holder := kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(holder, "/l").Acquire(t.Context())
		require.NoError(t, err)
		got := make(chan *locks.Hold)
		for range waiters {
			c := kit.Connect(t, srv)
			go func() {
				h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				assert.NoError(t, err)
				got <- h
			}()
			synctest.Wait()
		}
		assert.Len(t, srv.Watches(), waiters+1, "one each, and the next one on its own node")
		for i := range waiters {
			before := srv.Requests()
			require.NoError(t, h.Release())
			h = <-got
			synctest.Wait()
			// The second in the queue knows that it is first now. The others look, each
			// in turn.
			assert.Equal(t, min(i, 1), srv.Requests()["getChildren"]-before["getChildren"], "nobody else wakes up")
		}
		require.NoError(t, h.Release())
		assert.Empty(t, srv.Watches())
	})
}

func TestRoundTripsOfMultiLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		for _, tc := range []struct {
			name                string
			mutexes, semaphores int
			acquire, release    float64
		}{
			{"two", 2, 0, 1, 1},
			{"ten", 10, 0, 1, 1},
			{"three with semaphore mutexes", 1, 2, 1, 1},
		} {
			var lockSet []locks.Lock
			for i := range tc.mutexes {
				path := fmt.Sprintf("/%s/m%d", tc.name, i)
				require.NoError(t, c.EnsurePath(t.Context(), path))
				lockSet = append(lockSet, locks.NewInterProcessMutex(c, path))
			}
			for i := range tc.semaphores {
				path := fmt.Sprintf("/%s/s%d", tc.name, i)
				require.NoError(t, c.EnsurePath(t.Context(), path+"/locks"))
				require.NoError(t, c.EnsurePath(t.Context(), path+"/leases"))
				lockSet = append(lockSet, locks.NewInterProcessSemaphoreMutex(c, path))
			}
			lock := locks.NewInterProcessMultiLock(lockSet...)
			var h *locks.Hold
			assert.Equal(t, tc.acquire, took(t, hold(lock, &h)), "%s: acquire", tc.name)
			assert.Len(t, h.Members(), len(lockSet))
			assert.Equal(t, tc.release, took(t, h.Release), "%s: release", tc.name)
			assert.Equal(t, tc.acquire, took(t, hold(lock, &h)), "%s: again", tc.name)
			if tc.semaphores == 0 {
				assert.Positive(t, h.FencingToken(), "made in one transaction")
			}
			tx := h.Transaction()
			tx.Create("/"+tc.name+"/done", nil, framework.Persistent)
			assert.Equal(t, 1.0, took(t, func() error { _, err := tx.CommitAndRelease(t.Context()); return err }))
			time.Sleep(time.Second)
			assert.Empty(t, srv.Ephemerals(0))
		}
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
		} {
			lock := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), bad)
			assert.Zero(t, took(t, func() error {
				_, err := lock.Acquire(t.Context())
				require.ErrorIs(t, err, locks.ErrInvalidLock, name)
				return nil
			}))
		}
	})
}

// More nodes than fit into one transaction are refused before anything is sent.
func TestMultiLockTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		var lockSet []locks.Lock
		for i := range 60 {
			lockSet = append(lockSet, locks.NewInterProcessMutex(c, fmt.Sprintf("/l/%02d", i), locks.NodeData(make([]byte, 10_000))))
		}
		lock := locks.NewInterProcessMultiLock(lockSet...)
		_, err := lock.Acquire(t.Context())
		require.ErrorIs(t, err, framework.ErrTooLarge)
		assert.Contains(t, err.Error(), "Ordered")
		assert.Empty(t, srv.Ephemerals(0))
		h, err := lock.Ordered().Acquire(t.Context())
		require.NoError(t, err)
		assert.Len(t, srv.Ephemerals(0), 60)
		require.NoError(t, h.Release())
	})
}
