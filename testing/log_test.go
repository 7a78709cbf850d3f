package zktest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestTransactionLog(t *testing.T) {
	srv := zktest.Start(t, zktest.TransactionLog())
	c := begin(t, srv, 10*time.Second)
	c.create("/a", wire.FlagEphemeral)
	_, _ = c.call(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: []byte("x"), Version: -1}, nil)
	_, _ = c.call(wire.OpDelete, &wire.PathVersionRequest{Path: "/b", Version: -1}, nil)
	_, _ = c.call(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
		{Op: wire.OpDelete, Request: &wire.PathVersionRequest{Path: "/a", Version: -1}},
		{Op: wire.OpCreate, Request: &wire.CreateRequest{Path: "/c", Data: []byte("y"), ACL: open, Flags: wire.FlagEphemeral}},
	}}, nil)
	_, _ = c.call(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
		{Op: wire.OpDelete, Request: &wire.PathVersionRequest{Path: "/c", Version: -1}},
		{Op: wire.OpDelete, Request: &wire.PathVersionRequest{Path: "/b", Version: -1}},
	}}, nil)
	require.NoError(t, srv.ExpireSession(c.session))
	type entry struct {
		op      string
		refused bool
		changes []zktest.Change
	}
	var got []entry
	var last int64
	for _, txn := range srv.Transactions() {
		assert.Greater(t, txn.Zxid, last)
		assert.Equal(t, c.session, txn.Session)
		last = txn.Zxid
		got = append(got, entry{txn.Op, txn.Refused, txn.Changes})
	}
	assert.Equal(t, []entry{
		{"createSession", false, nil},
		{"create", false, []zktest.Change{{Kind: zktest.Created, Path: "/a", Owner: c.session}}},
		{"setData", false, []zktest.Change{{Kind: zktest.DataSet, Path: "/a", Data: []byte("x")}}},
		{"delete", true, nil},
		{"multi", false, []zktest.Change{{Kind: zktest.Deleted, Path: "/a"}, {Kind: zktest.Created, Path: "/c", Owner: c.session, Data: []byte("y")}}},
		{"multi", true, nil},
		{"closeSession", false, []zktest.Change{{Kind: zktest.Deleted, Path: "/c"}}},
	}, got)
}
