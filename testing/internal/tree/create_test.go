package tree

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

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
