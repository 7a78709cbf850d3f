package locks_test

import (
	"context"
	"errors"
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

// A hold that is released ends the context of one that was acquired under it. The lock of
// that one stays held, and a context can be bound to it: hand over hand.
func TestContextEndsWithTheHoldAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		outer, err := locks.NewInterProcessMutex(c, "/a").Acquire(t.Context())
		require.NoError(t, err)
		inner, err := locks.NewInterProcessMutex(c, "/b").Acquire(outer.Context())
		require.NoError(t, err)
		bound, cancel := inner.Bind(t.Context())
		defer cancel()
		looked := endedWhenGiven(t, srv, c.SessionID(), []context.Context{outer.Context(), inner.Context()})
		require.NoError(t, outer.Release())
		assert.Equal(t, int32(1), looked.Load())
		require.ErrorIs(t, context.Cause(inner.Context()), locks.ErrReleased)
		assert.Equal(t, locks.Held, inner.State())
		require.NoError(t, bound.Err())
		looked = endedWhenGiven(t, srv, c.SessionID(), []context.Context{bound})
		require.NoError(t, inner.Release())
		assert.Equal(t, int32(1), looked.Load())
	})
}

// entries are the ways in which a hold shares the lock of the hold that it comes from.
var entries = map[string]func(c *framework.Client) (outer, inner locks.Lock){
	"re-entry": func(c *framework.Client) (outer, inner locks.Lock) {
		m := locks.NewInterProcessMutex(c, "/l")
		return m, m
	},
	"downgrade": func(c *framework.Client) (outer, inner locks.Lock) {
		rw := locks.NewInterProcessReadWriteLock(c, "/l")
		return rw.WriteLock(), rw.ReadLock()
	},
	"multi-lock": func(c *framework.Client) (outer, inner locks.Lock) {
		both := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l"), locks.NewInterProcessMutex(c, "/m"))
		return both, both
	},
	"member": func(c *framework.Client) (outer, inner locks.Lock) {
		m := locks.NewInterProcessMutex(c, "/l")
		return locks.NewInterProcessMultiLock(m, locks.NewInterProcessMutex(c, "/m")), m
	},
}

// A hold that was entered from another one outlasts it, with the values and the deadline
// of its own context. It ends with the context that the other one was acquired with.
func TestContextOutlastsTheHoldThatWasEntered(t *testing.T) {
	t.Parallel()
	errStop := errors.New("stop")
	for name, entry := range entries {
		for way, tc := range map[string]struct {
			release, cancel, endOutermost, wait bool
			err, cause                          error
		}{
			"released":                            {release: true},
			"cancelled before":                    {cancel: true, err: context.Canceled, cause: errStop},
			"outermost":                           {endOutermost: true, err: context.Canceled, cause: errParent},
			"released, and then outermost":        {release: true, endOutermost: true, err: context.Canceled, cause: errParent},
			"deadline":                            {wait: true, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
			"released, and then the deadline":     {release: true, wait: true, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
			"cancelled before, and then released": {cancel: true, release: true, err: context.Canceled, cause: errStop},
		} {
			for _, shownLate := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s, shown late: %v", name, way, shownLate), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := zktest.Start(t, zktest.InMemory())
						outerLock, innerLock := entry(kit.Connect(t, srv))
						base, endBase := context.WithCancelCause(t.Context())
						defer endBase(nil)
						outer, err := outerLock.Acquire(base)
						require.NoError(t, err)
						ctx, cancel := context.WithCancelCause(context.WithValue(outer.Context(), someKey{}, "value"))
						defer cancel(nil)
						ctx, stop := context.WithTimeout(ctx, time.Minute)
						defer stop()
						inner, err := innerLock.Acquire(ctx)
						require.NoError(t, err)
						if !shownLate {
							inner.Context()
						}
						if tc.cancel {
							cancel(errStop)
							synctest.Wait()
						}
						if tc.release {
							require.NoError(t, outer.Release())
							synctest.Wait()
						}
						if tc.endOutermost {
							endBase(errParent)
						}
						if tc.wait {
							time.Sleep(2 * time.Minute)
						}
						if shownLate {
							inner.Context()
						}
						synctest.Wait()
						assert.Equal(t, tc.err, inner.Context().Err())
						assert.Equal(t, tc.cause, context.Cause(inner.Context()))
						assert.Equal(t, "value", inner.Context().Value(someKey{}))
						deadline, _ := ctx.Deadline()
						got, has := inner.Context().Deadline()
						assert.True(t, has)
						assert.Equal(t, deadline, got)
						require.NoError(t, inner.Err())
						looked := endedWhenGiven(t, srv, 0, shown(t, inner))
						require.NoError(t, inner.Release())
						if !tc.release {
							require.NoError(t, outer.Release())
						}
						assert.Equal(t, int32(1), looked.Load())
					})
				})
			}
		}
	}
}

// Holds that were entered one from another go on as long as the last of them.
func TestContextOutlastsAllThatWereEntered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		m := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l")
		base, endBase := context.WithCancelCause(t.Context())
		ctx := base
		var holds []*locks.Hold
		for range 4 {
			h, err := m.Acquire(ctx)
			require.NoError(t, err)
			holds, ctx = append(holds, h), h.Context()
		}
		for _, i := range []int{1, 0, 2} {
			require.NoError(t, holds[i].Release())
			synctest.Wait()
			require.ErrorIs(t, context.Cause(holds[i].Context()), locks.ErrReleased)
			require.NoError(t, holds[3].Context().Err())
		}
		endBase(errParent)
		synctest.Wait()
		require.ErrorIs(t, context.Cause(holds[3].Context()), errParent)
		require.NoError(t, holds[3].Release())
	})
}
