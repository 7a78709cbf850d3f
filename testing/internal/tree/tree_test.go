package tree

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

// replica is a tree with a clock that moves one millisecond per transaction.
type replica struct {
	*Tree
	zxid int64
}

func newReplica() *replica { return &replica{Tree: New()} }

var bob = Caller{Session: 7, IDs: []ID{{"ip", "127.0.0.1"}, {"digest", Digest("bob:secret")}}}

func (r *replica) do(op wire.Op, req wire.Record) Outcome { return r.as(bob, op, req) }

func (r *replica) as(who Caller, op wire.Op, req wire.Record) Outcome {
	r.zxid++
	return r.Apply(r.Prepare(r.zxid, 1000+r.zxid, who, op, req))
}

func create(path string, flags wire.Flags) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, Data: []byte("d"), ACL: openACL, Flags: flags}
}

// must makes nodes.
func (r *replica) must(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		out := r.do(wire.OpCreate, create(p, 0))
		require.Equal(t, wire.OpCreate, out.Result.Op, "%s: %v", p, out.Result.Code)
	}
}

func dump(tr *Tree) string {
	var b strings.Builder
	tr.Walk(func(path string, data []byte, stat wire.Stat, owner int64) {
		fmt.Fprintf(&b, "%s %q %+v %d %v\n", path, data, stat, owner, tr.nodes[path].acl)
	})
	return b.String()
}

func TestNewTreeHasTheServersNodes(t *testing.T) {
	var paths []string
	New().Walk(func(path string, _ []byte, _ wire.Stat, _ int64) { paths = append(paths, path) })
	assert.Equal(t, []string{"/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"}, paths)
	assert.Equal(t, 4, New().Len())
}

func TestStatCounts(t *testing.T) {
	r := newReplica()
	r.must(t, "/a", "/a/b", "/a/c")
	r.do(wire.OpDelete, &wire.PathVersionRequest{Path: "/a/b", Version: 0})
	r.do(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: []byte("three"), Version: -1})
	r.do(wire.OpSetACL, &wire.SetACLRequest{Path: "/a", ACL: openACL, Version: 0})
	stat, code := r.Exists("/a")
	require.Zero(t, code)
	assert.Equal(t, wire.Stat{
		Czxid: 1, Mzxid: 5, Pzxid: 4, Ctime: 1001, Mtime: 1005,
		Version: 1, Cversion: 3, Aversion: 1, DataLength: 5, NumChildren: 1,
	}, stat)
}

func TestPrepareKeepsNothingOfTheRequest(t *testing.T) {
	r := newReplica()
	data := []byte("before")
	txn := r.Prepare(1, 1, bob, wire.OpCreate, &wire.CreateRequest{Path: "/a", Data: data, ACL: openACL})
	copy(data, "AFTER!")
	r.Apply(txn)
	got, _, _ := r.Get(bob, "/a")
	assert.Equal(t, "before", string(got))
}

func TestEventsComeInOrder(t *testing.T) {
	r := newReplica()
	out := r.do(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
		{Op: wire.OpCreate, Request: create("/a", 0)},
		{Op: wire.OpSetData, Request: &wire.SetDataRequest{Path: "/a", Version: 0}},
		{Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/a", Version: 1}},
		{Op: wire.OpDelete, Request: &wire.PathVersionRequest{Path: "/a", Version: 1}},
	}})
	assert.Equal(t, []Event{
		{wire.EventNodeCreated, "/a", openACL, openACL},
		{wire.EventNodeDataChanged, "/a", openACL, nil},
		{wire.EventNodeDeleted, "/a", openACL, openACL},
	}, out.Events)
	assert.Equal(t, wire.OpMulti, out.Result.Op)
	assert.Len(t, out.Multi, 4)
}

func TestSweepable(t *testing.T) {
	r := newReplica()
	assert.False(t, r.Sweeps())
	r.do(wire.OpCreateContainer, create("/never", wire.FlagContainer))
	r.do(wire.OpCreateContainer, create("/used", wire.FlagContainer))
	r.must(t, "/used/c")
	r.do(wire.OpCreateTTL, &wire.CreateTTLRequest{CreateRequest: *create("/ttl", wire.FlagPersistentTTL), TTL: 100})
	r.must(t, "/ttl/c")
	assert.True(t, r.Sweeps())
	assert.Empty(t, r.Sweepable(math.MaxInt64/2), "both have children")
	for _, p := range []string{"/used/c", "/ttl/c"} {
		r.do(wire.OpDelete, &wire.PathVersionRequest{Path: p, Version: -1})
	}
	made, _ := r.Exists("/ttl")
	assert.Equal(t, []string{"/used"}, r.Sweepable(made.Mtime+100))
	assert.Equal(t, []string{"/ttl", "/used"}, r.Sweepable(made.Mtime+101))

	server := Caller{}
	for path, want := range map[string]wire.Code{
		"/zookeeper": wire.CodeBadArguments, "/none": wire.CodeNoNode, "/": wire.CodeBadArguments,
	} {
		assert.Equal(t, want, r.as(server, wire.OpDeleteContainer, &wire.PathRequest{Path: path}).Result.Code, path)
	}
	r.must(t, "/used/again")
	assert.Equal(t, wire.CodeNotEmpty, r.as(server, wire.OpDeleteContainer, &wire.PathRequest{Path: "/used"}).Result.Code)
	r.do(wire.OpCreate, create("/e", wire.FlagEphemeral))
	assert.Equal(t, wire.CodeBadVersion, r.as(server, wire.OpDeleteContainer, &wire.PathRequest{Path: "/e"}).Result.Code)
	assert.Equal(t, wire.CodeBadArguments, r.do(wire.OpDeleteContainer, &wire.PathRequest{Path: "/ttl"}).Result.Code)
	assert.Equal(t, wire.OpDeleteContainer, r.as(server, wire.OpDeleteContainer, &wire.PathRequest{Path: "/ttl"}).Result.Op)
}

// Replicas that apply the same log are the same, and so are the outcomes.
func TestReplicasAgree(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		leader, follower := newReplica(), New()
		for range 2000 {
			op, req := randomWrite(rnd)
			leader.zxid++
			who := Caller{Session: 1 + rnd.Int64N(3), IDs: bob.IDs[:rnd.IntN(3)]}
			txn := leader.Prepare(leader.zxid, rnd.Int64N(1000), who, op, req)
			a, b := leader.Apply(txn), follower.Apply(txn)
			require.Equal(t, a, b)
		}
		require.Equal(t, dump(leader.Tree), dump(follower))
		require.Equal(t, leader.ephemerals, follower.ephemerals)
		require.Equal(t, leader.swept, follower.swept)
		for path, n := range leader.nodes {
			require.NotEmpty(t, n.acl, path)
			if path != "/" {
				parent, _ := split(path)
				require.NotNil(t, leader.node(parent), "%s has no parent", path)
			}
		}
	}
}

func randomWrite(rnd *rand.Rand) (wire.Op, wire.Record) {
	path := ""
	for range 1 + rnd.IntN(3) {
		path += "/" + string(rune('a'+rnd.IntN(3)))
	}
	version := int32(rnd.IntN(4)) - 1
	acl := [][]wire.ACL{openACL, {{Perms: rnd.Int32N(32), Scheme: "auth"}, {Perms: 31, Scheme: "ip", ID: "127.0.0.1"}}}[rnd.IntN(2)]
	cr := &wire.CreateRequest{Path: path, Data: []byte{byte(rnd.Int())}, ACL: acl, Flags: wire.Flags(rnd.IntN(7))}
	switch rnd.IntN(10) {
	case 0, 1:
		return wire.OpCreate, cr
	case 2:
		return wire.OpCreateContainer, cr
	case 3:
		return wire.OpCreateTTL, &wire.CreateTTLRequest{CreateRequest: *cr, TTL: rnd.Int64N(100)}
	case 4, 5:
		return wire.OpDelete, &wire.PathVersionRequest{Path: path, Version: version}
	case 6:
		return wire.OpSetData, &wire.SetDataRequest{Path: path, Version: version}
	case 7:
		return wire.OpSetACL, &wire.SetACLRequest{Path: path, ACL: acl, Version: version}
	case 8:
		return wire.OpCloseSession, nil
	}
	m := new(wire.MultiRequest)
	for range rnd.IntN(5) {
		switch op, req := randomWrite(rnd); op {
		case wire.OpCloseSession, wire.OpMulti, wire.OpSetACL:
		default:
			m.Ops = append(m.Ops, wire.MultiOp{Op: op, Request: req})
		}
	}
	return wire.OpMulti, m
}

func TestUnreadableRequests(t *testing.T) {
	r := newReplica()
	for _, op := range []wire.Op{wire.OpCreate, wire.OpDelete, wire.OpSetData, wire.OpMulti} {
		assert.Equal(t, wire.CodeMarshallingError, r.do(op, nil).Result.Code, "%v", op)
	}
	assert.Equal(t, wire.CodeReconfigDisabled, r.do(wire.OpReconfig, &wire.ReconfigRequest{}).Result.Code)
}
