package locks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/recipes/locks"
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
