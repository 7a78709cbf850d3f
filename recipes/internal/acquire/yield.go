package acquire

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/foreign"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// A MultiLock can deadlock with an owner that takes the same locks one after
// another, in whatever order: our node in queue i stands ahead of theirs, while
// in queue j theirs stands ahead of ours. So while it is not whole, a MultiLock that
// is first in queue i and waits in queue j looks from time to time whether the
// one that has j is the one that waits behind us in i: whether their nodes are
// of one session. If so, it yields: its node in i goes to the end of the queue,
// and every other place is kept. Cycles of three or more show no such match, so
// without one the same is done after a longer time.
//
// Nodes of ours say whose they are, so that many owners can share a session (see
// session.Tag). Those of other libraries may match for no reason, and an owner
// may give up waiting by itself. What tells them apart is time: who waits for us
// does not give back what we wait for. So the head of j has to have stood for as
// long as our backoff, see backoff.go.
const (
	firstLook  = time.Millisecond
	mostLook   = 256 * time.Millisecond
	mostOwners = 8 // that are asked for in one queue
)

// yieldState is what a MultiLock knows about standing in others' way.
type yieldState struct {
	ordered bool          // makes its nodes one by one
	looking bool          // the next round is a look
	lookIn  time.Duration // how long until the next look
	backoffs
	owners map[string]int64
}

// headSince is since when the same node was seen at the head of a queue.
type headSince struct {
	head  string
	since time.Time
}

func (a *Multi) sawHead(m *member) {
	head := ""
	if holders := m.holders(); len(holders) > 0 {
		head = holders[0].Name
	}
	if m.head != head {
		m.head, m.since = head, time.Now()
	}
}

// begin sets out, at first or in another session.
func (a *Multi) begin(*Attempt) {
	a.lookIn = firstLook
	a.backoffs = newBackoffs(time.Now())
	a.stall.conn = a.conn
	a.owners = nil
	a.reach = len(a.members)
	for _, m := range a.members {
		m.unwatch()
		m.at, m.ahead = 0, ""
		m.optimistic = m.turn != nil && !a.ordered && !m.contended.Load()
	}
	if a.ordered {
		a.reach = 0
		a.extend()
	}
}

// extend lets the next lock be queued for: one more member, with its lease.
func (a *Multi) extend() {
	a.reach++
	if a.reach < len(a.members) && a.members[a.reach].turn != nil {
		a.reach++
	}
}

// wait returns when something has happened to a node ahead, or it is time to
// look whether we are in the way.
func (a *Multi) wait(ctx context.Context, _ *Attempt, c *transport.Conn) (first bool, err error) {
	if a.looking {
		a.looking = false
		if yielded, err := a.lookAround(ctx, c); yielded || err != nil {
			return false, err
		}
	}
	if again, err := a.watchAhead(ctx, c); again || err != nil {
		return false, err
	}
	for _, m := range a.members {
		switch {
		case !m.waits():
		case m.turn != nil: // turn and lease are one acquisition
			a.tell(Event{Kind: Wait, Queue: m.turn.queue})
		default:
			a.tell(Event{Kind: Wait, Queue: m.queue})
		}
	}
	var look <-chan time.Time
	if a.inTheWay() {
		timer := time.NewTimer(a.untilLook(time.Now()))
		defer timer.Stop()
		look = timer.C
	}
	select {
	case <-a.woken:
		return false, nil
	case <-ctx.Done():
		return false, foreign.ContextEnd(ctx)
	case <-look:
		a.looking = true
		return false, nil
	}
}

// untilLook is the time to the next look: when an owner that waits for us would
// have stood for as long as our backoff, and otherwise, or if that is far off,
// less and less often, as somebody may have come behind us. It is no later than
// the end of the backoff with those of whom nothing shows.
func (a *Multi) untilLook(now time.Time) time.Duration {
	chance := a.session.RandomOf(a.members[0].tag)
	next := a.lookIn/2 + chance.Below(a.lookIn)
	stall := a.stall.time(now)
	for _, m := range a.members {
		if len(m.holders()) == 0 {
			continue
		}
		for _, patience := range []time.Duration{a.sure.time(), a.unsure.time()} {
			if left := m.since.Add(patience).Sub(now); left > 0 && left <= mostLook {
				a.lookIn = firstLook
				return left + chance.Below(patience/2)
			}
		}
		if left := m.since.Add(stall).Sub(now); left > 0 {
			next = min(next, left+chance.Below(stall/stallJitter))
		}
	}
	a.lookIn = min(2*a.lookIn, mostLook)
	return next
}

// inTheWay is whether we may be holding somebody up.
func (a *Multi) inTheWay() bool { return slices.ContainsFunc(a.members, (*member).inTheWay) }

// inTheWay is whether somebody may be waiting for this contender: a lease holds nobody
// up, as who wants it waits for our turn.
func (m *member) inTheWay() bool { return m.turn == nil && m.isFirst() }

// mostSettings bounds the requests on their way that set watches.
const mostSettings = session.MostAhead

// watchAhead sees to it that the node ahead is watched wherever we wait. It
// reports true if one has gone meanwhile.
func (a *Multi) watchAhead(ctx context.Context, c *transport.Conn) (again bool, err error) {
	s := a.session
	type setting struct {
		st   *member
		call *transport.Call
	}
	var set []setting
	for _, m := range a.members {
		if !m.waits() {
			m.unwatch()
			continue
		}
		if m.watched == m.ahead && !m.fired.Load() {
			continue
		}
		m.unwatch()
		fired := new(atomic.Bool)
		call, watch, err := s.WatchData(ctx, c, session.Below(m.queue.Path, m.ahead), a.wakes(fired))
		if err != nil {
			return false, err
		}
		m.watch, m.watched, m.fired = watch, m.ahead, fired
		if set = append(set, setting{m, call}); len(set) > mostSettings {
			s.Settle(ctx, set[len(set)-1-mostSettings].call)
		}
	}
	for _, w := range set {
		err := s.Await(ctx, c, w.call, false)
		if errors.Is(err, zk.ErrNoAuth) {
			w.st.unwatch()
			fired := new(atomic.Bool)
			w.st.watch, err = a.watchUnreadable(ctx, c, w.st.queue, w.st.ahead, a.wakes(fired))
			w.st.watched, w.st.fired = w.st.ahead, fired
		}
		if errors.Is(err, zk.ErrNoNode) {
			again, err = true, nil
			w.st.unwatch()
		}
		if err != nil {
			w.st.unwatch()
			return false, err
		}
	}
	return again, nil
}

// wakes returns a function for a watch on a node ahead, which is over with its
// first event: the node may have been written to.
func (a *Multi) wakes(fired *atomic.Bool) func(session.Event) {
	return func(session.Event) {
		fired.Store(true)
		select {
		case a.woken <- struct{}{}:
		default:
		}
	}
}

func (m *member) unwatch() {
	if m.watch != nil {
		m.queue.Core.Session().StopWatch(m.watch)
	}
	m.watch, m.watched, m.fired = nil, "", nil
}

func (a *Multi) unwatch(*Attempt) {
	for _, m := range a.members {
		m.unwatch()
	}
}

// lookAround yields where we are in the way, by the lists that were just taken.
func (a *Multi) lookAround(ctx context.Context, c *transport.Conn) (yielded bool, err error) {
	if err := a.askOwners(ctx, c); err != nil {
		return false, err
	}
	now := time.Now()
	yield, due := a.toYield(now)
	switch {
	case len(yield) == 0:
		return false, nil
	case due == nil:
		a.stall.yielded(now)
	default:
		due.yielded()
	}
	a.lookIn = firstLook
	return true, a.yield(ctx, c, yield)
}

// holders are the nodes that have the lock which a member waits for, or will:
// where we have no node yet, those that were there at the last look.
func (m *member) holders() []znode.Entry {
	before := m.at
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
	for n > 0 && n < before && n < mostOwners && m.snapshot.Kind(0) == znode.Read && m.snapshot.Kind(n) == znode.Read {
		n++
	}
	return m.snapshot.Entries(0, n)
}

// followers are those behind a member that is first.
func (m *member) followers() []znode.Entry {
	from := m.at + 1
	return m.snapshot.Entries(from, min(m.snapshot.Len(), from+mostOwners))
}

// askOwners learns whose the nodes are that matter, each once.
func (a *Multi) askOwners(ctx context.Context, c *transport.Conn) error {
	s := a.session
	var paths []string
	var calls []*transport.Call
	ask := func(m *member, nodes []znode.Entry) {
		for _, c := range nodes {
			path := session.Below(m.queue.Path, c.Name)
			if _, known := a.owners[path]; !known && !slices.Contains(paths, path) {
				paths = append(paths, path)
				calls = append(calls, transport.NewCall(wire.OpExists, &wire.PathWatchRequest{Path: path}))
			}
		}
	}
	for _, m := range a.members {
		ask(m, m.holders())
		if m.inTheWay() {
			ask(m, m.followers())
		}
	}
	if len(calls) == 0 {
		return nil
	}
	if err := s.SendAll(ctx, c, calls); err != nil {
		return err
	}
	if a.owners == nil {
		a.owners = make(map[string]int64)
	}
	for i, call := range calls {
		var resp wire.StatResponse
		err := s.Await(ctx, c, call, false)
		if err == nil {
			err = call.Decode(&resp)
		}
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case errors.Is(err, zk.ErrNoAuth): // ZooKeeper 3.9 does not say whose it is
		case err != nil:
			return err
		default:
			a.owners[paths[i]] = resp.Stat.EphemeralOwner
		}
	}
	return nil
}

// owned is what tells owners apart.
type owned struct {
	name    string
	session int64
	tag     string // "" if it says none
	yields  bool
}

// ownerMatch is how likely two nodes are of one owner.
type ownerMatch int

const (
	unlike  ownerMatch = iota
	perhaps            // of one session, and no more is known
	alike
)

// match compares two nodes. Nodes that say nothing, as those of other libraries,
// are told apart by their sessions. Of those that do, who nests locks may have
// forgotten to pass on the context, and so have different tags. A MultiLock is
// not suspected of that, or those of one session would yield to each other for
// whatever anybody there holds.
func (n owned) match(other owned) ownerMatch {
	differ := n.tag != other.tag && n.tag != "" && other.tag != ""
	switch {
	case n.session != other.session, differ && (n.yields || other.yields):
		return unlike
	case differ:
		return perhaps
	}
	return alike
}

// known are the owners of nodes that were there to be asked for.
func (a *Multi) known(m *member, nodes []znode.Entry) (all []owned) {
	for _, c := range nodes {
		if owner, known := a.owners[session.Below(m.queue.Path, c.Name)]; known {
			tag, yields := session.TagOf(c.Name)
			all = append(all, owned{c.Name, owner, tag, yields})
		}
	}
	return all
}

// toYield picks where to yield, and whose backoff is due: nil for that with a
// stall.
func (a *Multi) toYield(now time.Time) (yield []*member, due *backoff) {
	held, crowds := a.held(), a.perSession()
	var sure, unsure, crowded []*member
	for _, m := range a.members {
		if !m.inTheWay() || len(m.followers()) == 0 {
			continue
		}
		crowded = append(crowded, m)
		switch a.suspect(m, held, crowds, now) {
		case &a.sure:
			sure = append(sure, m)
		case &a.unsure:
			unsure = append(unsure, m)
		}
	}
	switch {
	case len(sure) > 0:
		return sure, &a.sure
	case len(unsure) > 0:
		return unsure, &a.unsure
	case len(crowded) > 0 && a.stalled(now) && (!onlyMultiLocks(crowded) || !a.stall.rests(now)):
		return crowded, nil
	}
	return nil, nil
}

// holder is a node that has what we wait for in a member.
type holder struct {
	owned
	in *member
}

func (a *Multi) held() (all []holder) {
	for _, m := range a.members {
		for _, n := range a.known(m, m.holders()) {
			all = append(all, holder{n, m})
		}
	}
	return all
}

// suspect looks for somebody behind a member who has what we wait for, and says
// whose backoff with that is over, if any.
func (a *Multi) suspect(m *member, held []holder, crowds map[int64]int, now time.Time) (due *backoff) {
	for _, waits := range a.known(m, m.followers()) {
		for _, has := range held {
			var p *backoff
			switch l := has.match(waits); {
			case l == alike && m.defers(waits):
				p = &a.sure
			case l == perhaps && crowds[waits.session] == 1:
				p = &a.unsure
			default:
				continue
			}
			a.remember(suspectedCycle{backoff: p, at: m, own: m.name(), waits: waits.name, of: has.in, has: has.name}, waits.yields)
			if now.Sub(has.in.since) >= p.time() && due != &a.sure {
				due = p
			}
		}
	}
	return due
}

// onlyMultiLocks is whether nobody but MultiLocks waits behind the members.
func onlyMultiLocks(crowded []*member) bool {
	return !slices.ContainsFunc(crowded, func(m *member) bool {
		return slices.ContainsFunc(m.followers(), func(c znode.Entry) bool { return !c.Yields() })
	})
}

// stalled is whether the backoff with those is over of whom nothing shows.
func (a *Multi) stalled(now time.Time) bool {
	patience := a.stall.time(now)
	return slices.ContainsFunc(a.members, func(m *member) bool {
		return len(m.holders()) > 0 && now.Sub(m.since) >= patience
	})
}

// perSession is how many of each session wait for us. An owner waits at one place at
// a time, so more than one are different owners.
func (a *Multi) perSession() map[int64]int {
	waiting := make(map[int64]int)
	for _, m := range a.members {
		if m.inTheWay() {
			for _, n := range a.known(m, m.followers()) {
				waiting[n.session]++
			}
		}
	}
	return waiting
}

// defers is whether we yield to an owner: of two that would both, only one does.
func (m *member) defers(to owned) bool {
	own, _ := session.TagOf(m.name())
	return !to.yields || own > to.tag
}

// yield puts our nodes in some queues to their ends, in one transaction. The lease of
// a turn goes with it.
func (a *Multi) yield(ctx context.Context, c *transport.Conn, members []*member) error {
	var gone, replaced []*contender
	for _, m := range members {
		if m.lease != nil && m.lease.phase == queued {
			gone = append(gone, m.lease.contender)
		}
		gone, replaced = append(gone, m.contender), append(replaced, m.contender)
		a.tell(Event{Kind: Yield, Queue: m.queue})
	}
	req := &wire.MultiRequest{}
	for _, k := range gone {
		req.Ops = append(req.Ops, wire.MultiOp{Op: wire.OpDelete, Request: &wire.PathVersionRequest{Path: k.path, Version: -1}})
		k.sweep(a.id)
		k.prefix = a.session.Protection(k.tag, k.yields)
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
	results, err := a.results(ctx, c, call, len(req.Ops))
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
		m.unwatch()
		if m.lease != nil {
			m.lease.unwatch()
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
