package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestPassing(t *testing.T) {
	for err, want := range map[error]bool{
		ErrNotConnected:                               true,
		ErrOutcomeUnknown:                             true,
		zk.ErrSessionMoved:                            true,
		Error(wire.CodeConnectionLoss):                true,
		Error(wire.CodeThrottledOp):                   true,
		Error(wire.CodeNotReadOnly):                   true,
		errors.Join(errors.New("x"), ErrNotConnected): true,
		ErrClosed:                               false,
		errors.Join(ErrClosed, ErrNotConnected): false,
		ErrSessionOver:                          false,
		zk.ErrNoNode:                            false,
		zk.ErrNoAuth:                            false,
		Error(wire.CodeUnimplemented):           false,
		context.Canceled:                        false,
		errors.New("of somebody else"):          false,
	} {
		assert.Equal(t, want, Passing(err), "%v", err)
	}
}

// What fails is tried again after pauses that double.
func TestRetryUntilDone_Pauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := opened(t, zktest.Start(t, zktest.InMemory()))
		began, tries := time.Now(), 0
		require.NoError(t, RetryUntilDone(t.Context(), s, func(context.Context) error {
			if tries++; tries <= 12 {
				return ErrNotConnected
			}
			return nil
		}))
		// 50 ms, doubled up to 5 s, of which a random half is left out at most.
		all := 50*time.Millisecond*(1<<7-1) + 5*MostPause
		assert.LessOrEqual(t, time.Since(began), all)
		assert.GreaterOrEqual(t, time.Since(began), all/2)

		tries = 0
		err := RetryUntilDone(t.Context(), s, func(context.Context) error { tries++; return zk.ErrNoAuth })
		require.Equal(t, zk.ErrNoAuth, err)
		assert.Equal(t, 1, tries, "repeating cannot cure it")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		err = RetryUntilDone(ctx, s, func(context.Context) error { return ErrNotConnected })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Minute, time.Since(began))
	})
}

// Close ends what runs in the background, and waits for it.
func TestGo_EndsWithTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := opened(t, zktest.Start(t, zktest.InMemory()))
		var ended error
		require.True(t, s.Go(func(ctx context.Context) {
			ended = RetryUntilDone(ctx, s, func(context.Context) error { return ErrNotConnected })
		}))
		time.Sleep(time.Minute)
		require.NoError(t, s.Close())
		require.ErrorIs(t, ended, ErrClosed)
		assert.False(t, s.Go(func(context.Context) { assert.Fail(t, "it is closed") }))
	})
}
