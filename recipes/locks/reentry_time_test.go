package locks_test

import (
	"context"
	"strings"
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

// A namespace is part of a path, so lock objects of two namespaces can be one lock. Each hold
// speaks of paths as the client does that its lock was made with.
func TestReentryFromAnotherNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		lock := func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessMutex(c, path) }
		spaced := c.UsingNamespace("n")
		_, err := c.Create(t.Context(), "/n", nil, framework.Persistent)
		require.NoError(t, err)

		outer, err := lock(spaced, "/l").Acquire(t.Context())
		require.NoError(t, err)
		inner, err := lock(c, "/n/l").Acquire(outer.Context())
		require.NoError(t, err)
		both, err := locks.NewInterProcessMultiLock(lock(c, "/n/l"), lock(c, "/m")).Acquire(outer.Context())
		require.NoError(t, err)
		again, err := lock(spaced, "/l").Acquire(inner.Context())
		require.NoError(t, err)

		assert.Equal(t, "/n"+outer.Path(), inner.Path())
		assert.Equal(t, inner.Path(), both.Members()[1].Path())
		assert.Equal(t, outer.Path(), again.Path())
		for path, hold := range map[string]*locks.Hold{"/n/outer": outer, "/inner": inner, "/both": both, "/n/again": again} {
			tx := hold.Transaction()
			tx.Create(path[strings.LastIndex(path, "/"):], nil, framework.Persistent)
			_, err := tx.Commit(t.Context())
			require.NoError(t, err)
			there, _, err := c.Exists(t.Context(), path)
			require.NoError(t, err)
			assert.True(t, there, path)
		}
		for _, hold := range []*locks.Hold{again, both, inner, outer} {
			require.NoError(t, hold.Release())
		}
	})
}
