package framework_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Whatever others have done to the nodes since, and no result is told that is not
// of this transaction.
func TestReceiptOfNodesThatHaveChanged(t *testing.T) {
	withReceipts(t, func(t *testing.T, srv *zktest.Server, c, admin *framework.Client) {
		id := c.SessionID()
		srv.On(zktest.Match{Op: "multi", Session: id, Nth: 2}, zktest.CutAfter())
		srv.On(zktest.Match{Op: "connect", Session: id, Nth: 1}, zktest.Call(func(zktest.Request) {
			_, _ = admin.Set(context.Background(), "/app/a", []byte("2"), framework.AnyVersion)
			_ = admin.Delete(context.Background(), "/app/b", framework.AnyVersion)
		}))
		results, err := bump(c).Commit(t.Context(), ofReceipts)
		require.NoError(t, err)
		assert.Equal(t, []framework.Result{{}, {Path: "/b"}}, results)
		data, _, err := admin.Get(t.Context(), "/app/a")
		require.NoError(t, err)
		assert.Equal(t, "2", string(data), "not overwritten")
	})
}

// What may not be read tells nothing.
func TestTransactionThatMayNotBeReadBack(t *testing.T) {
	withReceipts(t, func(t *testing.T, srv *zktest.Server, c, admin *framework.Client) {
		_, err := admin.SetACL(t.Context(), "/app/a", zk.WorldACL(zk.PermWrite), framework.AnyVersion)
		require.NoError(t, err)
		srv.On(zktest.Match{Op: "multi", Session: c.SessionID(), Nth: 1}, zktest.CutAfter())
		tx := c.Transaction()
		tx.Set("/a", []byte("1"), 0)
		_, err = tx.Commit(t.Context(), framework.Idempotent())
		require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, framework.ErrNoAuth)
	})
}
