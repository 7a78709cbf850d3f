package locks

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// A context carries the holds that it comes from.

// holdChain is the holds that a context comes from, the latest first.
type holdChain struct {
	hold   *Hold
	outer  *holdChain
	parent context.Context // that Acquire or Bind was given, or the *holdTrace around it
}

type holdChainKey struct{}

// ownerOf is the owner that a node made with a context is of, by the holds that the context comes from.
// Those that are wanted say in which order the owner takes its locks, if their paths are akin. The way is
// unknown if there are only others. All nodes of an owner have one tag. It is made for the first that is
// wanted and kept for those acquired under it. Where nobody wants any, the way is alone: no circle leads
// through them so far, but one may later.
func ownerOf(ctx context.Context, s *session.Session, path string, alone nodename.Way, wanted func(*ownership) bool) nodename.Owner {
	step := stepOf(ctx)
	owner := nodename.Owner{Tag: step.tag}
	var ways nodename.Ways
	if step.holding {
		ways = ways.With(nodename.Nesting)
	}
	for from := holdChainOf(ctx); from != nil; from = from.outer {
		h := from.hold
		switch {
		case h.ownership.over(h):
			continue
		case !wanted(h.ownership):
			ways = ways.With(alone)
			continue
		}
		ways |= h.waysTo(path)
		if o := h.first(); o != nil {
			owner.Tag = o.node.Tag()
		}
	}
	for _, way := range [...]nodename.Way{nodename.Unknown, nodename.Nesting, nodename.Reverse} {
		if ways.Has(way) {
			owner.Way = way
		}
	}
	if owner.Tag == (nodename.Tag{}) {
		owner.Tag = session.NewTag(s)
	}
	return owner
}

// ownerAlone is ownerOf for what is taken alone. Where the context says that its owner has no other lock, the
// goroutine may have one. A look takes a round trip. Under a lock that was just taken it would be one for each.
func ownerAlone(ctx context.Context, s *session.Session, path string) nodename.Owner {
	if holdChainOf(ctx) == nil && stepOf(ctx).tag == (nodename.Tag{}) {
		if h := goroutines.first(); h != nil {
			return nodename.Owner{Tag: h.ownership.node.Tag(), Way: nodename.Unknown}
		}
	}
	return ownerOf(ctx, s, path, nodename.Unknown, func(o *ownership) bool { return time.Since(o.since) < acquire.LookEvery || o.wanted(ctx) })
}

// waysTo are in which order its owner takes a lock at a path after those that it has. One that is not akin says
// nothing of that: a job's or a leader's is taken before all others, wherever it is.
func (h *Hold) waysTo(path string) (ways nodename.Ways) {
	if !h.ownership.over(h) {
		switch at := h.ownership.key.path; {
		case !akin(at, path):
			ways = ways.With(nodename.Unknown)
		case at > path:
			ways = ways.With(nodename.Reverse)
		default:
			ways = ways.With(nodename.Nesting)
		}
	}
	for _, m := range h.members() {
		ways |= m.waysTo(path)
	}
	return ways
}

// akin is whether two paths differ in one part alone, as those of the locks of one kind do.
func akin(a, b string) bool {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	n = strings.LastIndexByte(a[:n], '/') + 1
	_, a, _ = strings.Cut(a[n:], "/")
	_, b, _ = strings.Cut(b[n:], "/")
	return a == b
}

// multiStep is what a context says to a step of a MultiLock, whose nodes are of one owner.
type multiStep struct {
	tag     nodename.Tag
	holding bool // it is not the first
}

type multiStepKey struct{}

func stepOf(ctx context.Context) multiStep {
	step, _ := ctx.Value(multiStepKey{}).(multiStep)
	return step
}

// inherited is the tag of the first hold that a context comes from, or of the MultiLock that it
// is a step of. It is zero if there is none.
func inherited(ctx context.Context) (tag nodename.Tag) {
	for chain := holdChainOf(ctx); chain != nil; chain = chain.outer {
		if o := chain.hold.first(); o != nil {
			tag = o.node.Tag()
		}
	}
	if tag == (nodename.Tag{}) {
		tag = stepOf(ctx).tag
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

// ofKind returns the latest hold of a lock that a context comes from, with that kind of node.
// It also finds a lost hold, since a caller that comes from it must be told. It does not find
// a released one. Holds of another kind of lock at the same path do not count: they are of
// another lock, which the servers will refuse.
func (chain *holdChain) ofKind(key lockKey, kind znode.Kind) *Hold {
	for ; chain != nil; chain = chain.outer {
		if h := chain.hold.within(key, kind); h != nil {
			return h
		}
	}
	return nil
}

// within looks in a hold and its members.
func (h *Hold) within(key lockKey, kind znode.Kind) *Hold {
	if h.ownership.key == key && h.ownership.nodeKind() == kind && !h.ownership.over(h) {
		return h
	}
	for _, m := range h.members() {
		if found := m.within(key, kind); found != nil {
			return found
		}
	}
	return nil
}

// entered is the latest of the holds that a hold was acquired under whose lock it shares,
// by re-entry or downgrade. It is nil if there is none, and also found if it is over.
func (chain *holdChain) entered() *holdChain {
	o := chain.hold.ownership
	for from := chain.outer; from != nil; from = from.outer {
		if from.hold.shares(o) {
			return from
		}
	}
	return nil
}

// shares is whether the lock of a hold, or of a member, is that of an ownership. For a
// MultiLock's ownership it is whether all its locks are.
func (h *Hold) shares(o *ownership) bool {
	if entered := o.members; len(entered) > 0 {
		return !slices.ContainsFunc(entered, func(m *Hold) bool { return !h.shares(m.ownership) })
	}
	of := h.ownership
	return of == o || of.key == o.key && of.nodeKind() == znode.Write && o.nodeKind() == znode.Read ||
		slices.ContainsFunc(h.members(), func(m *Hold) bool { return m.shares(o) })
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
