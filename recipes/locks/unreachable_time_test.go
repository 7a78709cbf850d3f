package locks_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// The limit on dialing was a context as well, so that nobody who could be asked
// looked like the end of the caller's context.
func TestTryAcquireWhileDialingHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := framework.Start(framework.Config{ConnectString: "127.0.0.1:1", DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		for _, wait := range []time.Duration{0, 20 * time.Second} {
			_, err = locks.NewInterProcessMutex(c, "/l").TryAcquire(t.Context(), wait)
			require.ErrorIs(t, err, framework.ErrNotConnected)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			assert.NotErrorIs(t, err, locks.ErrNotAcquired)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = locks.NewInterProcessMutex(c, "/l").TryAcquire(ctx, 20*time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, framework.ErrNotConnected)
	})
}
