package locks

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// owned is an ownership of a lock, without a node.
func owned(key lockKey) *ownership {
	return &ownership{key: key, state: Held, foreign: func() error { return nil }}
}

// heldUnder is one more hold of an ownership.
func heldUnder(ctx context.Context, t *testing.T, o *ownership) *Hold {
	t.Helper()
	h, err := newHold(ctx, o)
	require.NoError(t, err)
	return h
}

func TestHoldChain_Finds(t *testing.T) {
	a, b, none := lockKey{path: "/a"}, lockKey{path: "/b"}, lockKey{path: "/none"}
	first := owned(a)
	outer := heldUnder(t.Context(), t, first)
	inner := heldUnder(outer.Context(), t, owned(b))
	again := heldUnder(inner.Context(), t, first)

	assert.Nil(t, holdChainOf(t.Context()))
	assert.Nil(t, holdChainOf(t.Context()).ofKind(a, ""), "a caller without holds")
	chain := holdChainOf(context.WithoutCancel(inner.Context()))
	assert.Same(t, outer, chain.ofKind(a, ""))
	assert.Same(t, inner, chain.ofKind(b, ""))
	assert.Nil(t, chain.ofKind(none, ""))
	chain = holdChainOf(again.Context())
	assert.Same(t, again, chain.ofKind(a, ""), "the latest")
	assert.Nil(t, chain.ofKind(a, znode.Lock), "it has no node of that kind")

	var all []*ownership
	chain.every(a, func(o *ownership) { all = append(all, o) })
	assert.Equal(t, []*ownership{first}, all, "once for both holds")

	assert.True(t, chain.holds(a, ""), "it has no queue, and so no kind")
	assert.False(t, chain.holds(none, ""))
	assert.False(t, chain.holds(a, znode.Write), "it has no node of that kind")
	first.lose(errors.New("gone"))
	assert.False(t, chain.holds(a, ""))
	assert.Same(t, again, chain.ofKind(a, ""), "a caller that comes from a lost hold is told")
	_ = again.Release()
	assert.Same(t, outer, chain.ofKind(a, ""))
	_ = outer.Release()
	assert.Nil(t, chain.ofKind(a, ""), "a caller that comes from a released hold is nobody special")
	require.NoError(t, inner.Release())
}

// The members of a MultiLock are found under its hold, and of the sides of one lock the
// one that is asked for.
func TestHoldChain_FindsMembers(t *testing.T) {
	key := lockKey{path: "/rw"}
	side := func(kind znode.Kind) *Hold {
		o := owned(key)
		o.queue = &queue{Queue: acquire.Queue{Kind: kind}}
		return heldUnder(t.Context(), t, o)
	}
	read, write := side(znode.Read), side(znode.Write)
	group := &ownership{state: Held, members: []*Hold{read, write}}
	chain := holdChainOf(heldUnder(t.Context(), t, group).Context())
	assert.Same(t, read, chain.ofKind(key, znode.Read))
	assert.Same(t, write, chain.ofKind(key, znode.Write))
	assert.Nil(t, chain.ofKind(key, ""))
	var kinds []znode.Kind
	chain.every(key, func(o *ownership) { kinds = append(kinds, o.nodeKind()) })
	assert.Equal(t, []znode.Kind{znode.Read, znode.Write}, kinds)
}

// Paths of locks of one kind differ in one part.
func TestAkin(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		akin bool
	}{
		{"/s/m1", "/s/m2", true},
		{"/s/m1", "/s/m10", true},
		{"/s/m1/lock", "/s/m2/lock", true},
		{"/app/s/m1", "/app/s/m2", true},
		{"/m", "/n", true},
		{"/s/m1", "/z/job", false},
		{"/s1/m1", "/s2/m2", false},
		{"/s/m1", "/s/m1/lock", false},
		{"/s", "/s/m1", false},
		{"/m", "/s/m1", false},
		{"", "/s/m1", false},
	} {
		assert.Equal(t, tc.akin, akin(tc.a, tc.b), "%s and %s", tc.a, tc.b)
		assert.Equal(t, tc.akin, akin(tc.b, tc.a), "%s and %s", tc.b, tc.a)
	}
}
