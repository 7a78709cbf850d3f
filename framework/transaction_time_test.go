package framework_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// What came after a lost reply is in the text alone.
func TestTransactionSentAgainAndRefused(t *testing.T) {
	withReceipts(t, func(t *testing.T, srv *zktest.Server, c, admin *framework.Client) {
		id := c.SessionID()
		srv.On(zktest.Match{Op: "multi", Session: id, Nth: 1}, zktest.CutAfter())
		srv.On(zktest.Match{Op: "connect", Session: id, Nth: 1}, zktest.Call(func(zktest.Request) {
			_, _ = admin.Set(context.Background(), "/app/a", []byte("2"), framework.AnyVersion)
		}))
		tx := c.Transaction()
		tx.Set("/a", []byte("1"), 0)
		_, err := tx.Commit(t.Context(), framework.Idempotent())
		require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, framework.ErrBadVersion)
		var refused *framework.TransactionError
		assert.NotErrorAs(t, err, &refused)
		assert.Contains(t, err.Error(), "outcome unknown: sent again, it was refused: operation 0 on /app/a: ")
	})
}
