package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Each round fails, and the client is connected when the wait ends. The error said that the
// context had ended, and TryAcquire's that the client was not connected.
func TestWaitErrorSaysWhyTheLastRoundFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		srv.On(zktest.Match{Op: "create2"}, zktest.Fail(-127)) // throttled
		mutex := locks.NewInterProcessMutex(c, "/l")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := mutex.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "context deadline exceeded: server answered code -127 (throttled")
		_, err = mutex.TryAcquire(t.Context(), 5*time.Second)
		require.ErrorIs(t, err, framework.ErrNotConnected)
		require.ErrorContains(t, err, "not connected: server answered code -127 (throttled")
	})
}
