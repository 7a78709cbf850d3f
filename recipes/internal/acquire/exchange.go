package acquire

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/cleanup"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// exchange makes nodes and lists queues, in one round trip. The server answers in order,
// so each list shows our node and every older one that is left. A list that is out of
// date can show too many older nodes, but never too few.
//
// After a creation without a known outcome it sends a barrier first, so the lists show
// what the creation has made. On another connection than before it sends a sync first,
// since this server may be behind the one that told us of our nodes.
//
// If another caller has gone while it waited for that, this one waits for the same answers.
func (a *Attempt) exchange(ctx context.Context, c *transport.Conn, p *plan) error {
	if s := a.onWay; s != nil {
		a.onWay = nil
		if s.conn == c && a.contenders[0].phase != absent {
			return a.takeIn(ctx, s, s.creations)
		}
	}
	var room [4]*transport.Call
	var one [1]creation
	calls, lists := room[:0], listing{of: p.list, around: p.around}
	before := a.before(c)
	if before != nil {
		calls = append(calls, before)
	}
	creations, err := a.creations(c, p, one[:0])
	if err != nil {
		return err
	}
	for _, m := range creations {
		calls = append(calls, m.call)
	}
	calls = lists.ask(a, calls, p.watch != nil)
	if err := a.send(ctx, c, calls, creations, &lists); err != nil {
		return err
	}
	if p.watch != nil {
		if err := lists.askWatched(ctx, a, c, p.watch); err != nil {
			return errors.Join(a.created(ctx, c, creations), err)
		}
		calls = append(calls, lists.one)
	}
	return a.takeIn(ctx, &sent{conn: c, before: before, lists: lists, last: calls[len(calls)-1]}, creations)
}

// sent is what a round has sent.
type sent struct {
	conn      *transport.Conn
	before    *transport.Call // see Attempt.before
	creations []creation
	lists     listing
	last      *transport.Call
}

// takeIn waits for the answers to what was sent, and takes them in. If the caller has gone before
// they have come, whoever goes on with the attempt does so. Where many wait for short times, each
// may have less than a round trip left, and none would get the lock by answers of its own.
// The creations are apart from the rest so that they need not be on the heap.
func (a *Attempt) takeIn(ctx context.Context, s *sent, creations []creation) error {
	a.session.AwaitLast(ctx, s.last)
	if a.resumable && ctx.Err() != nil {
		a.onWay = &sent{s.conn, s.before, slices.Clone(creations), s.lists, s.last}
	}
	// First what may have made nodes: whatever ends the waiting, it must be known.
	if err := a.created(ctx, s.conn, creations); err != nil {
		return err
	}
	if a.onWay != nil {
		a.onWay.creations = nil
	}
	if s.before != nil {
		if err := session.AwaitBarrier(ctx, a.session, s.conn, s.before); err != nil {
			return err
		}
	}
	if err := s.lists.read(ctx, a, s.conn); err != nil {
		return err
	}
	a.conn, a.onWay = s.conn, nil
	return nil
}

// before is the request that has to come before the others of a round, nil for none.
func (a *Attempt) before(c *transport.Conn) *transport.Call {
	first := a.contenders[0].queue.Path
	switch {
	case a.any((*contender).unknown):
		return session.Barrier(first)
	case a.conn != c && a.any(func(k *contender) bool { return k.phase == queued }):
		return transport.NewCall(wire.OpSync, &wire.PathRequest{Path: first})
	}
	return nil
}

// any is whether something holds for one of the contenders.
func (a *Attempt) any(holds func(*contender) bool) bool {
	for i := range a.contenders {
		if holds(&a.contenders[i]) {
			return true
		}
	}
	return false
}

// send sends the calls of a round, of which some make nodes: one creation and its list with
// those of other attempts. After an error it is known which of the creations were sent.
func (a *Attempt) send(ctx context.Context, c *transport.Conn, calls []*transport.Call, creations []creation, lists *listing) (err error) {
	switch {
	case len(calls) == 2 && len(creations) == 1 && !creations[0].joint && lists.one != nil && lists.of[0] == creations[0].of[0]:
		q := lists.of[0].queue
		err = session.CreateJointly(ctx, q.Core, c, q.Path, !q.isPart(), calls[0], calls[1])
	case len(calls) <= 3 && len(creations) <= 1:
		err = a.session.Send(ctx, c, calls...)
	default:
		for _, m := range creations {
			m.sent() // each call ends, and then it is known
		}
		if err = a.session.SendAll(ctx, c, calls); err != nil {
			_ = a.created(ctx, c, creations)
		}
		return err
	}
	if err == nil && len(creations) == 1 {
		creations[0].sent()
	}
	return err
}

// listing is the requests that list queues in a round.
type listing struct {
	of     []*contender
	around []*contender    // see plan
	one    *transport.Call // for the only queue, nil for none
	many   *session.Lists  // for all others, and for paths of locks behind them; nil for none
}

// ask adds the requests, but for the list of a queue that is watched: then around has a path.
func (l *listing) ask(a *Attempt, calls []*transport.Call, watched bool) []*transport.Call {
	if !watched && len(l.of) == 1 && len(l.around) == 0 {
		l.one = session.NewList(l.of[0].queue.Path)
		return append(calls, l.one)
	}
	var paths []string
	if !watched {
		for _, k := range l.of {
			paths = append(paths, k.queue.Path)
		}
	}
	for _, k := range l.around {
		paths = append(paths, k.queue.Lock)
	}
	l.many = session.NewLists(a.session, paths, a.apart)
	return append(calls, l.many.Calls...)
}

// read takes in the lists. It settles what creations of unknown outcome have made.
func (l *listing) read(ctx context.Context, a *Attempt, c *transport.Conn) error {
	for i, k := range l.of {
		children, err := l.children(ctx, a, c, i)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			children = wire.Names{}
			a.removeIn(k.queue) // they should be gone with their parent; but no list has shown that
		case err != nil:
			return err
		}
		for j := range a.contenders {
			if other := &a.contenders[j]; other.queue == k.queue && other.unknown() {
				other.find(children)
			}
		}
		k.drop()
		if k.snapshot, err = k.queue.Parse(children); err != nil {
			return err
		}
		k.list = l.one
	}
	return l.readAround(ctx, a, c)
}

// readAround takes in who uses the paths of locks themselves. Children that cannot be
// seen count as none.
func (l *listing) readAround(ctx context.Context, a *Attempt, c *transport.Conn) error {
	for i, k := range l.around {
		at := i
		if l.one == nil {
			at += len(l.of)
		}
		children, err := l.oneOfMany(ctx, a, c, at)
		if err != nil && !session.Unseen(err) {
			return err
		}
		k.lookAround(children)
	}
	return nil
}

// children are the children that a list has shown.
func (l *listing) children(ctx context.Context, a *Attempt, c *transport.Conn, i int) (wire.Names, error) {
	if l.one != nil {
		if err := a.session.Await(ctx, c, l.one, false); err != nil {
			return wire.Names{}, err
		}
		return session.Names(l.one)
	}
	return l.oneOfMany(ctx, a, c, i)
}

func (l *listing) oneOfMany(ctx context.Context, a *Attempt, c *transport.Conn, i int) (wire.Names, error) {
	children, err := session.Listed(ctx, a.session, c, l.many, i)
	if errors.Is(err, session.ErrApart) {
		a.apart, err = true, errStale
	}
	return children, err
}

// removeIn deletes the nodes in one queue.
func (a *Attempt) removeIn(q *Queue) {
	for i := range a.contenders {
		if k := &a.contenders[i]; k.queue == q && k.phase == queued {
			cleanup.Remove(a.session, a.id, k.path)
		}
	}
}

// childWatch tells of the next change in a queue.
type childWatch struct {
	changed chan error // of one: why the watch has ended, nil for a change
	watch   *session.Watch
}

// askWatched asks for a single queue, and to be told of its next change.
func (l *listing) askWatched(ctx context.Context, a *Attempt, c *transport.Conn, w *childWatch) (err error) {
	changed := w.changed
	l.one, w.watch, err = session.WatchChildren(ctx, a.session, c, l.of[0].queue.Path, func(ev session.Event) { changed <- ev.Err })
	return err
}

// listBefore lists queues before anything is made. It sends a sync first, so as not to
// judge by an old state.
func (a *Attempt) listBefore(ctx context.Context, c *transport.Conn, of []*contender) error {
	return a.listAlone(ctx, c, of, transport.NewCall(wire.OpSync, &wire.PathRequest{Path: of[0].queue.Path}))
}

// listAlone lists queues. The other requests leave first.
func (a *Attempt) listAlone(ctx context.Context, c *transport.Conn, of []*contender, first ...*transport.Call) error {
	lists := listing{of: of}
	calls := lists.ask(a, first, false)
	if err := a.session.SendAll(ctx, c, calls); err != nil {
		return err
	}
	a.session.AwaitLast(ctx, calls[len(calls)-1])
	for _, call := range first {
		if err := a.session.Await(ctx, c, call, false); err != nil {
			return err
		}
	}
	return lists.read(ctx, a, c)
}
