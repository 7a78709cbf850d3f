package tree

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

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

func TestSessionTakesItsNodesWithIt(t *testing.T) {
	r := newReplica()
	r.must(t, "/keep")
	for _, p := range []string{"/keep/c", "/b", "/keep/a"} {
		r.do(wire.OpCreate, create(p, wire.FlagEphemeral))
	}
	r.as(Caller{Session: 8}, wire.OpCreate, create("/other", wire.FlagEphemeral))
	assert.Equal(t, []int64{7, 8}, r.Sessions())
	assert.Equal(t, []string{"/b", "/keep/a", "/keep/c"}, r.Ephemerals(7))

	out := r.do(wire.OpCloseSession, nil)
	assert.Equal(t, []Event{
		{wire.EventNodeDeleted, "/b", openACL, openACL},
		{wire.EventNodeDeleted, "/keep/a", openACL, openACL},
		{wire.EventNodeDeleted, "/keep/c", openACL, openACL},
	}, out.Events)
	assert.Equal(t, []int64{8}, r.Sessions())
	assert.Empty(t, r.Ephemerals(7))
	stat, _ := r.Exists("/keep")
	assert.Equal(t, r.zxid, stat.Pzxid)
	assert.Equal(t, wire.OpCreateSession, r.do(wire.OpCreateSession, nil).Result.Op)
}

func TestSequenceAtItsEnd(t *testing.T) {
	r := newReplica()
	r.must(t, "/q")
	out := r.as(Caller{}, OpSetSequence, &SetSequenceRequest{Path: "/q", Next: math.MaxInt32 - 1})
	require.Equal(t, OpSetSequence, out.Result.Op)
	var names []string
	for i := range 4 {
		out := r.do(wire.OpCreate, create(fmt.Sprintf("/q/n%d-", i), wire.FlagSequence))
		names = append(names, out.Result.Path)
	}
	// The counter stays where it is: from 2147483647 on all get the same number.
	assert.Equal(t, []string{"/q/n0-2147483646", "/q/n1-2147483647", "/q/n2-2147483647", "/q/n3-2147483647"}, names)
	out = r.do(wire.OpCreate, create("/q/n3-", wire.FlagSequence))
	assert.Equal(t, wire.CodeNodeExists, out.Result.Code)

	out = r.as(Caller{}, OpSetSequence, &SetSequenceRequest{Path: "/none"})
	assert.Equal(t, wire.CodeNoNode, out.Result.Code)
	var e wire.Encoder
	(&SetSequenceRequest{"/q", 5}).Encode(&e)
	var req SetSequenceRequest
	req.Decode(wire.NewDecoder(e.B))
	assert.Equal(t, SetSequenceRequest{"/q", 5}, req)
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

func TestOwners(t *testing.T) {
	owner, ok := ownerTTL(1500)
	require.True(t, ok)
	ttl, ok := TTL(owner)
	assert.True(t, ok)
	assert.Equal(t, 1500*time.Millisecond, ttl)
	_, ok = TTL(OwnerContainer)
	assert.False(t, ok)
	assert.False(t, isSession(0))
	assert.False(t, isSession(OwnerContainer))
	assert.False(t, isSession(owner))
	assert.True(t, isSession(1<<56|3))
}

func TestValidPath(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/a/b": true, "/.a": true, "/...": true, "/a.": true, "/ü": true, "/\u00a0": true, "/\ufffc": false,
		"": false, "a": false, "//": false, "/a/": false, "/a//b": false, "/.": false, "/a/..": false, "/./a": false, "/a/../b": false,
		"/\x00": false, "/\x1f": false, "/\x7f": false, "/\ue000": false, "/\U00010000": false, "/\xff": false, "/\uf900": true,
	} {
		assert.Equal(t, want, validPath(path), "%q", path)
	}
}

func TestRefusedMultiChangesNothing(t *testing.T) {
	r := newReplica()
	r.must(t, "/a", "/a/b")
	before := dump(r.Tree)
	out := r.do(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
		{Op: wire.OpSetData, Request: &wire.SetDataRequest{Path: "/a", Version: 0}},
		{Op: wire.OpCreate, Request: create("/a/s-", wire.FlagSequence)},
		{Op: wire.OpDelete, Request: &wire.PathVersionRequest{Path: "/a", Version: 1}},
		{Op: wire.OpDelete, Request: &wire.PathVersionRequest{Path: "/a/b", Version: 0}},
	}})
	assert.Equal(t, []wire.MultiResult{
		{Op: wire.OpError}, {Op: wire.OpError}, {Op: wire.OpError, Code: wire.CodeNotEmpty}, {Op: wire.OpError, Code: wire.CodeRuntimeInconsistency},
	}, out.Multi)
	assert.Empty(t, out.Events)
	assert.Equal(t, before, dump(r.Tree))
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

func TestACLMasks(t *testing.T) {
	for entry, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.2": false, "127.0.0.0/8": true, "127.0.0.0/31": true, "127.0.0.2/31": false, "0.0.0.0/0": true,
		"127.0.0.1/32": true, "127.0.0.1/33": false, "127.0.0.1/-1": false, "127.0.0.1/x": false, "127.0.0": false, "x": false, "::1": false,
	} {
		assert.Equal(t, want, ipMatches("127.0.0.1", entry), entry)
	}
	assert.False(t, ipMatches("::1", "0.0.0.0/0"))
	assert.False(t, matches(ID{"other", "x"}, "x"))
	assert.True(t, Allowed(nil, wire.PermAll, nil), "an empty list allows everything")
}

func TestReadsNeedRights(t *testing.T) {
	r := newReplica()
	secret := create("/s", 0)
	secret.ACL = []wire.ACL{{Perms: wire.PermRead, Scheme: "digest", ID: bob.IDs[1].ID}, {Perms: wire.PermAdmin, Scheme: "ip", ID: "10.0.0.1"}}
	r.do(wire.OpCreate, secret)
	nobody := Caller{Session: 8}
	_, _, code := r.Get(nobody, "/s")
	assert.Equal(t, wire.CodeNoAuth, code)
	_, _, code = r.Children(nobody, "/s")
	assert.Equal(t, wire.CodeNoAuth, code)
	_, code = r.CountBelow(nobody, "/s")
	assert.Equal(t, wire.CodeNoAuth, code)
	_, _, code = r.ACL(nobody, "/s")
	assert.Equal(t, wire.CodeNoAuth, code)
	acl, _, code := r.ACL(bob, "/s")
	require.Zero(t, code)
	assert.Equal(t, "bob:x", acl[0].ID, "hidden from who may not change the list")
	acl, _, _ = r.ACL(Caller{IDs: []ID{SuperID}}, "/s")
	assert.Equal(t, bob.IDs[1].ID, acl[0].ID)
	n, code := r.CountBelow(bob, "/")
	require.Zero(t, code)
	assert.Equal(t, int32(r.Len()-1), n)
}

func TestUnreadableRequests(t *testing.T) {
	r := newReplica()
	for _, op := range []wire.Op{wire.OpCreate, wire.OpDelete, wire.OpSetData, wire.OpMulti} {
		assert.Equal(t, wire.CodeMarshallingError, r.do(op, nil).Result.Code, "%v", op)
	}
	assert.Equal(t, wire.CodeReconfigDisabled, r.do(wire.OpReconfig, &wire.ReconfigRequest{}).Result.Code)
}
