package acquire

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// A contender that is next watches the node ahead and its own. With LookAhead every
// contender does so, and also watches the node two ahead. When the node two ahead has
// gone, a list shows whether ours is next. At that time the node between them has the
// lock or is about to get it. If ours is next, the event that the head has gone is enough
// to have the lock, provided that
//
//   - the list showed the head and then our node, and no node can get between them.
//     Behind a write node one can: its owner may take the read side, whose node then
//     stands right behind it;
//   - the list, both watches and the event came on one connection. On another one events
//     come in any order, and the server makes some up;
//   - the head was deleted, and not written to;
//   - our node was seen to exist, and the server had told of no change to it before the
//     event came. Otherwise it may be gone;
//   - the head is of another session. If it is of ours, the end of the session deletes
//     both nodes at once, and the event of the head may come first.
//
// The session decides as always whether it still lives. If one of these conditions is not
// true, another list decides.

// predecessorWatch has the watches that a contender has prepared for its turn. The zero
// value has none.
type predecessorWatch struct {
	s        *session.Session
	events   *predecessorEvents
	granting *predecessorEvents // that made us first, if they did
	// On the node ahead and on ours, nil if they are not wanted any more.
	watches [2]*session.Watch
}

// predecessorEvents notes what happened to the node ahead and to ours. The callbacks run
// in the goroutine that reads the connection.
type predecessorEvents struct {
	s           *session.Session
	c           *transport.Conn
	queue       string // the parent of both
	predecessor string
	own         string        // in full
	sessionID   int64         // the session of the node ahead
	woken       chan struct{} // closed when something has happened to the node ahead

	mu        sync.Mutex           // guards the fields below
	disturbed bool                 // something happened to our node
	gone      bool                 // it was deleted
	tracked   *session.TrackedNode // to our node, once there is one
	deleted   bool                 // the node ahead, before that
	err       error                // why its watch ended
}

func (e *predecessorEvents) ownEvent(ev session.Event) {
	gone := ev.Type == wire.EventNodeDeleted
	e.mu.Lock()
	e.disturbed, e.gone = true, e.gone || gone
	node := e.tracked
	e.mu.Unlock()
	if gone && node != nil {
		node.Vanished()
	}
}

// track says which tracked node is ours. If our node ends after the event of the node
// ahead, the tracked node hears of it.
func (e *predecessorEvents) track(node *session.TrackedNode) {
	if e == nil {
		return
	}
	e.mu.Lock()
	e.tracked = node
	gone := e.gone
	e.mu.Unlock()
	if gone {
		node.Vanished()
	}
}

func (e *predecessorEvents) aheadEvent(ev session.Event) {
	now, _ := e.s.ConnOf(e.c.SessionID())
	e.mu.Lock()
	e.deleted = ev.Type == wire.EventNodeDeleted && !e.disturbed && now == e.c
	e.err = ev.Err
	e.mu.Unlock()
	close(e.woken)
}

// stop gives up what was prepared.
func (pw *predecessorWatch) stop() {
	for _, w := range pw.watches {
		if w != nil {
			session.StopWatch(pw.s, w)
		}
	}
	pw.watches, pw.events, pw.granting = [2]*session.Watch{}, nil, nil
}

// granted ends the preparations of a contender that is first. It leaves the watch on our
// node until that goes, since to remove it would take a request.
func (pw *predecessorWatch) granted() {
	pw.watches[1] = nil
	pw.stop()
}

// wait waits for a change that brings us nearer to the lock, by the latest list, and
// reports whether we have the lock.
func (pw *predecessorWatch) wait(ctx context.Context, a *Attempt, c *transport.Conn, k *contender, p *Position) (first bool, err error) {
	over := pw.events != nil && pw.events.over() // asked once, as the event may come now
	if over && pw.events.c == c && pw.events.predecessor == p.Predecessor {
		// The list shows it, so its event has come after that.
		if first, err := pw.events.grants(p.Place); first || err != nil {
			return pw.grantByEvent(first), err
		}
	}
	if over || !pw.serves(c, k) {
		pw.begin(a.session, c, k, p)
	}
	e := pw.events
	var two chan error // tells of the node two ahead
	var calls []*transport.Call
	if p.next != "" {
		two = make(chan error, 1)
		call, watch, err := session.WatchData(ctx, a.session, c, session.Join(k.queue.Path, p.next), func(ev session.Event) { two <- ev.Err })
		if err != nil {
			return false, err
		}
		defer session.StopWatch(a.session, watch)
		calls = append(calls, call)
	}
	if err := pw.awaitReplies(ctx, calls); err != nil {
		pw.stop()
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return false, nil // somebody has gone by now, perhaps we
		case errors.Is(err, zk.ErrNoAuth): // to read one of the nodes
			return false, a.waitFor(ctx, c, k, p)
		}
		return false, err
	}
	select {
	case <-e.woken:
		first, err := e.grants(p.Place)
		return pw.grantByEvent(first), err
	case err = <-two:
	case <-ctx.Done():
		if p.Head.n == 0 {
			p.sessionID = e.sessionID
		}
		return false, contextend.Of(ctx)
	}
	return false, ofSession(err)
}

// serves is whether the watches are on our node and the node ahead of it. A different node
// ahead implies that the former one is gone, and then its watch is over.
func (pw *predecessorWatch) serves(c *transport.Conn, k *contender) bool {
	return pw.events != nil && pw.events.c == c && pw.events.own == k.path
}

// begin forgets what was prepared. The watches are still to be set.
func (pw *predecessorWatch) begin(s *session.Session, c *transport.Conn, k *contender, p *Position) {
	pw.stop()
	pw.s = s
	pw.events = &predecessorEvents{s: s, c: c, queue: k.queue.Path, predecessor: p.Predecessor, own: k.path, woken: make(chan struct{})}
}

// grantByEvent ends the preparations if we are first.
func (pw *predecessorWatch) grantByEvent(first bool) bool {
	if first {
		events := pw.events
		pw.granted()
		pw.granting = events
	}
	return first
}

// awaitReplies waits until the watches are set, and for the other requests that were sent
// together with them.
func (pw *predecessorWatch) awaitReplies(ctx context.Context, others []*transport.Call) error {
	s, e := pw.s, pw.events
	var calls []*transport.Call
	if pw.watches[0] == nil {
		for i, set := range []struct {
			path string
			fn   func(session.Event)
		}{{session.Join(e.queue, e.predecessor), e.aheadEvent}, {e.own, e.ownEvent}} {
			call, watch, err := session.WatchData(ctx, s, e.c, set.path, set.fn)
			if err != nil {
				return err
			}
			pw.watches[i] = watch
			calls = append(calls, call)
		}
	}
	all := append(slices.Clone(others), calls...)
	if len(all) > 0 {
		s.AwaitLast(ctx, all[len(all)-1])
	}
	for _, call := range all {
		if err := s.Await(ctx, e.c, call, false); err != nil {
			return err
		}
	}
	if len(calls) == 0 {
		return nil
	}
	var resp wire.GetDataResponse
	err := calls[0].Decode(&resp)
	e.sessionID = resp.Stat.EphemeralOwner
	return err
}

// over is whether the watch on the node ahead has ended.
func (e *predecessorEvents) over() bool {
	select {
	case <-e.woken:
		return true
	default:
		return false
	}
}

// grants is whether the lock is ours now that something has happened to the node
// ahead, when the list had shown us at a position.
func (e *predecessorEvents) grants(at int) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if errors.Is(e.err, zk.ErrSessionExpired) {
		return false, session.ErrSessionOver
	}
	return at == 1 && e.deleted && !e.disturbed && e.sessionID != e.c.SessionID(), e.err
}
