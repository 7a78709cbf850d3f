package acquire_test

import (
	"fmt"
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
			assert.Equal(t, tc.acquire, kit.RoundTrips(t, kit.Into(&h, lock)), "%s: acquire", tc.name)
			assert.Len(t, h.Members(), len(lockSet))
			assert.Equal(t, tc.release, kit.RoundTrips(t, h.Release), "%s: release", tc.name)
			assert.Equal(t, tc.acquire, kit.RoundTrips(t, kit.Into(&h, lock)), "%s: again", tc.name)
			if tc.semaphores == 0 {
				assert.Positive(t, h.FencingToken(), "made in one transaction")
			}
			tx := h.Transaction()
			tx.Create("/"+tc.name+"/done", nil, framework.Persistent)
			assert.Equal(t, 1.0, kit.RoundTrips(t, func() error { _, err := tx.CommitAndRelease(t.Context()); return err }))
			time.Sleep(time.Second)
			assert.Empty(t, srv.Ephemerals(0))
		}
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
			require.NoError(t, kit.Into(&h, lock)()) // makes the parents
			require.NoError(t, h.Release())
			before := srv.Requests()
			assert.Equal(t, 2.0, kit.RoundTrips(t, func() (err error) { h, err = lock.TryAcquire(t.Context(), 0); return err }), "free: look, then take")
			assert.Equal(t, 2, srv.Requests()["multiRead"]-before["multiRead"])
			require.NoError(t, h.Release())
			last, err := locks.NewInterProcessMutex(other, fmt.Sprintf("/l/%d", n-2)).Acquire(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 1.0, kit.RoundTrips(t, func() error {
				_, err := lock.TryAcquire(t.Context(), 0)
				assert.ErrorIs(t, err, locks.ErrNotAcquired)
				return nil
			}), "taken: look")
			require.NoError(t, last.Release())
			assert.Equal(t, 1, srv.Requests()["getChildren"]-before["getChildren"], "by the other alone")
		})
	}
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
