package locks_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestHoldThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		rw := locks.NewInterProcessReadWriteLock(c, "/rw")
		both := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b"))
		write, err := rw.WriteLock().Acquire(t.Context())
		require.NoError(t, err)
		group, err := both.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, srv.ExpireSession(c.SessionID()))
		<-write.Context().Done()
		<-group.Context().Done()
		require.NoError(t, c.BlockUntilConnected(t.Context()))

		assert.Zero(t, write.FencingToken())
		assert.Zero(t, group.FencingToken())
		for _, h := range []*locks.Hold{write, group} {
			bound, cancel := h.Bind(t.Context())
			require.ErrorIs(t, context.Cause(bound), locks.ErrLockLost)
			cancel()
			var told []locks.HoldState
			stop := h.Listen(func(s locks.HoldState) { told = append(told, s) })
			synctest.Wait()
			stop()
			assert.Equal(t, []locks.HoldState{locks.Lost}, told)
		}
		// Code that works on under a context without an end has lost the lock as well.
		_, err = rw.ReadLock().Acquire(context.WithoutCancel(write.Context()))
		require.ErrorIs(t, err, locks.ErrLockLost)
		_, err = rw.WriteLock().Acquire(context.WithoutCancel(write.Context()))
		require.ErrorIs(t, err, locks.ErrLockLost)
		require.ErrorIs(t, write.Release(), locks.ErrLockLost)
		require.ErrorIs(t, group.Release(), locks.ErrLockLost)

		group, err = both.Acquire(t.Context())
		require.NoError(t, err)
		for _, member := range group.Members() {
			require.NoError(t, member.Release())
		}
		_, err = group.Transaction().Commit(t.Context())
		require.ErrorIs(t, err, locks.ErrReleased, "nothing is left that could prove anything")
		require.NoError(t, group.Release())
	})
}

func TestHoldThatIsNone(t *testing.T) {
	var h locks.Hold
	assert.Empty(t, h.Path())
	assert.Empty(t, h.Members())
	assert.Zero(t, h.FencingToken())
	assert.ErrorIs(t, h.Err(), locks.ErrReleased)
	assert.Nil(t, h.Revoked())
	h.Listen(func(locks.HoldState) { t.Error("there is no state to tell") })()
	bound, cancel := h.Bind(t.Context())
	defer cancel()
	assert.ErrorIs(t, context.Cause(bound), locks.ErrReleased)
	<-h.Gone()
	assert.Equal(t, "RELEASED", h.State().String())
	for state, text := range map[locks.HoldState]string{locks.Held: "HELD", locks.Uncertain: "UNCERTAIN", locks.Lost: "LOST", 0: "NONE"} {
		assert.Equal(t, text, state.String())
	}
}

// A context that is missing ends nothing but what it was to begin.
func TestNilContextOfAHold(t *testing.T) {
	hold, _ := locks.NewHold(nil, nil) //nolint:staticcheck // what nil does
	assert.Equal(t, "HELD", fmt.Sprint(hold))
	bound, cancel := hold.Bind(nil) //nolint:staticcheck // what nil does
	defer cancel()
	require.ErrorIs(t, bound.Err(), context.Canceled)
	require.ErrorIs(t, context.Cause(bound), framework.ErrNilContext)
	require.NoError(t, hold.Context().Err())
	require.NoError(t, hold.Release())
	assert.Equal(t, "RELEASED", hold.String())
	assert.Equal(t, "RELEASED", new(locks.Hold).String(), "a zero Hold is over")
}

// A hold under which another lock is held keeps its context for as long as that
// lasts.
func TestContextGoesOnForTheHoldsBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		outer, err := locks.NewInterProcessMutex(c, "/a").Acquire(t.Context())
		require.NoError(t, err)
		inner, err := locks.NewInterProcessMutex(c, "/b").Acquire(outer.Context())
		require.NoError(t, err)
		require.NoError(t, outer.Release())
		require.NoError(t, outer.Context().Err())
		require.NoError(t, inner.Context().Err())
		looked := endedWhenGiven(t, srv, c.SessionID(), append(shown(t, outer), shown(t, inner)...))
		require.NoError(t, inner.Release())
		assert.Equal(t, int32(1), looked.Load())
	})
}
