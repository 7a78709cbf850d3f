package recipes

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/foreign"
	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
)

// LookAhead makes hand-offs faster behind a far network: a waiter gets the lock
// with the event of its predecessor's release, half a round trip after the
// servers have applied it, instead of listing the queue first. Who came second in
// the queue does so in any case; with LookAhead, everybody. A hand-off costs two
// watches and an event more, at a time when nobody waits for them, and each
// release tells two waiters instead of one. It is for mutexes, and without effect
// on others.
func LookAhead() Option { return option(func(o *options) { o.lookAhead = true }) }

// A place that is next watches the node ahead and its own. With LookAhead every
// place does, and the node two ahead, whoever is between. When that has gone, a
// list shows whether ours is next, at a time when the one between still has the
// lock or is about to get it. If so, the lock is ours by nothing but the event
// that the head has gone, provided that
//
//   - the list showed the head and then our node, and nobody can get between them:
//     not so behind a write node, whose owner may take the read side, which then
//     stands right behind it;
//   - the list, both watches and the event came on one connection: on another one
//     events come in any order, and some are made up;
//   - the head was deleted, and not written to;
//   - our node was seen to exist, and nothing had happened to it when the event
//     came, in the order in which the server told: it may be gone;
//   - the head is of another session: with ours both nodes go at once, and the
//     event of the head may come first.
//
// That the session is believed in is for the claim to say, as always. Whatever
// does not hold, another look decides.

// heir is what a place has prepared for its turn: the zero heir nothing.
type heir struct {
	seen  view // the latest that showed somebody ahead
	s     *session.Session
	omens *omens
	won   *omens // that made us first, if they did
	// On the node ahead and on ours, nil if they are not wanted any more.
	watches [2]*session.Watch
}

// omens are what happened to the node ahead and to ours. The callbacks run in the
// goroutine that reads the connection.
type omens struct {
	p     *place
	c     *link.Conn
	ahead string
	own   string
	owner int64         // the session of the node ahead
	woken chan struct{} // closed when something has happened to the node ahead

	mu        sync.Mutex     // guards the fields below
	disturbed bool           // something happened to our node
	gone      bool           // it was deleted
	claim     *session.Claim // to our node, once there is one
	deleted   bool           // the node ahead, before that
	err       error          // why its watch ended
}

func (o *omens) ownEvent(ev session.Event) {
	gone := ev.Type == wire.EventNodeDeleted
	o.mu.Lock()
	o.disturbed, o.gone = true, o.gone || gone
	cl := o.claim
	o.mu.Unlock()
	if gone && cl != nil {
		o.p.scope.Session.Vanished(cl)
	}
}

// claimed lets the claim to our node hear of its end: what comes after the event
// of the node ahead is not lost.
func (o *omens) claimed(cl *session.Claim) {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.claim = cl
	gone := o.gone
	o.mu.Unlock()
	if gone {
		o.p.scope.Session.Vanished(cl)
	}
}

func (o *omens) aheadEvent(ev session.Event) {
	now, _ := o.p.scope.Session.Current(o.c.Session())
	o.mu.Lock()
	o.deleted = ev.Type == wire.EventNodeDeleted && !o.disturbed && now == o.c
	o.err = ev.Err
	o.mu.Unlock()
	close(o.woken)
}

// stop gives up what was prepared.
func (h *heir) stop() {
	for _, w := range h.watches {
		if w != nil {
			h.s.StopWatch(w)
		}
	}
	h.watches, h.omens = [2]*session.Watch{}, nil
}

// inherited ends the preparations of who is first. The watch on our node goes with
// it: to remove it would take a request.
func (h *heir) inherited() {
	h.watches[1] = nil
	h.stop()
}

// pass waits for what brings us nearer to the lock, by the list that was just
// taken, and reports whether it is ours.
func (p *place) pass(ctx context.Context, c *link.Conn, h *heir) (first bool, err error) {
	s, v := p.scope.Session, &h.seen
	o := h.omens
	over := o != nil && o.over() // asked once, as the event may come now
	if over && o.c == c && o.ahead == v.ahead {
		// The list shows it, so its event has come after that.
		if first, err := o.won(v.at); first || err != nil {
			return h.inherit(first), err
		}
	}
	// Another one is ahead than before only if that has gone, which ends the watch.
	if o == nil || over || o.c != c || o.own != p.name {
		h.stop()
		o = &omens{p: p, c: c, ahead: v.ahead, own: p.name, woken: make(chan struct{})}
		h.s, h.omens = s, o
	}
	var two chan error // tells of the node two ahead
	var calls []*link.Call
	if v.next != "" {
		two = make(chan error, 1)
		call, watch, err := s.WatchData(ctx, c, session.Below(p.path, v.next), func(ev session.Event) { two <- ev.Err })
		if err != nil {
			return false, err
		}
		defer s.StopWatch(watch)
		calls = append(calls, call)
	}
	if err := h.settle(ctx, calls); err != nil {
		h.stop()
		switch {
		case errors.Is(err, framework.ErrNoNode):
			return false, nil // somebody has gone by now, perhaps we
		case errors.Is(err, framework.ErrNoAuth): // to read one of the nodes
			return false, p.await(ctx, c, v)
		}
		return false, err
	}
	select {
	case <-o.woken:
		first, err := o.won(v.at)
		return h.inherit(first), err
	case err = <-two:
	case <-ctx.Done():
		if v.front.n == 0 {
			v.owner = o.owner
		}
		return false, foreign.ContextEnd(ctx)
	}
	if errors.Is(err, framework.ErrSessionExpired) {
		err = session.ErrSessionOver
	}
	return false, err
}

// inherit ends the preparations if we are first.
func (h *heir) inherit(first bool) bool {
	if first {
		h.won = h.omens
		h.inherited()
	}
	return first
}

// settle sees to it that the watches stand, and waits for others that were asked
// for together with them.
func (h *heir) settle(ctx context.Context, others []*link.Call) error {
	s, o := h.s, h.omens
	var calls []*link.Call
	if h.watches[0] == nil {
		for i, set := range []struct {
			path string
			fn   func(session.Event)
		}{{session.Below(o.p.path, o.ahead), o.aheadEvent}, {o.p.node(), o.ownEvent}} {
			call, watch, err := s.WatchData(ctx, o.c, set.path, set.fn)
			if err != nil {
				return err
			}
			h.watches[i] = watch
			calls = append(calls, call)
		}
	}
	all := append(slices.Clone(others), calls...)
	if len(all) > 0 {
		s.Settle(ctx, all[len(all)-1])
	}
	for _, call := range all {
		if err := s.Await(ctx, o.c, call, false); err != nil {
			return err
		}
	}
	if len(calls) == 0 {
		return nil
	}
	var resp wire.GetDataResponse
	err := calls[0].Decode(&resp)
	o.owner = resp.Stat.EphemeralOwner
	return err
}

// over is whether the watch on the node ahead has ended.
func (o *omens) over() bool {
	select {
	case <-o.woken:
		return true
	default:
		return false
	}
}

// won is whether the lock is ours now that something has happened to the node
// ahead, when the list had shown us at a place.
func (o *omens) won(at int) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, framework.ErrSessionExpired) {
		return false, session.ErrSessionOver
	}
	return at == 1 && o.deleted && !o.disturbed && o.owner != o.c.Session(), o.err
}
