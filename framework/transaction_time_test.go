package framework_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// All mistakes are named, in the order of the operations, and nothing is sent.
func TestTransactionNamesAllMistakes(t *testing.T) {
	withReceipts(t, func(t *testing.T, srv *zktest.Server, c, _ *framework.Client) {
		tx := c.Transaction()
		tx.Create("bad", nil, framework.Persistent)
		tx.Set("/a", nil, 0)
		tx.Set("/a/", nil, 0)
		tx.Delete("/a", -5)
		tx.Create("/b", nil, framework.Mode(9))
		before := srv.Requests()
		for range 2 {
			_, err := tx.Commit(t.Context())
			require.EqualError(t, err, `commit /app/a: operation 0 of the transaction: create bad: zk: invalid path: "bad": it does not begin with a slash
operation 2 of the transaction: set /a/: zk: invalid path: "/a/": it ends with a slash
operation 3 of the transaction: delete /app/a: invalid argument: version -5: use 0 or more, or AnyVersion
operation 4 of the transaction: create /app/b: invalid argument: mode 9`)
			require.ErrorIs(t, err, framework.ErrInvalidPath)
			require.ErrorIs(t, err, framework.ErrInvalidArgument)
		}
		assert.Equal(t, before, srv.Requests())
	})
}

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
