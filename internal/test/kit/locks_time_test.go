package kit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestEachLock(t *testing.T) {
	ran := 0
	EachLock(t, func(t *testing.T, lock LockOf) {
		ran++
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(Latency))
		c := Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/l"))
		var h *locks.Hold
		assert.GreaterOrEqual(t, RoundTrips(t, Into(&h, lock(c))), 1.0)
		assert.NotEmpty(t, srv.Ephemerals(c.SessionID()))
		require.NoError(t, h.Release())
		h, err := lock(c).TryAcquire(t.Context(), time.Minute)
		require.NoError(t, err)
		require.NoError(t, h.Release())
		time.Sleep(time.Second)
		NothingLeft(t, srv)
	})
	assert.Equal(t, len(Locks), ran)
}

func TestInLine(t *testing.T) {
	EachLock(t, func(t *testing.T, lock LockOf) {
		srv := zktest.Start(t, zktest.InMemory())
		h, err := lock(Connect(t, srv)).Acquire(t.Context())
		require.NoError(t, err)
		var got []int
		one := make(chan struct{}, 1) // readers have the lock together
		wg := InLine(t, 3, Same(lock(Connect(t, srv))), func(i int, _ *locks.Hold) {
			one <- struct{}{}
			got = append(got, i)
			<-one
		})
		require.NoError(t, h.Release())
		wg.Wait()
		assert.Equal(t, []int{0, 1, 2}, got)
	})
}
