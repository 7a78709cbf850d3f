package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// It is a semaphore with one lease, and so no owner can have it twice.
func TestSemaphoreMutex_IsNotReentrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		m, same := locks.NewInterProcessSemaphoreMutex(c, "/s"), locks.NewInterProcessSemaphoreMutex(c, "/s")
		h, err := m.Acquire(t.Context())
		require.NoError(t, err)
		synctest.Wait() // its turn has ended
		before := srv.Requests()
		for _, lock := range []locks.Lock{m, same, locks.NewInterProcessSemaphore(c, "/s", 1)} {
			_, err = lock.Acquire(h.Context())
			require.ErrorIs(t, err, locks.ErrDeadlock)
			_, err = lock.TryAcquire(h.Context(), time.Minute)
			require.ErrorIs(t, err, locks.ErrDeadlock)
		}
		assert.Equal(t, before, srv.Requests(), "at once")
		_, err = m.TryAcquire(t.Context(), 0)
		require.ErrorIs(t, err, locks.ErrNotAcquired, "another caller")

		for _, lock := range []*locks.InterProcessSemaphoreMutex{m, same} {
			assert.True(t, lock.HeldBy(h.Context()))
			assert.False(t, lock.HeldBy(t.Context()))
		}
		assert.False(t, locks.NewInterProcessSemaphoreMutex(c, "/other").HeldBy(h.Context()))
		require.NoError(t, h.Release())
		assert.False(t, m.HeldBy(h.Context()))
		next, err := m.TryAcquire(context.WithoutCancel(h.Context()), 0)
		require.NoError(t, err, "who comes from a hold that was released is nobody special")
		require.NoError(t, next.Release())
	})
}
