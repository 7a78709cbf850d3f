package recipes

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
)

// LookAhead makes hand-offs faster behind a far network: a waiter gets the lock
// with the event of its predecessor's release, half a round trip after the
// servers have applied it, instead of listing the queue first. A hand-off costs
// two watches and an event more, at a time when nobody waits for them, so on a
// near network it is rather slower. It is for mutexes and write sides, and
// without effect on others.
func LookAhead() Option { return option(func(o *options) { o.lookAhead = true }) }

// With LookAhead a place watches the node ahead, its own, and the one two ahead,
// whoever is between. When that has gone, a list shows whether ours is next, at a
// time when the one between still has the lock or is about to get it. If so, the
// lock is ours by nothing but the event that the head has gone, provided that
//
//   - the list showed the head and then our node: nobody can get between them;
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

// heir is what happened to the node ahead and to ours. Its callbacks run in the
// goroutine that reads the connection.
type heir struct {
	p       *place
	c       *link.Conn
	ahead   string
	watches [2]*session.Watch // on the node ahead and on ours
	foreign bool              // the node ahead is not of our session
	woken   chan struct{}     // closed when something has happened to the node ahead

	mu        sync.Mutex // guards the fields below
	disturbed bool       // something happened to our node
	deleted   bool       // the node ahead, before that
	err       error      // why its watch ended
}

func (h *heir) ownEvent(session.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.disturbed = true
}

func (h *heir) aheadEvent(ev session.Event) {
	now, _ := h.p.scope.Session.Current(h.p.session)
	h.mu.Lock()
	h.deleted = ev.Type == wire.EventNodeDeleted && !h.disturbed && now == h.c
	h.err = ev.Err
	h.mu.Unlock()
	close(h.woken)
}

// stop gives the watches up.
func (h *heir) stop() {
	if h == nil {
		return
	}
	for _, w := range h.watches {
		if w != nil {
			h.p.scope.Session.StopWatch(w)
		}
	}
}

// disinherit gives up what was prepared.
func (p *place) disinherit() {
	p.heir.stop()
	p.heir = nil
}

// inherited ends the preparations of who is first. The watch on our node goes with
// it: to remove it would take a request.
func (p *place) inherited() {
	if h := p.heir; h != nil && h.watches[0] != nil {
		p.scope.Session.StopWatch(h.watches[0])
	}
	p.heir = nil
}

// pass waits for what brings us nearer to the lock, by the list that was just
// taken, and reports whether it is ours.
func (p *place) pass(ctx context.Context, c *link.Conn, line []contender, at int) (first bool, err error) {
	s := p.scope.Session
	ahead := line[at-1].name
	h := p.heir
	if h != nil && h.c == c && h.ahead == ahead && h.over() {
		// The list shows it, so its event has come after that.
		if first, err := h.won(at); first || err != nil {
			return first, err
		}
	}
	// Another one is ahead than before only if that has gone, which ends the watch.
	if h == nil || h.c != c || h.over() {
		p.disinherit()
		h = &heir{p: p, c: c, ahead: ahead, woken: make(chan struct{})}
		p.heir = h
	}
	var two chan error // tells of the node two ahead
	var calls []*link.Call
	if at > 1 {
		two = make(chan error, 1)
		call, watch, err := s.WatchData(ctx, c, session.Below(p.path, line[at-2].name), func(ev session.Event) { two <- ev.Err })
		if err != nil {
			return false, err
		}
		defer s.StopWatch(watch)
		calls = append(calls, call)
	}
	if err := h.settle(ctx, calls); err != nil {
		p.disinherit()
		switch {
		case errors.Is(err, framework.ErrNoNode):
			return false, nil // somebody has gone by now, perhaps we
		case errors.Is(err, framework.ErrNoAuth): // to read one of the nodes
			return false, p.await(ctx, c, ahead)
		}
		return false, err
	}
	select {
	case <-h.woken:
		return h.won(at)
	case err = <-two:
	case <-ctx.Done():
		return false, session.ContextError(ctx)
	}
	if errors.Is(err, framework.ErrSessionExpired) {
		err = session.ErrSessionOver
	}
	return false, err
}

// settle sees to it that the watches stand, and waits for others that were asked
// for together with them.
func (h *heir) settle(ctx context.Context, others []*link.Call) error {
	s := h.p.scope.Session
	var calls []*link.Call
	if h.watches[0] == nil {
		for i, set := range []struct {
			path string
			fn   func(session.Event)
		}{{session.Below(h.p.path, h.ahead), h.aheadEvent}, {h.p.node(), h.ownEvent}} {
			call, watch, err := s.WatchData(ctx, h.c, set.path, set.fn)
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
		if err := s.Await(ctx, h.c, call, false); err != nil {
			return err
		}
	}
	if len(calls) == 0 {
		return nil
	}
	var resp wire.GetDataResponse
	err := calls[0].Decode(&resp)
	h.foreign = resp.Stat.EphemeralOwner != h.p.session
	return err
}

// over is whether the watch on the node ahead has ended.
func (h *heir) over() bool {
	select {
	case <-h.woken:
		return true
	default:
		return false
	}
}

// won is whether the lock is ours now that something has happened to the node
// ahead, when the list had shown us at a place.
func (h *heir) won(at int) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.err, framework.ErrSessionExpired) {
		return false, session.ErrSessionOver
	}
	return at == 1 && h.deleted && h.foreign, h.err
}
