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

// Lock objects of one client that state different numbers of leases are refused
// while one of them is in use.
func TestDifferentNumbersOfLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		three, two := locks.NewInterProcessSemaphore(c, "/s", 3), locks.NewInterProcessSemaphore(c, "/s", 2)
		one := locks.NewInterProcessSemaphoreMutex(c, "/s")
		both := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/m"), one)
		same := locks.NewInterProcessSemaphore(c, "/s", 3)
		mustRefuse := func(lockSet ...locks.Lock) {
			t.Helper()
			for _, lock := range lockSet {
				before := srv.Requests()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				_, err := lock.Acquire(ctx)
				cancel()
				require.ErrorIs(t, err, locks.ErrInvalidLock)
				require.ErrorContains(t, err, "/s")
				require.ErrorContains(t, err, "leases")
				assert.Equal(t, before, srv.Requests(), "at once")
			}
		}
		all, err := three.AcquireN(t.Context(), 3)
		require.NoError(t, err)
		mustRefuse(two, one, both)
		for _, m := range all.Members()[:2] {
			require.NoError(t, m.Release())
		}
		mustRefuse(two, one)
		again, err := same.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, again.Release())
		require.NoError(t, all.Release())

		h, err := both.Acquire(t.Context())
		require.NoError(t, err, "the other is not in use any more")
		mustRefuse(three, two)
		ctx, cancel := context.WithCancel(t.Context())
		waits := make(chan error, 1)
		go func() {
			_, err := one.Acquire(ctx)
			waits <- err
		}()
		time.Sleep(time.Second)
		require.NoError(t, h.Release())
		synctest.Wait()
		mustRefuse(three)
		require.NoError(t, <-waits)
		cancel()

		require.NoError(t, srv.ExpireSession(c.SessionID()))
		time.Sleep(time.Minute)
		h, err = two.Acquire(t.Context())
		require.NoError(t, err, "the lease of the other is gone")
		require.NoError(t, h.Release())
		h, err = three.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Release())
	})
}
