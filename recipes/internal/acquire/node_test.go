package acquire

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

func TestPartsOfANodesName(t *testing.T) {
	for path, tc := range map[string]struct {
		kind           znode.Kind
		prefix, digits string
	}{
		"/l/_c_1-lock-0000000042":         {znode.Lock, "_c_1-", "0000000042"},
		"/lock-a/_c_1-lock-0000000042":    {znode.Lock, "_c_1-", "0000000042"},
		"/l/lock-lock-0000000042":         {znode.Lock, "lock-", "0000000042"},
		"/l/_c_1__WRIT__0000000007":       {znode.Write, "_c_1", "0000000007"},
		"/s/leases/_c_1-lease-0000000000": {znode.Lease, "_c_1-", "0000000000"},
	} {
		n := Node{path: path, queue: &Queue{Kind: tc.kind}, czxid: 9, id: 3}
		assert.Equal(t, tc.prefix, n.prefix(), path)
		assert.Equal(t, tc.digits, znode.Digits(path, tc.kind), path)
		other := &Queue{Kind: tc.kind, Lock: "/other"}
		moved := n.In(other)
		assert.Same(t, other, moved.queue)
		assert.Equal(t, []any{n.path, n.czxid, n.id}, []any{moved.Path(), moved.Token(), moved.SessionID()})
		assert.NotSame(t, other, n.queue, "the node itself stays as it is")
	}
}
