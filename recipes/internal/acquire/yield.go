package acquire

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/internal/deadlock"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// A MultiLock yields by the rules of package deadlock. This file gives that package a
// view of the queues and of the owners of nodes, and carries out what it decides.

const (
	// mostLeft is how often it leaves a queue with all later ones, before it keeps those. To
	// leave them breeds no circles in crowds. To keep them lets it be served beside few
	// owners that take the locks in the reverse order over and over.
	mostLeft = 20
	// mostBehind is how many queues it watches for newcomers. It sees those in others when
	// it looks.
	mostBehind = 16
)

// mostAsked is how many nodes of one queue it asks the servers about.
const mostAsked = 8

// yieldState is what a MultiLock knows about whether it is in the way of others.
type yieldState struct {
	inOrder     bool           // it is an Ordered one
	ordered     bool           // it makes its nodes one by one
	owner       nodename.Owner // of its nodes at first
	left        int            // how often it has left queues with all later ones
	checking    bool           // the next round lists all queues, to see whether it is in the way
	rounds      int            // of lists
	history     deadlock.History
	connectedOn *transport.Conn  // that the wait counts from
	sessions    map[string]int64 // the sessions of nodes, by their paths
}

// sawHead notes which node has what we wait for in a queue.
func (a *Multi) sawHead(i int, m *member, now time.Time) {
	head := ""
	if holders := m.holders(); len(holders) > 0 {
		head = holders[0].Name
	}
	a.history.SawHolder(i, head, now)
}

// view is what the latest lists have shown.
func (a *Multi) view(now time.Time) *deadlock.View {
	v := &deadlock.View{Now: now, Ours: a.likes(), Queues: make([]deadlock.Queue, len(a.members))}
	for i, m := range a.members {
		q := &v.Queues[i]
		q.Listed, q.First, q.Lease = m.seen == a.rounds, m.isFirst(), m.turn != nil
		q.Own = m.name()
		q.OwnTag, q.Waits, q.Made = nodename.TagOf(q.Own), m.waits(), m.czxid
		q.Holders = a.nodes(m, m.holders())
		if m.inTheWay() {
			q.Followers = a.nodes(m, m.followers())
			q.Behind = m.snapshot.Ways(m.place + 1)
		}
		q.Has = func(name string) bool { return m.snapshot.Find(name) >= 0 }
	}
	return v
}

// likes is the way of those with whom it cannot be stuck while its own places are in
// order.
func (a *Multi) likes() nodename.Way {
	if a.ordered {
		return nodename.Ordered
	}
	return nodename.Joint
}

// nodes are entries with what is known of their owners.
func (a *Multi) nodes(m *member, entries []znode.Entry) []deadlock.Node {
	all := make([]deadlock.Node, len(entries))
	for i, e := range entries {
		n := &all[i]
		n.Name = e.Name
		n.Session, n.Known = a.sessions[session.Join(m.queue.Path, e.Name)]
		n.Tag, n.Way = nodename.TagOf(e.Name), nodename.WayOf(e.Name)
	}
	return all
}

// begin sets out, at first or in another session.
func (a *Multi) begin() {
	a.history.Begin(len(a.members), a.hasTurn(), time.Now())
	a.connectedOn = a.conn
	a.sessions = nil
	a.reach, a.ordered = len(a.members), a.inOrder
	for _, m := range a.members {
		m.watch.stop()
		m.behind.stop()
		m.place, m.predecessor, m.owner.Way = 0, "", a.owner.Way
		m.optimistic = m.turn != nil && !a.ordered && !m.contended.Load()
	}
	if a.ordered {
		a.reach = 0
		a.extend()
	}
}

// extend lets the attempt queue for the next lock: one more member, with its lease.
func (a *Multi) extend() {
	a.reach++
	if a.reach < len(a.members) && a.members[a.reach].turn != nil {
		a.reach++
	}
}

// wait returns when something has happened to a node ahead, or it is time to
// check whether we are in the way.
func (a *Multi) wait(ctx context.Context, c *transport.Conn) (first bool, err error) {
	if made, err := a.makeRoom(ctx, c); made || err != nil {
		return false, err
	}
	if a.checking {
		a.checking = false
		if yielded, err := a.checkDeadlock(ctx, c); yielded || err != nil {
			return false, err
		}
	}
	if again, err := a.watchAhead(ctx, c); again || err != nil {
		return false, err
	}
	if again, err := a.watchBehind(ctx, c); again || err != nil {
		return false, err
	}
	for _, m := range a.members {
		switch {
		case !m.waits():
		case m.turn != nil: // turn and lease are one acquisition
			a.tellWait(m.turn.queue, m.path, m.place, m.predecessor)
		default:
			a.tellWait(m.queue, m.path, m.place, m.predecessor)
		}
	}
	var check <-chan time.Time
	if a.inTheWay() {
		timer := time.NewTimer(a.untilCheck(time.Now()))
		defer timer.Stop()
		check = timer.C
	}
	select {
	case <-a.woken:
		return false, nil
	case <-ctx.Done():
		return false, contextend.Of(ctx)
	case <-check:
		a.checking = true
		return false, nil
	}
}

// untilCheck is the time to the next check for a deadlock.
func (a *Multi) untilCheck(now time.Time) time.Duration {
	waits := func(i int) bool { return len(a.members[i].holders()) > 0 }
	return a.history.Next(now, waits, session.RandomOf(a.session, a.members[0].owner.Tag).UpTo)
}

// inTheWay is whether we may be holding another owner up.
func (a *Multi) inTheWay() bool { return slices.ContainsFunc(a.members, (*member).inTheWay) }

// inTheWay is whether another owner may be waiting for this contender. A lease holds
// nobody up, since callers that want it wait for our turn.
func (m *member) inTheWay() bool { return m.turn == nil && m.isFirst() }

// mostSettings bounds the requests on their way that set watches.
const mostSettings = session.MostAhead

// watchAhead sets a watch on the node ahead in each queue where we wait. It reports true
// if one of these nodes has gone meanwhile.
func (a *Multi) watchAhead(ctx context.Context, c *transport.Conn) (again bool, err error) {
	type setting struct {
		*member
		read *transport.Call
	}
	var set []setting
	defer func() {
		if err != nil { // which of them stand is not known
			for _, m := range set {
				m.watch.stop()
			}
		}
	}()
	for _, m := range a.members {
		if m.waits() && m.watch.name == m.predecessor && !m.fired.Load() {
			continue
		}
		if m.watch.stop(); !m.waits() {
			continue
		}
		m.fired = new(atomic.Bool)
		var read *transport.Call
		if m.watch, read, err = watchNode(ctx, c, m.queue, m.predecessor, a.wakes(m.fired)); err != nil {
			return false, err
		}
		if set = append(set, setting{m, read}); len(set) > mostSettings {
			a.session.AwaitLast(ctx, set[len(set)-1-mostSettings].read)
		}
	}
	for _, m := range set {
		switch err := m.watch.await(ctx, c, m.read, a.wakes(m.fired)); {
		case errors.Is(err, zk.ErrNoNode):
			m.watch.stop()
			again = true
		case err != nil:
			return false, err
		}
	}
	return again, nil
}

// wakes returns a function for a watch on a node ahead. The watch is over with its first
// event, also if the node was only written to.
func (a *Multi) wakes(fired *atomic.Bool) func(session.Event) {
	return func(session.Event) {
		fired.Store(true)
		select {
		case a.woken <- struct{}{}:
		default:
		}
	}
}

// takesRoom are the ways of owners for whom a joint MultiLock makes room at once, where it is
// in the way: those that have other locks, or may have some soon.
const takesRoom = nodename.Ways(1<<nodename.Nesting | 1<<nodename.Reverse | 1<<nodename.Ordered)

// makesRoom is to whom we make room in a queue at once. An owner that has a later lock, and
// waits for us here, may be what we wait for there. Others that nest in the order of paths
// are in nobody's way once we take our locks in that order as well.
func (a *Multi) makesRoom(m *member) (ways nodename.Ways) {
	switch {
	case !m.inTheWay():
		return ways
	case a.ordered:
		return ways.With(nodename.Reverse)
	}
	return takesRoom
}

// makeRoom makes room for owners that have come since the last round, if there are any.
func (a *Multi) makeRoom(ctx context.Context, c *transport.Conn) (made bool, err error) {
	var reverse []*member
	must := false
	for _, m := range a.members {
		if to := a.makesRoom(m); to != 0 {
			behind := m.snapshot.Ways(m.place + 1)
			if must = must || behind&to != 0; behind.Has(nodename.Reverse) {
				reverse = append(reverse, m)
			}
		}
	}
	switch {
	case len(reverse) > 0:
		return true, a.leaveOrMove(ctx, c, reverse)
	case must:
		return true, a.takeInOrder(ctx, c, len(a.members))
	}
	return false, nil
}

// watchBehind watches the queues in which we would make room for a newcomer. It reports
// true if one has come since the latest lists.
func (a *Multi) watchBehind(ctx context.Context, c *transport.Conn) (again bool, err error) {
	type setting struct {
		*member
		list *transport.Call
		to   nodename.Ways
	}
	var set []setting
	defer func() {
		if err != nil { // which of them stand is not known
			for _, m := range set {
				m.behind.stop()
			}
		}
	}()
	watched := 0
	for _, m := range a.members {
		to := a.makesRoom(m)
		wanted := to != 0 && watched < mostBehind
		if wanted {
			watched++
		}
		if wanted && m.behind.parent != nil && !m.newcomer.Load() {
			continue
		}
		if m.behind.stop(); !wanted {
			continue
		}
		m.newcomer = new(atomic.Bool)
		m.behind.queue = m.queue
		var list *transport.Call
		if list, m.behind.parent, err = session.WatchChildren(ctx, a.session, c, m.queue.Path, a.wakes(m.newcomer)); err != nil {
			return false, err
		}
		set = append(set, setting{m, list, to})
	}
	for _, m := range set {
		came, err := m.newcomers(ctx, c, m.list, m.to)
		if err != nil {
			return false, err
		}
		again = again || came
	}
	return again, nil
}

// newcomers is whether a list shows somebody behind us for whom we make room.
func (m *member) newcomers(ctx context.Context, c *transport.Conn, list *transport.Call, to nodename.Ways) (bool, error) {
	if err := m.queue.Core.Session().Await(ctx, c, list, false); errors.Is(err, zk.ErrNoNode) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	names, err := session.Names(list)
	if err != nil {
		return false, err
	}
	snap, err := m.queue.Parse(names)
	if err != nil {
		return false, err
	}
	defer snap.Free()
	return snap.Ways(snap.Find(m.name())+1)&to != 0, nil
}

func (a *Multi) unwatch() {
	for _, m := range a.members {
		m.watch.stop()
		m.behind.stop()
	}
}

// checkDeadlock yields where we are in the way, by the lists that were just taken.
func (a *Multi) checkDeadlock(ctx context.Context, c *transport.Conn) (yielded bool, err error) {
	if err := a.askSessions(ctx, c); err != nil {
		return false, err
	}
	var yield []*member
	in, matched := a.history.Decide(a.view(time.Now()))
	for _, i := range in {
		yield = append(yield, a.members[i])
	}
	switch {
	case len(yield) == 0:
		return false, nil
	case matched:
		return true, a.yield(ctx, c, yield, true)
	}
	return true, a.leaveOrMove(ctx, c, yield)
}

// holders are the nodes that have the lock that a member waits for, or will wait for.
// Where we have no node yet, they are those that were there at the last look.
func (m *member) holders() []znode.Entry {
	before := m.place
	switch {
	case m.waits():
	case m.phase != queued:
		if _, waits := m.queue.Rule(m.snapshot, m.snapshot.Len()); !waits {
			return nil
		}
		before = m.snapshot.Len()
	default:
		return nil
	}
	n := min(1, before)
	for n > 0 && n < before && n < mostAsked && m.snapshot.Kind(0) == znode.Read && m.snapshot.Kind(n) == znode.Read {
		n++
	}
	return m.snapshot.Entries(0, n)
}

// followers are those behind a member that is first.
func (m *member) followers() []znode.Entry {
	from := m.place + 1
	return m.snapshot.Entries(from, min(m.snapshot.Len(), from+mostAsked))
}

// askSessions asks the servers, once for each node that matters, which session it belongs
// to.
func (a *Multi) askSessions(ctx context.Context, c *transport.Conn) error {
	var paths []string
	ask := func(q *Queue, nodes []znode.Entry) {
		for _, path := range q.paths(nodes) {
			if _, known := a.sessions[path]; !known && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	for _, m := range a.members {
		ask(m.queue, m.holders())
		if m.inTheWay() {
			ask(m.queue, m.followers())
		}
	}
	if len(paths) == 0 {
		return nil
	}
	if a.sessions == nil {
		a.sessions = make(map[string]int64)
	}
	return eachSession(ctx, a.session, c, paths, func(i int, id int64) bool {
		a.sessions[paths[i]] = id
		return true
	})
}

// leaveOrMove leaves queues, with all later ones, or moves to their ends and keeps those.
func (a *Multi) leaveOrMove(ctx context.Context, c *transport.Conn, yield []*member) error {
	if a.inOrder || a.left >= mostLeft || a.hasTurn() {
		return a.yield(ctx, c, yield, true)
	}
	a.left++
	return a.takeInOrder(ctx, c, slices.Index(a.members, yield[0]))
}

// takeInOrder makes room for owners that take their locks one after another. From now on we
// do so too, in the order of the paths, as if we were Ordered. We leave the queues from a
// member on, or from an earlier one which is not ours, and keep what is before that.
func (a *Multi) takeInOrder(ctx context.Context, c *transport.Conn, from int) error {
	var leaves []*member
	for i, m := range a.members {
		if i < from && !m.isWhole() {
			from = i
		}
		if i >= from && m.turn == nil && m.phase == queued {
			leaves = append(leaves, m)
		}
	}
	if err := a.yield(ctx, c, leaves, false); err != nil {
		return err
	}
	if slices.ContainsFunc(leaves, func(m *member) bool { return m.phase == queued }) {
		return nil // it was refused, as one of the nodes has gone; the next round sees which
	}
	a.ordered, a.reach = true, from
	a.extend()
	return nil
}

// hasTurn is whether a member is a semaphore. Beside owners of its leases that did not pass
// on their contexts, to leave queues, or to wait long before we yield, starves both sides.
func (a *Multi) hasTurn() bool {
	return slices.ContainsFunc(a.members, func(m *member) bool { return m.turn != nil })
}

// isWhole is whether we are first, and with a turn have the lease.
func (m *member) isWhole() bool { return m.isFirst() && (m.lease == nil || m.lease.isFirst()) }

// yield takes our nodes out of some queues, in one transaction, which may put new nodes at
// the ends of these. The lease of a turn goes with it.
func (a *Multi) yield(ctx context.Context, c *transport.Conn, members []*member, replace bool) error {
	var gone, replaced []*contender
	for _, m := range members {
		if m.lease != nil && m.lease.phase == queued {
			gone = append(gone, m.lease.contender)
		}
		if gone = append(gone, m.contender); replace {
			replaced = append(replaced, m.contender)
		}
		a.tell(Event{Kind: Yield, Queue: m.queue})
	}
	req := &wire.MultiRequest{}
	for _, k := range gone {
		req.Ops = append(req.Ops, wire.MultiOp{Op: wire.OpDelete, Request: &wire.PathVersionRequest{Path: k.path, Version: -1}})
		k.sweep(a.id)
		if (a.ordered || !replace) && k.owner.Way == nodename.Joint {
			k.owner.Way = nodename.Ordered
		}
		k.prefix = session.Protection(a.session, k.owner)
	}
	for _, k := range replaced {
		req.Ops = append(req.Ops, wire.MultiOp{Op: wire.OpCreate, Request: k.creation(c)})
	}
	call, err := transaction(req)
	if err == nil {
		err = a.session.Send(ctx, c, call)
	}
	if err != nil {
		return err
	}
	for _, k := range gone {
		k.phase, k.request = replacing, call
	}
	results, err := results(ctx, a.session, c, call, len(req.Ops))
	if errors.Is(err, session.ErrOutcomeUnknown) {
		return err
	}
	if err == nil {
		_, _, err = refusal(results)
	}
	if err != nil {
		for _, k := range gone {
			k.phase, k.request = queued, nil
		}
		if errors.Is(err, zk.ErrNoNode) {
			return nil // somebody deleted one, which the next round sees
		}
		return err
	}
	for _, m := range members {
		m.watch.stop()
		m.behind.stop()
		if m.lease != nil {
			m.lease.watch.stop()
			m.lease.optimistic = false
		}
	}
	for _, k := range gone {
		k.drop()
		k.refused()
		k.path, k.czxid, k.first = "", 0, false
	}
	for i, k := range replaced {
		k.sent(call)
		err = errors.Join(err, k.made(results[len(gone)+i].Path, call.Zxid()))
	}
	return err
}
