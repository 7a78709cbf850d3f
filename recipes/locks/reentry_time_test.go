package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A call with the context of a lost hold is refused, and gets no other hold.
func TestLostHoldIsNotEnteredAgain(t *testing.T) {
	for _, name := range []string{"mutex", "write", "read", "multi"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				h, err := kit.Locks[name](c).Acquire(t.Context())
				require.NoError(t, err)
				require.NoError(t, srv.ExpireSession(c.SessionID()))
				<-h.Context().Done()
				_, err = kit.Locks[name](c).TryAcquire(context.WithoutCancel(h.Context()), time.Minute)
				require.ErrorIs(t, err, locks.ErrLockLost)
				require.ErrorIs(t, h.Release(), locks.ErrLockLost)
			})
		})
	}
}
