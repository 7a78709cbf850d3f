package locks_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
			assert.Equal(t, tc.acquire, kit.RoundTrips(t, kit.Into(&h, tc.lock)), "acquire")
			assert.Equal(t, tc.release, kit.RoundTrips(t, h.Release), "release")
		}
	})
}

func TestRoundTripsWithoutParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		var h *locks.Hold
		// The creation that finds no parent, two to make it however deep it is, and the pair.
		assert.Equal(t, 4.0, kit.RoundTrips(t, kit.Into(&h, locks.NewInterProcessMutex(c, "/a/b/c/d/e"))))
		assert.Equal(t, 1.0, kit.RoundTrips(t, h.Release))
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
		assert.Zero(t, kit.RoundTrips(t, func() (err error) { inner, err = m.Acquire(h.Context()); return err }))
		assert.Zero(t, kit.RoundTrips(t, func() error { _, err := m.TryAcquire(h.Context(), 0); return err }))
		assert.Zero(t, kit.RoundTrips(t, inner.Release))
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
			assert.Zero(t, kit.RoundTrips(t, func() error {
				_, err := lock.Acquire(t.Context())
				require.ErrorIs(t, err, locks.ErrInvalidLock, name)
				return nil
			}))
		}
	})
}
