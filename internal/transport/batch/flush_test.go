package batch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/transport"
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
		of      []*joint
		results []wire.MultiResult
		at      int
		parent  bool
		code    wire.Code
	}{
		"the first":          {[]*joint{a, b}, []wire.MultiResult{refused(wire.CodeNoAuth), after}, 0, false, wire.CodeNoAuth},
		"the last":           {[]*joint{a, b}, []wire.MultiResult{undone, refused(wire.CodeNoNode)}, 1, false, wire.CodeNoNode},
		"a parent":           {[]*joint{a, makes}, []wire.MultiResult{undone, refused(wire.CodeNodeExists), after}, 1, true, wire.CodeNodeExists},
		"a node below it":    {[]*joint{makes, a}, []wire.MultiResult{undone, refused(wire.CodeInvalidACL), after}, 0, false, wire.CodeInvalidACL},
		"behind a parent":    {[]*joint{makes, a}, []wire.MultiResult{undone, undone, refused(wire.CodeNoAuth)}, 1, false, wire.CodeNoAuth},
		"none is said to be": {[]*joint{a, b}, []wire.MultiResult{undone, undone}, -1, false, wire.CodeOK},
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
	makes.makes, makes.make = true, wire.MultiOp{Op: wire.OpCreateContainer, Request: &wire.CreateRequest{Path: "/new"}}
	creations := func(n int) (all []*joint) {
		for i := range n {
			all = append(all, creationIn(fmt.Sprint("/", i), 0))
		}
		return all
	}
	deletions := func(n int) (all []*joint) {
		for range n {
			all = append(all, deletionIn("/l"))
		}
		return all
	}
	const create, list, remove, multi, lists = wire.OpCreate2, wire.OpGetChildren, wire.OpDelete, wire.OpMulti, wire.OpMultiRead
	for name, tc := range map[string]struct {
		deletions, creations, alone []*joint
		want                        []wire.Op
	}{
		"one creation":              {creations: creations(1), want: []wire.Op{create, list}},
		"two":                       {creations: creations(2), want: []wire.Op{create, list, create, list}},
		"one that makes its parent": {creations: []*joint{makes}, want: []wire.Op{multi, list}},
		"many":                      {creations: creations(leastJoint), want: []wire.Op{multi, lists}},
		"few deletions":             {deletions: deletions(2), want: []wire.Op{remove, remove}},
		"many deletions":            {deletions: deletions(leastJoint), want: []wire.Op{multi}},
		"both":                      {deletions: deletions(leastJoint), creations: creations(leastJoint), want: []wire.Op{multi, multi, lists}},
		"few beside many":           {deletions: deletions(1), creations: creations(leastJoint), want: []wire.Op{remove, multi, lists}},
		"refused before":            {creations: creations(leastJoint), alone: append(deletions(1), creations(1)...), want: []wire.Op{remove, multi, create, list, lists}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &flush{batches: newBatches(new(fakeConn)), deletions: tc.deletions, creations: tc.creations, alone: tc.alone}
			var ops []wire.Op
			for _, call := range f.calls() {
				ops = append(ops, call.Op())
			}
			assert.Equal(t, tc.want, ops)
		})
	}
}

// What a transaction has made is told to each creation as if it had been alone.
func TestFlush_Answered(t *testing.T) {
	of := []*joint{creationIn("/a", 0), creationIn("/b", 0), creationIn("/c", 0)}
	of[1].makes = true // its parent is made before it
	f := &flush{batches: newBatches(new(fakeConn)), creations: of, listed: make([]*joint, len(of))}
	made := func(path string) wire.MultiResult { return wire.MultiResult{Op: wire.OpCreate, Path: path} }
	var reply wire.Encoder
	(&wire.MultiResponse{Results: []wire.MultiResult{made("/a/n0"), made("/b"), made("/b/n0"), made("/c/n7")}}).Encode(&reply)
	carrier := transport.NewCall(wire.OpMulti, wire.Empty{})
	carrier.EndAs(carrier, wire.CodeOK, reply.B)
	f.answered(of, 4, carrier)
	for i, want := range []string{"/a/n0", "/b/n0", "/c/n7"} {
		<-of[i].write.Done()
		require.NoError(t, of[i].write.Err())
		var resp wire.Create2Response
		require.NoError(t, of[i].write.Decode(&resp))
		assert.Equal(t, want, resp.Path)
		assert.Same(t, of[i], f.listed[i], "its list comes behind")
	}

	other := []*joint{creationIn("/d", 0), creationIn("/e", 0)}
	f.answered(other, 3, carrier)
	for _, j := range other {
		var lost *transport.LostError
		<-j.list.Done()
		require.ErrorAs(t, j.write.Err(), &lost, "too many results")
		assert.True(t, lost.Sent, "nobody knows what has happened")
		assert.ErrorIs(t, lost, transport.ErrProtocol)
	}
}
