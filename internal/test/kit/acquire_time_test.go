package kit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		lock, other := locks.NewInterProcessMutex(Connect(t, srv), "/l"), locks.NewInterProcessMutex(Connect(t, srv), "/l")
		h := Acquire(t, lock).Soon()
		next := Acquire(t, other)
		assert.True(t, next.Pending())
		assert.True(t, next.Waits())
		assert.Contains(t, fails(t, func(t testing.TB) { Acquire(t, other).Soon() }), "waited for nothing")
		require.NoError(t, h.Release())
		assert.False(t, next.Waits())
		<-next.Done()
		assert.False(t, next.Pending())
		require.NoError(t, next.Soon().Release())
	})
}

func TestAcquireThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := Connect(t, srv)
		Hold(t, locks.NewInterProcessMutex(c, "/l"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := AcquireWith(ctx, t, locks.NewInterProcessMutex(c, "/l")).Result()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		errNo := errors.New("no")
		no := func() (*locks.Hold, error) { return nil, errNo }
		assert.Contains(t, fails(t, func(t testing.TB) { Begin(t, no).Soon() }), "no")
		nothing := func() (*locks.Hold, error) { return nil, nil }
		assert.Contains(t, fails(t, func(t testing.TB) { _, _ = Begin(t, nothing).Result() }), "a hold or an error")
	})
}

func TestQueue(t *testing.T) {
	srv := zktest.Start(t)
	c, other := Connect(t, srv), Connect(t, srv)
	lock, next := locks.NewInterProcessMutex(c, "/l"), locks.NewInterProcessMutex(other, "/l")
	t.Run("waits until the test ends", func(t *testing.T) {
		Hold(t, lock)
		Queue(t, next)
		require.NoError(t, srv.WaitChildren(t.Context(), "/l", 2))
	})
	Eventually(t, "nothing is left", func() error {
		if len(srv.Ephemerals(0)) > 0 {
			return errors.New("nodes are left")
		}
		return nil
	})
	h, err := lock.Acquire(t.Context())
	require.NoError(t, err)
	Queue(t, next)
	require.NoError(t, h.Release())
	require.NoError(t, Acquire(t, lock).Soon().Release(), "the other one has given it back")
}
