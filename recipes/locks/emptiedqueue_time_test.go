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

// Somebody deletes all nodes of the queues in which a MultiLock waits, and its wait ends
// before it has a node again.
func TestMultiLockWhoseQueuesAreEmptied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		holder, c, other := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
		kit.Hold(t, locks.NewInterProcessMutex(holder, "/l/b"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l/a"), locks.NewInterProcessMutex(c, "/l/b")).Acquire(ctx)
			ended <- err
		}()
		time.Sleep(time.Second)
		srv.On(zktest.Match{Op: "multi", Session: c.SessionID()}, zktest.Delay(time.Minute))
		tx := other.Transaction()
		for _, queue := range []string{"/l/a", "/l/b"} {
			names, _, err := other.Children(t.Context(), queue)
			require.NoError(t, err)
			for _, name := range names {
				tx.Delete(queue+"/"+name, framework.AnyVersion)
			}
		}
		_, err := tx.Commit(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, <-ended, context.DeadlineExceeded)
	})
}
