package locks_test

import (
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

// However long a client has held nothing, a free lock takes one round trip.
func TestFirstLockAfterIdling(t *testing.T) {
	for _, idle := range []time.Duration{0, time.Second, 10 * time.Second, 29 * time.Second, time.Minute, time.Hour} {
		t.Run(idle.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c := kit.Connect(t, srv)
				m := locks.NewInterProcessMutex(c, "/l")
				_, err := c.Create(t.Context(), "/l", nil, framework.Persistent)
				require.NoError(t, err)
				before := srv.Requests()
				time.Sleep(idle)
				syncs := srv.Requests()["sync"] - before["sync"]
				assert.LessOrEqual(t, syncs, 1+int(6.2*idle.Seconds()/30))
				assert.Equal(t, before["multi"], srv.Requests()["multi"])
				began := time.Now()
				h, err := m.Acquire(t.Context())
				require.NoError(t, err)
				assert.Equal(t, 2*d, time.Since(began))
				require.NoError(t, h.Release())
			})
		})
	}
}
