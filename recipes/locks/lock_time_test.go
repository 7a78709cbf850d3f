package locks_test

import (
	"context"
	"errors"
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

// losable is a lock of the test's own, whose hold is lost on command.
type losable struct {
	lost    func(cause error)
	release error
}

func (l *losable) Acquire(ctx context.Context) (hold *locks.Hold, _ error) {
	hold, l.lost = locks.NewHold(ctx, func() error { return l.release })
	return hold, nil
}

func (l *losable) TryAcquire(ctx context.Context, _ time.Duration) (*locks.Hold, error) {
	return l.Acquire(ctx)
}

// That another lock was lost, which work reports, does not say that this one was.
func TestDoTellsWhichLockWasLost(t *testing.T) {
	outer, inner := &losable{}, &losable{}
	errOuter, errInner := errors.New("outer"), errors.New("inner")
	err := locks.Do(t.Context(), outer, func(ctx context.Context) error {
		outer.lost(errOuter)
		return locks.Do(context.WithoutCancel(ctx), inner, func(ctx context.Context) error {
			inner.lost(errInner)
			return context.Cause(ctx)
		})
	})
	require.ErrorIs(t, err, errInner)
	require.ErrorIs(t, err, errOuter)
	assert.EqualError(t, err, "lock lost: inner\nlock lost: outer", "each once")
}

// What Do cannot work with is an error, and the lock is not taken.
func TestDoWithoutLockOrWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		lock := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l")
		before := len(srv.Ephemerals(0))
		for _, err := range []error{locks.Do(t.Context(), lock, nil), locks.TryDo(t.Context(), lock, 0, nil)} {
			require.ErrorIs(t, err, framework.ErrInvalidArgument)
			require.EqualError(t, err, "invalid argument: work is nil")
		}
		work := func(context.Context) error { return errors.New("called") }
		for _, err := range []error{locks.Do(t.Context(), nil, work), locks.TryDo(t.Context(), nil, 0, work)} {
			require.ErrorIs(t, err, locks.ErrInvalidLock)
		}
		require.ErrorIs(t, locks.Do(t.Context(), empty{}, work), locks.ErrInvalidLock, "neither a hold nor an error")
		assert.Len(t, srv.Ephemerals(0), before)

		hold, _ := locks.NewHold(t.Context(), nil)
		require.NoError(t, hold.Release())
	})
}

// empty is a lock that says nothing.
type empty struct{}

func (empty) Acquire(context.Context) (*locks.Hold, error) { return nil, nil }

func (empty) TryAcquire(context.Context, time.Duration) (*locks.Hold, error) { return nil, nil }
