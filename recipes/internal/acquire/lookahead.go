package acquire

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// A contender in the queue of a mutex watches the node that stands two ahead of it. When
// that one has gone, it watches the node ahead and its own, and lists: the node ahead has
// the lock by then or is about to get it, unless others are ahead. If ours is next, the
// event that the head has gone is enough to have the lock, provided that
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
	events   *predecessorEvents
	granting *predecessorEvents // that made us first, if they did
	// On the node ahead and on ours, nil if they are not wanted any more, and the reads
	// that set them, nil once they were answered.
	watches [2]*session.Watch
	reads   [2]*transport.Call
}

// predecessorEvents notes what happened to the node ahead and to ours. The callbacks run
// in the goroutine that reads the connection.
type predecessorEvents struct {
	s           *session.Session
	c           *transport.Conn
	predecessor string
	own         string        // in full
	sessionID   int64         // of the node ahead, once that was read
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
			session.StopWatch(pw.events.s, w)
		}
	}
	*pw = predecessorWatch{}
}

// granted ends the preparations of a contender that is first. It leaves the watch on our
// node until that goes, since to remove it would take a request.
func (pw *predecessorWatch) granted() {
	pw.watches[1] = nil
	pw.stop()
}

// prepare sets the watches when the node two ahead has gone, before the list that shows
// whether ours is next. If that fails, wait does it again.
func (pw *predecessorWatch) prepare(ctx context.Context, s *session.Session, c *transport.Conn, k *contender, p *Position) {
	if !pw.serves(c, k, p) {
		_ = pw.begin(ctx, s, c, k, p)
	}
}

// wait waits for a change to the node ahead, which the latest list has shown at the head of
// the queue, and reports whether we have the lock.
func (pw *predecessorWatch) wait(ctx context.Context, a *Attempt, c *transport.Conn, k *contender, p *Position) (first bool, err error) {
	if !pw.serves(c, k, p) {
		err = pw.begin(ctx, a.session, c, k, p)
	}
	if err == nil {
		first, err = pw.await(ctx, a.session, p)
	}
	if err != nil {
		pw.stop()
	}
	switch {
	case errors.Is(err, zk.ErrNoNode): // one of the nodes has gone by now, perhaps ours
		return false, nil
	case errors.Is(err, zk.ErrNoAuth): // to read one of them
		return false, a.waitFor(ctx, c, k, p.Predecessor, p)
	}
	return first, err
}

// begin forgets what was prepared, and watches the node ahead and ours.
func (pw *predecessorWatch) begin(ctx context.Context, s *session.Session, c *transport.Conn, k *contender, p *Position) error {
	pw.stop()
	e := &predecessorEvents{s: s, c: c, predecessor: p.Predecessor, own: k.path, woken: make(chan struct{})}
	pw.events = e
	for i, set := range []struct {
		path string
		fn   func(session.Event)
	}{{session.Join(k.queue.Path, p.Predecessor), e.aheadEvent}, {e.own, e.ownEvent}} {
		var err error
		if pw.reads[i], pw.watches[i], err = session.WatchData(ctx, s, c, set.path, set.fn); err != nil {
			pw.stop()
			return err
		}
	}
	return nil
}

// serves is whether the node ahead is watched for our node. A watch that a write to the
// node ahead has ended serves no more.
func (pw *predecessorWatch) serves(c *transport.Conn, k *contender, p *Position) bool {
	e := pw.events
	return e != nil && e.c == c && e.own == k.path && e.predecessor == p.Predecessor && !e.spent()
}

// await waits for the event of the node ahead. It also returns the refusal of a request
// that sets a watch.
func (pw *predecessorWatch) await(ctx context.Context, s *session.Session, p *Position) (first bool, err error) {
	e := pw.events
	if pw.reads[0] != nil {
		s.AwaitLast(ctx, pw.reads[1])
		for _, read := range pw.reads {
			if err := s.Await(ctx, e.c, read, false); err != nil {
				return false, err
			}
		}
		var ahead wire.GetDataResponse
		if err := pw.reads[0].Decode(&ahead); err != nil {
			return false, err
		}
		e.sessionID, pw.reads = ahead.Stat.EphemeralOwner, [2]*transport.Call{}
	}
	select {
	case <-e.woken:
		if first, err = e.grants(); first {
			pw.granted()
			pw.granting = e
		}
		return first, err
	case <-ctx.Done():
		p.sessionID = e.sessionID
		return false, contextend.Of(ctx)
	}
}

// spent is whether the watch on the node ahead has ended, and that node is not gone.
func (e *predecessorEvents) spent() bool {
	select {
	case <-e.woken:
	default:
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.deleted
}

// grants is whether the lock is ours now that something has happened to the node ahead.
func (e *predecessorEvents) grants() (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if errors.Is(e.err, zk.ErrSessionExpired) {
		return false, session.ErrSessionOver
	}
	return e.deleted && !e.disturbed && e.sessionID != e.c.SessionID(), e.err
}
