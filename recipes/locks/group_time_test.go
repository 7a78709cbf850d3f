package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A MultiLock is lost with any of its members, and its context ends then.
func TestMemberIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, operator := kit.Connect(t, srv), kit.Connect(t, srv)
		for i := range 2 {
			h, err := kit.MultiAt("/l")(c).Acquire(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Second)
			require.NoError(t, operator.Delete(t.Context(), h.Members()[i].Path(), 0))
			time.Sleep(time.Second)
			require.ErrorIs(t, context.Cause(h.Context()), locks.ErrLockLost)
			require.ErrorIs(t, h.Release(), locks.ErrLockLost)
			time.Sleep(time.Second)
			assert.Empty(t, srv.Ephemerals(0), "the other one is given back")
		}
	})
}

// A member that is released early is over by itself; the rest goes on.
func TestContextsOfAMemberEndBeforeItIsGivenBack(t *testing.T) {
	for _, name := range []string{"semaphore", "multi"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				h, err := kit.Locks[name](c).Acquire(t.Context())
				require.NoError(t, err)
				first := h.Members()[0]
				looked := endedWhenGiven(t, srv, c.SessionID(), allShown(t, first))
				require.NoError(t, first.Release())
				assert.Equal(t, int32(1), looked.Load())
				require.NoError(t, h.Context().Err())
				require.NoError(t, h.Members()[1].Context().Err())
				looked = endedWhenGiven(t, srv, c.SessionID(), allShown(t, h))
				require.NoError(t, h.Release())
				assert.Equal(t, int32(1), looked.Load())
			})
		})
	}
}
