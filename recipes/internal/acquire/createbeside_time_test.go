package acquire_test

import (
	"context"
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

func TestDowngradeThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		lock := locks.NewInterProcessReadWriteLock(c, "/rw")
		w, err := lock.WriteLock().Acquire(t.Context())
		require.NoError(t, err)
		rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "multi"}, zktest.Fail(-102))
		_, err = lock.ReadLock().Acquire(w.Context())
		require.ErrorIs(t, err, framework.ErrNoAuth)
		require.ErrorContains(t, err, "downgrade")
		rule.Remove()
		require.NoError(t, w.Err(), "the write side goes on")
		assert.Len(t, srv.Ephemerals(0), 1)

		// Its session ends before the node of the read side can be made.
		srv.On(zktest.Match{Session: c.SessionID(), Op: "multi"}, zktest.Call(func(r zktest.Request) { _ = srv.ExpireSession(r.Session) }))
		_, err = lock.ReadLock().Acquire(w.Context())
		require.ErrorIs(t, err, locks.ErrLockLost)
		require.ErrorIs(t, err, framework.ErrSessionExpired)
		require.ErrorIs(t, w.Release(), locks.ErrLockLost)
		_, err = lock.ReadLock().Acquire(context.WithoutCancel(w.Context()))
		require.NoError(t, err, "who comes from a hold that was released is nobody special")
		next, err := locks.NewInterProcessReadWriteLock(other, "/rw").ReadLock().Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, next.Release())
	})
}

// Somebody deletes the node of the write side, and another writer has the lock already. A
// node of the read side with the same number would stand before that writer.
func TestDowngradeOfADeletedNode(t *testing.T) {
	const near = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(near), zktest.TransactionLog())
		c, other, operator := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
		lock := locks.NewInterProcessReadWriteLock(c, "/rw")
		w, err := lock.WriteLock().Acquire(t.Context())
		require.NoError(t, err)
		node := srv.Ephemerals(0)[0]
		next := kit.Acquire(t, locks.NewInterProcessReadWriteLock(other, "/rw").WriteLock())
		require.NoError(t, srv.WaitChildren(t.Context(), "/rw", 2))
		deleted := make(chan error, 1)
		go func() { deleted <- operator.Delete(context.Background(), node, -1) }()
		time.Sleep(near * 3 / 2) // it is gone, and the news is on its way
		require.NoError(t, w.Err())
		_, err = lock.ReadLock().Acquire(w.Context())
		require.ErrorIs(t, err, locks.ErrNodeDeleted)
		require.NoError(t, <-deleted)
		h := next.Soon()
		assert.Len(t, srv.Ephemerals(0), 1, "the other writer's")
		log := fmt.Sprint(srv.Transactions())
		assert.Contains(t, log, "__WRIT__")
		assert.NotContains(t, log, "__READ__")
		require.NoError(t, h.Release())
		require.ErrorIs(t, w.Release(), locks.ErrLockLost)
	})
}

// The session is given up while the reply is awaited: no write is answered any
// more, though pings are.
func TestDowngradeWithoutReply(t *testing.T) {
	for name, from := range map[string]func(*locks.Hold) context.Context{
		"its context":              (*locks.Hold).Context,
		"one that does not end it": func(h *locks.Hold) context.Context { return context.WithoutCancel(h.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				lock := locks.NewInterProcessReadWriteLock(c, "/rw")
				w, err := lock.WriteLock().Acquire(t.Context())
				require.NoError(t, err)
				for _, op := range []string{"create2", "multi"} {
					srv.On(zktest.Match{Session: c.SessionID(), Op: op}, zktest.Delay(time.Hour))
				}
				_, err = lock.ReadLock().Acquire(from(w))
				require.ErrorIs(t, err, locks.ErrLockLost)
				require.NotErrorIs(t, err, framework.ErrOutcomeUnknown)
				require.ErrorIs(t, w.Release(), locks.ErrLockLost)
				r, err := lock.ReadLock().Acquire(t.Context())
				require.NoError(t, err)
				assert.Len(t, srv.Ephemerals(0), 1, "nothing is left of the other")
				require.NoError(t, r.Release())
			})
		})
	}
}
