package recipes

import (
	"context"

	"github.com/paddock-zk/paddock/internal/session"
)

// owner is what a context carries: the holds it comes from, the latest first.
type owner struct {
	hold  *Hold
	outer *owner
}

type ownerKey struct{}

// tagOf is what the nodes of one owner have in common, whatever they stand for:
// it is made for the first hold and kept for those acquired under it.
func tagOf(ctx context.Context, s *session.Session) session.Tag {
	if tag := inherited(ctx); tag != (session.Tag{}) {
		return tag
	}
	return s.NewTag()
}

// inherited is the tag of the holds that a context comes from, zero if there are
// none.
func inherited(ctx context.Context) (tag session.Tag) {
	for o := ownerOf(ctx); o != nil; o = o.outer {
		if p := o.hold.firstPlace(); p != nil {
			tag = p.tag
		}
	}
	return tag
}

func ownerOf(ctx context.Context) *owner {
	if c, is := ctx.(*holdContext); is { // most often, when re-entering
		return c.carries
	}
	o, _ := ctx.Value(ownerKey{}).(*owner)
	return o
}

// lockKey is which lock a hold is of. Lock objects of one client with the same
// path are the same lock; a namespace is part of the path.
type lockKey struct {
	session *session.Session
	path    string // in full
}

// find returns the latest live hold of a lock that a context comes from, for
// which also accepts, which may be nil, is true. A lost hold is found as well,
// since who comes from it must be told; a released one is not.
func (o *owner) find(key lockKey, accepts func(*Hold) bool) *Hold {
	for ; o != nil; o = o.outer {
		if h := o.hold.within(key, accepts); h != nil {
			return h
		}
	}
	return nil
}

// within looks in a hold and its members.
func (h *Hold) within(key lockKey, accepts func(*Hold) bool) *Hold {
	if h.tenure.key == key && !h.tenure.over(h) && (accepts == nil || accepts(h)) {
		return h
	}
	for _, m := range h.members() {
		if found := m.within(key, accepts); found != nil {
			return found
		}
	}
	return nil
}

// every calls fn for each tenure of a lock that a context comes from, once.
func (o *owner) every(key lockKey, fn func(*tenure)) {
	seen := make(map[*tenure]bool)
	var visit func(h *Hold)
	visit = func(h *Hold) {
		if t := h.tenure; t.key == key && !seen[t] {
			seen[t] = true
			fn(t)
		}
		for _, m := range h.members() {
			visit(m)
		}
	}
	for ; o != nil; o = o.outer {
		visit(o.hold)
	}
}

// holds is whether a context comes from a hold of a lock that is not lost or
// released. An empty mark stands for every side.
func (o *owner) holds(key lockKey, mark string) bool {
	h := o.find(key, func(h *Hold) bool { return mark == "" || h.tenure.mark() == mark })
	if h == nil {
		return false
	}
	state, _ := h.tenure.now()
	return state == Held || state == Uncertain
}
