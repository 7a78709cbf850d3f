package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// withReceipts runs fn with a client in a namespace, and looks whether a receipt
// is left.
func withReceipts(t *testing.T, fn func(t *testing.T, srv *zktest.Server, c, admin *framework.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		cfg := kit.Config(srv)
		admin := kit.Dial(t, cfg)
		_, err := admin.Create(t.Context(), "/app/a", []byte("0"), framework.Persistent, framework.Parents())
		require.NoError(t, err)
		cfg.Namespace = "app"
		fn(t, srv, kit.Dial(t, cfg), admin)
		time.Sleep(time.Minute)
		assert.Empty(t, srv.Ephemerals(0), "a receipt is left")
	})
}

// bump is a transaction that cannot be recognised afterwards.
func bump(c *framework.Client) *framework.Transaction {
	tx := c.Transaction()
	tx.Set("/a", []byte("1"), framework.AnyVersion)
	tx.Create("/b", nil, framework.Persistent)
	return tx
}

var ofReceipts = framework.Receipt("/made/for/receipts")

func TestReceipt(t *testing.T) {
	for name, fault := range map[string]func(srv *zktest.Server, id int64){
		"none": func(*zktest.Server, int64) {},
		"the parents are made": func(srv *zktest.Server, id int64) {
			srv.On(zktest.Match{Op: "multi", Session: id, Nth: 1}, zktest.CutAfter())
		},
		"the request is lost": func(srv *zktest.Server, id int64) {
			srv.On(zktest.Match{Op: "multi", Session: id, Nth: 2}, zktest.CutBefore())
		},
		"the reply is lost": func(srv *zktest.Server, id int64) {
			srv.On(zktest.Match{Op: "multi", Session: id, Nth: 2}, zktest.CutAfter())
		},
		"its reading is lost":    func(srv *zktest.Server, id int64) { cutTwice(srv, id, "exists", 2, zktest.CutAfter()) },
		"the barrier is lost":    func(srv *zktest.Server, id int64) { cutTwice(srv, id, "multi", 1, zktest.CutAfter()) },
		"the barrier is refused": func(srv *zktest.Server, id int64) { cutTwice(srv, id, "multi", 1, zktest.CutBefore()) },
		"the delete is lost": func(srv *zktest.Server, id int64) {
			srv.On(zktest.Match{Op: "delete", Session: id, Nth: 1}, zktest.CutBefore())
		},
		"a server is too busy for the delete": func(srv *zktest.Server, id int64) {
			srv.On(zktest.Match{Op: "delete", Session: id, Nth: 1}, zktest.Fail(-127))
		},
	} {
		t.Run(name, func(t *testing.T) {
			withReceipts(t, func(t *testing.T, srv *zktest.Server, c, admin *framework.Client) {
				fault(srv, c.SessionID())
				results, err := bump(c).Commit(t.Context(), ofReceipts)
				require.NoError(t, err)
				require.Len(t, results, 2)
				require.NotNil(t, results[0].Stat)
				assert.Equal(t, "/b", results[1].Path)
				_, stat, err := admin.Get(t.Context(), "/app/a")
				require.NoError(t, err)
				assert.Equal(t, stat, results[0].Stat)
				assert.Equal(t, int32(1), stat.Version, "applied once")
				time.Sleep(10 * time.Second)
				left, _, err := admin.Children(t.Context(), "/app/made/for/receipts")
				require.NoError(t, err)
				assert.Empty(t, left, "removed while the session goes on")
			})
		})
	}
}

// cutTwice cuts the transaction after it was applied, and then the n-th request of op behind it.
func cutTwice(srv *zktest.Server, id int64, op string, n int, fault zktest.Fault) {
	srv.On(zktest.Match{Op: "multi", Session: id, Nth: 2}, zktest.Call(func(zktest.Request) {
		srv.On(zktest.Match{Op: op, Session: id, Nth: n}, fault)
	}))
	srv.On(zktest.Match{Op: "multi", Session: id, Nth: 2}, zktest.CutAfter())
}

func TestReceiptWithoutAnAnswer(t *testing.T) {
	for name, meddle := range map[string]func(srv *zktest.Server, c *framework.Client, cancel func()){
		"cancelled": func(_ *zktest.Server, _ *framework.Client, cancel func()) { cancel() },
		"closed":    func(_ *zktest.Server, c *framework.Client, _ func()) { go func() { _ = c.Close() }() },
		"expired":   func(srv *zktest.Server, c *framework.Client, _ func()) { _ = srv.ExpireSession(c.SessionID()) },
	} {
		t.Run(name, func(t *testing.T) {
			withReceipts(t, func(t *testing.T, srv *zktest.Server, c, _ *framework.Client) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				id := c.SessionID()
				srv.On(zktest.Match{Op: "multi", Session: id, Nth: 2}, zktest.CutAfter())
				srv.On(zktest.Match{Op: "connect", Session: id, Nth: 1}, zktest.Call(func(zktest.Request) { meddle(srv, c, cancel) }))
				srv.On(zktest.Match{Op: "connect", Session: id, Nth: 1}, zktest.Delay(time.Millisecond))
				_, err := bump(c).Commit(ctx, ofReceipts)
				require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
				var refused *framework.TransactionError
				assert.NotErrorAs(t, err, &refused)
				time.Sleep(10 * time.Second)
				assert.Empty(t, srv.Ephemerals(0), "before a session would time out")
			})
		})
	}
}

func TestReceiptRefused(t *testing.T) {
	withReceipts(t, func(t *testing.T, srv *zktest.Server, c, admin *framework.Client) {
		_, err := admin.Create(t.Context(), "/app/r", nil, framework.Persistent, framework.ACLs(zk.WorldACL(zk.PermRead)...))
		require.NoError(t, err)
		_, err = bump(c).Commit(t.Context(), framework.Receipt("/r"))
		require.ErrorIs(t, err, framework.ErrNoAuth)
		assert.Contains(t, err.Error(), "receipt /app/r/_c_")
		_, stat, err := admin.Get(t.Context(), "/app/a")
		require.NoError(t, err)
		assert.Zero(t, stat.Version, "nothing was applied")

		for _, parent := range []string{"", "r", "/r/"} {
			_, err = bump(c).Commit(t.Context(), framework.Receipt(parent))
			require.ErrorIs(t, err, framework.ErrInvalidPath)
		}
		tx := bump(c)
		tx.Create("/q", nil, framework.PersistentSequential)
		_, err = tx.Commit(t.Context(), ofReceipts)
		require.ErrorIs(t, err, framework.ErrInvalidArgument)

		tx = bump(c)
		tx.Set("/none", nil, framework.AnyVersion)
		_, err = tx.Commit(t.Context(), ofReceipts)
		var refused *framework.TransactionError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, 2, refused.Index)

		tx = c.Transaction()
		tx.Check("/a", 0)
		_, err = tx.Commit(t.Context(), ofReceipts)
		require.NoError(t, err)
		there, _, err := admin.Exists(t.Context(), "/app/made")
		require.NoError(t, err)
		assert.False(t, there, "checks alone need no receipt")
	})
}

// Where one may create and not delete, the client asks once.
func TestReceiptThatMayNotBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv)
		var failures []error
		c.Errors().Listen(func(err error) { failures = append(failures, err) })
		for path, acl := range map[string][]zk.ACL{"/a": zk.WorldACL(zk.PermAll), "/r": zk.WorldACL(zk.PermRead | zk.PermCreate)} {
			_, err := c.Create(t.Context(), path, nil, framework.Persistent, framework.ACLs(acl...))
			require.NoError(t, err)
		}
		_, err := bump(c).Commit(t.Context(), framework.Receipt("/r"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, srv.Requests()["delete"])
		require.Len(t, failures, 1)
		require.ErrorIs(t, failures[0], framework.ErrNoAuth)
		assert.Len(t, srv.Ephemerals(c.SessionID()), 1)
		require.NoError(t, c.Close())
		assert.Empty(t, srv.Ephemerals(0), "it goes with the session")
	})
}
