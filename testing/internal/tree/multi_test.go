package tree

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/wire"
)

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
