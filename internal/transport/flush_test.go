package transport

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

// Of a transaction that was refused one operation says why, and those before it and behind
// it that they were undone.
func TestStopped(t *testing.T) {
	undone := wire.MultiResult{Op: wire.OpError}
	after := wire.MultiResult{Op: wire.OpError, Code: wire.CodeRuntimeInconsistency}
	refused := func(code wire.Code) wire.MultiResult { return wire.MultiResult{Op: wire.OpError, Code: code} }
	a, b := creationIn("/a", 0), creationIn("/b", 0)
	makes := creationIn("/c", 0)
	makes.makes = true
	for name, tc := range map[string]struct {
		of      []*Joint
		results []wire.MultiResult
		at      int
		parent  bool
		code    wire.Code
	}{
		"the first":          {[]*Joint{a, b}, []wire.MultiResult{refused(wire.CodeNoAuth), after}, 0, false, wire.CodeNoAuth},
		"the last":           {[]*Joint{a, b}, []wire.MultiResult{undone, refused(wire.CodeNoNode)}, 1, false, wire.CodeNoNode},
		"a parent":           {[]*Joint{a, makes}, []wire.MultiResult{undone, refused(wire.CodeNodeExists), after}, 1, true, wire.CodeNodeExists},
		"a node below it":    {[]*Joint{makes, a}, []wire.MultiResult{undone, refused(wire.CodeInvalidACL), after}, 0, false, wire.CodeInvalidACL},
		"behind a parent":    {[]*Joint{makes, a}, []wire.MultiResult{undone, undone, refused(wire.CodeNoAuth)}, 1, false, wire.CodeNoAuth},
		"none is said to be": {[]*Joint{a, b}, []wire.MultiResult{undone, undone}, -1, false, wire.CodeOK},
	} {
		at, parent, code := stopped(tc.of, tc.results)
		assert.Equal(t, tc.at, at, name)
		assert.Equal(t, tc.parent, parent, name)
		assert.Equal(t, tc.code, code, name)
	}
}

// Few requests leave each by itself, more in transactions: deletions first, and lists
// behind the creations that they are to show.
func TestFlush_Calls(t *testing.T) {
	makes := creationIn("/new", 0)
	makes.makes, makes.Make = true, wire.MultiOp{Op: wire.OpCreateContainer, Request: &wire.CreateRequest{Path: "/new"}}
	creations := func(n int) (all []*Joint) {
		for i := range n {
			all = append(all, creationIn(fmt.Sprint("/", i), 0))
		}
		return all
	}
	deletions := func(n int) (all []*Joint) {
		for range n {
			all = append(all, deletionIn("/l"))
		}
		return all
	}
	const create, list, remove, multi, lists = wire.OpCreate2, wire.OpGetChildren, wire.OpDelete, wire.OpMulti, wire.OpMultiRead
	for name, tc := range map[string]struct {
		deletions, creations, alone []*Joint
		want                        []wire.Op
	}{
		"one creation":              {creations: creations(1), want: []wire.Op{create, list}},
		"two":                       {creations: creations(2), want: []wire.Op{create, list, create, list}},
		"one that makes its parent": {creations: []*Joint{makes}, want: []wire.Op{multi, list}},
		"many":                      {creations: creations(leastJoint), want: []wire.Op{multi, lists}},
		"few deletions":             {deletions: deletions(2), want: []wire.Op{remove, remove}},
		"many deletions":            {deletions: deletions(leastJoint), want: []wire.Op{multi}},
		"both":                      {deletions: deletions(leastJoint), creations: creations(leastJoint), want: []wire.Op{multi, multi, lists}},
		"few beside many":           {deletions: deletions(1), creations: creations(leastJoint), want: []wire.Op{remove, multi, lists}},
		"refused before":            {creations: creations(leastJoint), alone: append(deletions(1), creations(1)...), want: []wire.Op{remove, multi, create, list, lists}},
	} {
		t.Run(name, func(t *testing.T) {
			conn := &Conn{transport: new(Transport)}
			f := &flush{conn: conn, deletions: tc.deletions, creations: tc.creations, alone: tc.alone}
			var ops []wire.Op
			for _, call := range f.calls() {
				ops = append(ops, call.op)
			}
			assert.Equal(t, tc.want, ops)
		})
	}
}

// What a transaction has made is told to each creation as if it had been alone.
func TestFlush_Answered(t *testing.T) {
	of := []*Joint{creationIn("/a", 0), creationIn("/b", 0), creationIn("/c", 0)}
	of[1].makes = true // its parent is made before it
	conn := &Conn{transport: new(Transport)}
	for _, j := range of {
		j.conn = conn
	}
	f := &flush{conn: conn, creations: of, listed: make([]*Joint, len(of))}
	made := func(path string) wire.MultiResult { return wire.MultiResult{Op: wire.OpCreate, Path: path} }
	var reply wire.Encoder
	(&wire.MultiResponse{Results: []wire.MultiResult{made("/a/n0"), made("/b"), made("/b/n0"), made("/c/n7")}}).Encode(&reply)
	f.answered(of, 4, &Call{header: wire.ReplyHeader{Zxid: 9}, body: reply.B})
	for i, want := range []string{"/a/n0", "/b/n0", "/c/n7"} {
		<-of[i].Write.Done()
		require.NoError(t, of[i].Write.Err())
		var resp wire.Create2Response
		require.NoError(t, of[i].Write.Decode(&resp))
		assert.Equal(t, want, resp.Path)
		assert.Equal(t, int64(9), resp.Stat.Czxid, "the reply to a write carries its own zxid")
		assert.Same(t, of[i], f.listed[i], "its list comes behind")
	}

	other := []*Joint{creationIn("/d", 0), creationIn("/e", 0)}
	for _, j := range other {
		j.conn = conn
	}
	f.answered(other, 3, &Call{body: reply.B})
	for _, j := range other {
		var lost *LostError
		<-j.List.Done()
		require.ErrorAs(t, j.Write.Err(), &lost, "too many results")
		assert.True(t, lost.Sent, "nobody knows what has happened")
		assert.ErrorIs(t, lost, ErrProtocol)
	}
}

// The writer first takes what was sent, and then lets others join. What is sent meanwhile
// still leaves before a joint request that its sender has joined after it.
func TestJointRequestsDoNotOvertake(t *testing.T) {
	c := &Conn{transport: &Transport{cfg: Config{Now: time.Now}}, wake: make(chan struct{}, 1)}
	buf := c.takeOut(nil)
	before, after := NewCall(wire.OpRemoveWatches, &wire.WatchesRequest{Path: "/l"}), creationIn("/l", 0)
	require.NoError(t, c.Send(before))
	require.NoError(t, c.Join(after))
	buf, _ = c.takeJoint(buf, time.Now())
	assert.Equal(t, sent, before.phase)
	assert.Equal(t, sent, after.Write.phase)
	assert.Less(t, bytes.Index(buf, before.frame), bytes.Index(buf, after.Write.frame))
}
