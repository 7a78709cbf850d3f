package framework_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
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

// The reply to a transaction is longer than the client accepts: nobody has told it what has
// become of that.
func TestTransactionWithALongReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.MaxReply = 4 << 10 })
		_, err := c.Create(t.Context(), "/a", nil, framework.Persistent)
		require.NoError(t, err)
		commit := func() error {
			txn := c.Transaction()
			for range 100 { // each is answered with a Stat
				txn.Set("/a", []byte("new"), framework.AnyVersion)
			}
			_, err := txn.Commit(t.Context())
			return err
		}
		err = commit()
		require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
		require.ErrorIs(t, err, framework.ErrReplyTooLarge)
		_, stat, err := c.Get(t.Context(), "/a")
		require.NoError(t, err)
		assert.Equal(t, int32(100), stat.Version, "applied once")
	})
}
