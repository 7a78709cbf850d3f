package locks

import (
	"context"
	"fmt"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// A context carries the holds that it comes from, and the acquisition that it was made
// for, if the tracer was told of that.

// holdChain is the holds that a context comes from, the latest first.
type holdChain struct {
	hold  *Hold
	outer *holdChain
}

type holdChainKey struct{}

type acquireTraceKey struct{}

// acquireTraceOf is the acquisition that a context was made for, nil for none.
func acquireTraceOf(ctx context.Context, s *session.Session) *acquireTrace {
	if !s.Tracing().On() {
		return nil
	}
	a, _ := ctx.Value(acquireTraceKey{}).(*acquireTrace)
	return a
}

// tagOf is the tag of an owner, which all of its nodes have in common. It is made for the
// first hold and kept for those acquired under it.
func tagOf(ctx context.Context, s *session.Session) nodename.Tag {
	if tag := inherited(ctx); tag != (nodename.Tag{}) {
		return tag
	}
	return session.NewTag(s)
}

type tagKey struct{}

// withTag gives a tag to the steps of a MultiLock, whose nodes are of one owner.
func withTag(ctx context.Context, tag nodename.Tag) context.Context {
	return context.WithValue(ctx, tagKey{}, tag)
}

// inherited is the tag of the holds that a context comes from, or of the MultiLock that it
// is a step of. It is zero if there are none.
func inherited(ctx context.Context) (tag nodename.Tag) {
	for chain := holdChainOf(ctx); chain != nil; chain = chain.outer {
		if o := chain.hold.first(); o != nil {
			tag = o.node.Tag()
		}
	}
	if tag == (nodename.Tag{}) {
		tag, _ = ctx.Value(tagKey{}).(nodename.Tag)
	}
	return tag
}

func holdChainOf(ctx context.Context) *holdChain {
	if c, is := ctx.(*holdContext); is { // most often, when re-entering
		return c.carries
	}
	chain, _ := ctx.Value(holdChainKey{}).(*holdChain)
	return chain
}

// lockKey is which lock a hold is of. Lock objects of one client with the same
// path are the same lock; a namespace is part of the path.
type lockKey struct {
	session *session.Session
	path    string // in full
}

// find returns the latest hold of a lock that a context comes from and for which accepts
// is true; accepts may be nil. It also finds a lost hold, since a caller that comes from
// it must be told. It does not find a released one.
func (chain *holdChain) find(key lockKey, accepts func(*Hold) bool) *Hold {
	for ; chain != nil; chain = chain.outer {
		if h := chain.hold.within(key, accepts); h != nil {
			return h
		}
	}
	return nil
}

// ofKind is find for one kind of node. Holds of another kind of lock at the same path do
// not count: they are of another lock, which the servers will refuse.
func (chain *holdChain) ofKind(key lockKey, kind znode.Kind) *Hold {
	return chain.find(key, func(h *Hold) bool { return h.ownership.nodeKind() == kind })
}

// within looks in a hold and its members.
func (h *Hold) within(key lockKey, accepts func(*Hold) bool) *Hold {
	if h.ownership.key == key && !h.ownership.over(h) && (accepts == nil || accepts(h)) {
		return h
	}
	for _, m := range h.members() {
		if found := m.within(key, accepts); found != nil {
			return found
		}
	}
	return nil
}

// every calls fn for each ownership of a lock that a context comes from, once.
func (chain *holdChain) every(key lockKey, fn func(*ownership)) {
	seen := make(map[*ownership]bool)
	var visit func(h *Hold)
	visit = func(h *Hold) {
		if o := h.ownership; o.key == key && !seen[o] {
			seen[o] = true
			fn(o)
		}
		for _, m := range h.members() {
			visit(m)
		}
	}
	for ; chain != nil; chain = chain.outer {
		visit(chain.hold)
	}
}

// holds is whether a context comes from a hold of a lock, with that kind of node, that is
// not lost or released.
func (chain *holdChain) holds(key lockKey, kind znode.Kind) bool {
	h := chain.ofKind(key, kind)
	if h == nil {
		return false
	}
	state, _ := h.ownership.now()
	return state == Held || state == Uncertain
}

// reenter gives another hold to a caller that has the lock already. To all other callers
// it returns neither hold nor error.
func (m *InterProcessMutex) reenter(ctx context.Context) (*Hold, error) {
	from := holdChainOf(ctx)
	if same := from.ofKind(m.key, m.queue.Kind); same != nil {
		_, _ = same.ownership.now() // a deadline may have passed unseen
		return newHold(ctx, same.ownership)
	}
	switch m.queue.Kind {
	case znode.Read:
		if write := from.ofKind(m.key, znode.Write); write != nil {
			return m.downgrade(ctx, write.ownership)
		}
	case znode.Write:
		if from.ofKind(m.key, znode.Read) != nil {
			return nil, fmt.Errorf("%w: the read side is held, and a write side waits for it", ErrDeadlock)
		}
	}
	return nil, nil
}
