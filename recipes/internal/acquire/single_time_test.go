package acquire_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestRoundTripsOfTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		a, b := kit.Connect(t, srv), kit.Connect(t, srv)
		require.NoError(t, a.EnsurePath(t.Context(), "/l"))
		ma, mb := locks.NewInterProcessMutex(a, "/l"), locks.NewInterProcessMutex(b, "/l")
		var h *locks.Hold
		assert.Equal(t, 2.0, kit.RoundTrips(t, func() (err error) { h, err = ma.TryAcquire(t.Context(), 0); return err }), "free: look, then take")
		assert.Equal(t, 1.0, kit.RoundTrips(t, func() error {
			_, err := mb.TryAcquire(t.Context(), 0)
			assert.ErrorIs(t, err, locks.ErrNotAcquired)
			return nil
		}), "taken: look")
		require.NoError(t, h.Release())
		assert.Equal(t, 1.0, kit.RoundTrips(t, func() (err error) { h, err = mb.TryAcquire(t.Context(), time.Second); return err }))
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

func TestReadersWaitForTheLastWriterAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		writer, reader := kit.Connect(t, srv), kit.Connect(t, srv)
		var writers []<-chan *locks.Hold
		acquire := func(m *locks.InterProcessMutex) <-chan *locks.Hold {
			got := make(chan *locks.Hold, 1)
			go func() {
				h, err := m.Acquire(t.Context())
				assert.NoError(t, err)
				got <- h
			}()
			synctest.Wait()
			return got
		}
		for range 3 {
			writers = append(writers, acquire(locks.NewInterProcessReadWriteLock(writer, "/l", locks.LocalHandovers(0)).WriteLock()))
		}
		one := acquire(locks.NewInterProcessReadWriteLock(reader, "/l").ReadLock())
		two := acquire(locks.NewInterProcessReadWriteLock(reader, "/l").ReadLock())
		for i, w := range writers {
			before := srv.Requests()["getChildren"]
			require.NoError(t, (<-w).Release())
			synctest.Wait()
			// The next writer looks once; the readers only after the last one.
			want := 1
			if i == len(writers)-1 {
				want = 2
			}
			assert.Equal(t, want, srv.Requests()["getChildren"]-before, "writer %d", i)
		}
		require.NoError(t, (<-one).Release())
		require.NoError(t, (<-two).Release())
		assert.Empty(t, srv.Watches())
	})
}
