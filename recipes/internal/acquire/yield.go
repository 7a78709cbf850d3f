package acquire

import (
	"context"
	"errors"
	"hash/crc32"
	"maps"
	"math"
	"path"
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
	// owners that take the locks over and over, in an order that is not its own. It meets them
	// in the same way each time that it begins anew.
	mostLeft = 5
	// mostMoved is how often one with a semaphore moves before it leaves once. It may move in
	// several queues at a time, and so be at odds for ever with owners who take their locks in
	// its own order.
	// One that has moved so often for owners who go in the other order may leave, or turn, again: they
	// may move for it as well, and so for ever.
	mostMoved = 20
	// While it sees nobody but its like, newcomers are most likely of its like as well, unless
	// its client has seen others lately. So it looks at them only after a time, which doubles:
	// it makes nobody wait for longer than twice as long as it has been in the way.
	firstCalm = 32 * time.Millisecond
	mostCalm  = 256 * time.Millisecond
	lately    = 10 * time.Second
	// soonest is when a check that is due takes place. A timer of 0 would break the race
	// detector in a synctest bubble (golang/go#78156).
	soonest = time.Nanosecond
)

// LookEvery is how often an owner looks whether others want what it has besides. At ten times as much
// MultiLocks that are acquired under locks may be stuck with others for seconds. At a tenth, what is
// acquired under locks takes a round trip more again and again.
const LookEvery = 300 * time.Millisecond

// mostAsked is how many nodes of one queue it asks the servers about.
const mostAsked = 8

// seen is when a client has last seen something.
type seen struct{ at atomic.Pointer[time.Time] }

func (s *seen) now() {
	now := time.Now()
	s.at.Store(&now)
}

func (s *seen) lately() bool {
	at := s.at.Load()
	return at != nil && time.Since(*at) < lately
}

// sights are what a client has seen in the queues of its MultiLocks.
type sights struct {
	others seen // owners for whom one makes room
	habits [64]habits
}

// habits are what it has seen of owners that have other locks, or may have: some have said that these are
// all at earlier paths, or that one is at a later path.
type habits struct {
	inOrder, reverse seen
	deadlock.Order   // of those that say nothing
}

var sightsOf = session.Slot[sights]{New: func(*session.Session) *sights { return new(sights) }}

func (a *Multi) sights() *sights { return sightsOf.Of(a.session) }

// habitsOfOthers are those beside us. Different sets of locks may be taken in different orders, so each
// parent of a first path has its own. A few parents may share them.
func (a *Multi) habitsOfOthers() *habits {
	first := min(a.members[0].queue.Lock, a.members[len(a.members)-1].queue.Lock)
	all := &a.sights().habits
	return &all[crc32.ChecksumIEEE([]byte(path.Dir(first)))%uint32(len(all))]
}

// yieldState is what a MultiLock knows about whether it is in the way of others.
type yieldState struct {
	inOrder     bool           // it is an Ordered one
	way         nodename.Way   // Joint; else it makes its nodes one by one, in the order of members
	owner       nodename.Owner // of its nodes at first
	left        int            // how often it has left queues with all later ones
	moved       int            // how often it has moved since then
	obliged     int            // how often it has moved for owners whose order it could not take
	checking    bool           // the next round lists all queues, to see whether it is in the way
	rounds      int            // of lists
	others      nodename.Ways  // that stood in our queues at the latest look
	met         nodename.Ways  // that have stood there since it set out
	history     deadlock.History
	calmUntil   time.Time        // when to look at newcomers
	calmFor     time.Duration    // the next time
	connectedOn *transport.Conn  // that the wait counts from
	roundTrip   time.Duration    // that the servers took for this, the last time
	asked       map[string]asked // what the servers have said of nodes, by their paths
}

// asked is what the servers have said of a node, and when.
type asked struct {
	session, made int64
	at            time.Time
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
	v := &deadlock.View{Now: now, Ours: a.way, Queues: make([]deadlock.Queue, len(a.members))}
	for i, m := range a.members {
		q := &v.Queues[i]
		q.Listed, q.First, q.Lease = m.seen == a.rounds, m.isFirst(), m.turn != nil
		q.Own = m.name()
		q.OwnTag, q.Waits, q.Made = nodename.TagOf(q.Own), m.waits(), m.czxid
		q.Holders = a.nodes(m, m.holders())
		if m.inTheWay() {
			q.Followers = a.nodes(m, m.followers())
			q.Behind = m.snapshot.Ways(m.firstBehind())
		}
		q.Has = func(name string) bool { return m.snapshot.Find(name) >= 0 }
	}
	return v
}

// nodes are entries with what is known of their owners.
func (a *Multi) nodes(m *member, entries []znode.Entry) []deadlock.Node {
	all := make([]deadlock.Node, len(entries))
	for i, e := range entries {
		n := &all[i]
		n.Name = e.Name
		var of asked
		of, n.Known = a.asked[session.Join(m.queue.Path, e.Name)]
		n.Session, n.Made, n.Seen = of.session, of.made, of.at
		n.Tag, n.Way = nodename.TagOf(e.Name), nodename.WayOf(e.Name)
	}
	return all
}

// begin sets out, at first or in another session.
func (a *Multi) begin() {
	a.history.Begin(len(a.members), a.hasTurn(), time.Now())
	a.connectedOn = a.conn
	a.asked, a.met = nil, 0
	a.lookBy = time.Time{}
	a.calmUntil, a.calmFor = time.Time{}, firstCalm
	if a.way == nodename.Backward {
		a.turnRound()
	}
	a.reach, a.way = len(a.members), a.says(nodename.Plain)
	for _, m := range a.members {
		m.unwatch()
		m.place, m.predecessor = 0, ""
		m.optimistic = m.turn != nil && a.way == nodename.Joint && !m.contended.Load()
	}
	if a.way != nodename.Joint {
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

// wait returns when a round may show that we have all locks, or it is time to check
// whether we are in the way. Until then it lists only the queues in which something has
// happened.
func (a *Multi) wait(ctx context.Context, c *transport.Conn) (first bool, err error) {
	for {
		if renewed, err := a.renew(ctx, c); renewed || err != nil {
			return false, err
		}
		calm := a.calm()
		if made, err := a.makeRoom(ctx, c); made || err != nil {
			return false, err
		}
		if a.checking && !calm {
			if yielded, err := a.checkDeadlock(ctx, c); yielded || err != nil {
				return false, err
			}
		}
		a.checking = false
		if looked, err := a.watch(ctx, c, calm); err != nil {
			return false, err
		} else if a.needsRound(c) {
			return false, nil
		} else if looked {
			continue
		}
		a.tellStandings()
		for more := true; more; more = calm && !a.due(calm) && !a.renews() { // while it is calm, one node less ahead changes nothing
			if err := a.sleep(ctx, calm); err != nil || a.needsRound(c) || a.checking {
				return false, err
			}
		}
	}
}

// needsRound is whether a list of one queue is not enough: all that we waited for may have
// gone, or what that means depends on other queues as well.
func (a *Multi) needsRound(c *transport.Conn) bool {
	if now, _ := a.session.ConnOf(a.id); now != c {
		return true
	}
	still := false
	for _, m := range a.members {
		if m.gone() && (m.turn != nil || m.lease != nil || a.history.Suspects()) {
			return true
		}
		still = still || m.waits() && !m.gone()
	}
	return !still
}

// gone is whether the watch on the node ahead has told its event.
func (m *member) gone() bool { return m.waits() && m.watch.queue != nil && m.fired.Load() }

// sleep returns when a watch has told something, or it is time to look at newcomers or to
// check.
func (a *Multi) sleep(ctx context.Context, calm bool) error {
	var check <-chan time.Time
	switch now := time.Now(); {
	case !calm && a.inTheWay():
		timer := time.NewTimer(max(a.untilCheck(now), soonest))
		defer timer.Stop()
		check = timer.C
	case calm && slices.ContainsFunc(a.members, (*member).unseen):
		if a.calmUntil.IsZero() {
			a.calmUntil = now.Add(a.calmFor)
			a.calmFor = min(2*a.calmFor, mostCalm)
		}
		timer := time.NewTimer(max(a.calmUntil.Sub(now), soonest))
		defer timer.Stop()
		check = timer.C
	}
	var under <-chan time.Time
	if a.Under != nil {
		timer := time.NewTimer(max(time.Until(a.lookBy), soonest))
		defer timer.Stop()
		under = timer.C
	}
	select {
	case <-a.woken:
	case <-under:
	case <-ctx.Done():
		return contextend.Of(ctx)
	case <-check:
		a.checking = !calm
	}
	return nil
}

// renews is whether it is time to look again at what the owner has besides.
func (a *Multi) renews() bool { return a.Under != nil && !time.Now().Before(a.lookBy) }

// renew begins anew, with nodes that say so, if others have come to want what the owner has besides, or
// want it no longer. Otherwise they could wait for each other for ever.
func (a *Multi) renew(ctx context.Context, c *transport.Conn) (renewed bool, err error) {
	if !a.renews() {
		return false, nil
	}
	owner := a.Under()
	a.lookBy = time.Now().Add(LookEvery)
	if owner.Way = a.says(owner.Way); owner.Way == a.owner.Way {
		return false, nil
	}
	a.owner = owner
	for _, m := range a.members {
		if m.owner = owner; m.phase == absent {
			m.rename(a.id, owner.Way)
		}
	}
	return true, a.takeInOrder(ctx, c, a.says(nodename.Plain), 0)
}

// calm is whether all that stand in our queues take their locks in our way, and our own
// places are in order. Then we are stuck with nobody, see decision 23.
func (a *Multi) calm() bool {
	ours := nodename.Ways(0).With(a.way)
	waits, first := int64(math.MinInt64), int64(math.MaxInt64)
	var others nodename.Ways
	for i, m := range a.members {
		if m.snapshot.Len() > 0 {
			others |= m.snapshot.Ways(0) &^ ours
		}
		at, known := m.czxid, m.czxid != 0
		if a.way != nodename.Joint {
			at, known = -int64(i), true
		}
		switch {
		case m.inTheWay():
			first = min(first, at)
		case m.waits() && m.turn == nil && known:
			waits = max(waits, at)
		case m.waits() && m.turn == nil:
			waits = math.MaxInt64 // its node may be newer than any
		}
	}
	if others&takesRoom != 0 {
		a.sights().others.now()
		h := a.habitsOfOthers()
		if others.Has(nodename.Nesting) {
			h.inOrder.now()
		}
		if others.Has(nodename.Reverse) {
			h.reverse.now()
		}
		// Owners that go in the reverse order tell of those beside them that say nothing. If they have just gone, a
		// backward MultiLock may have gone so for them.
		if others.Has(nodename.Unknown) && (others.Has(nodename.Reverse) || others.Has(nodename.Backward) && !h.reverse.lately()) {
			h.Hear()
		}
	}
	a.others, a.met = others, a.met|others
	return waits <= first && others == 0
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

// watch sets a watch on the node ahead in each queue where we wait. It lists each queue in
// which that node has gone, and those in which there may be newcomers whom we make room for.
// These lists watch for the next newcomer, but see early. looked is whether there was anything to list.
func (a *Multi) watch(ctx context.Context, c *transport.Conn, calm bool) (looked bool, err error) {
	type setting struct {
		*member
		at   int
		call *transport.Call
		list bool
	}
	var set []setting
	defer func() {
		if err != nil { // which of them stand is not known
			for _, s := range set {
				s.unwatch()
			}
		}
	}()
	due := a.due(calm)
	if due && a.early(calm) {
		a.calmUntil = time.Time{}
		if looked, err = a.lookTogether(ctx, c); looked || err != nil {
			return looked, err
		}
	}
	for i, m := range a.members {
		s := setting{member: m, at: i, list: due && m.unseen()}
		switch {
		case s.list:
			m.newcomer = new(atomic.Bool)
			s.call, m.behind, err = session.WatchChildren(ctx, a.session, c, m.queue.Path, a.wakes(m.newcomer))
		case m.waits() && m.watch.name != m.predecessor:
			m.watch.stop()
			m.fired = new(atomic.Bool)
			m.watch, s.call, err = watchNode(ctx, c, m.queue, m.predecessor, a.wakes(m.fired))
		default:
			continue
		}
		if err != nil {
			return false, err
		}
		if set = append(set, s); len(set) > mostSettings {
			a.session.AwaitLast(ctx, set[len(set)-1-mostSettings].call)
		}
	}
	if due {
		a.calmUntil = time.Time{}
	}
	for _, s := range set {
		if s.list {
			looked, err = true, a.look(ctx, c, s.at, s.call)
		} else if err = s.watch.await(ctx, c, s.call, a.wakes(s.fired)); errors.Is(err, zk.ErrNoNode) {
			s.fired.Store(true)
			looked, err = true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return looked, nil
}

// due is whether it looks at newcomers now.
func (a *Multi) due(calm bool) bool {
	return !calm || a.sights().others.lately() || !a.calmUntil.IsZero() && !time.Now().Before(a.calmUntil)
}

// early is whether it looks at newcomers without a watch for the next ones, in one request. In a
// crowd there is always one, and most MultiLocks have their locks before they have looked twice.
func (a *Multi) early(calm bool) bool {
	return calm && a.calmFor < mostCalm && !a.sights().others.lately()
}

// unseen is whether there may be newcomers whom we hold up, and nothing would tell us.
func (m *member) unseen() bool { return m.gone() || m.inTheWay() && !m.hears() }

// lookTogether lists all queues in which there may be newcomers whom we hold up.
func (a *Multi) lookTogether(ctx context.Context, c *transport.Conn) (looked bool, err error) {
	var at []int
	var of []*contender
	for i, m := range a.members {
		if m.unseen() {
			at, of = append(at, i), append(of, m.contender)
		}
	}
	if len(of) == 0 {
		return false, nil
	}
	if err := a.listAlone(ctx, c, of); err != nil {
		return false, err
	}
	now := time.Now()
	for _, i := range at {
		if err := a.stand(i, now); err != nil {
			return false, err
		}
	}
	return true, nil
}

// look takes in a list of one queue.
func (a *Multi) look(ctx context.Context, c *transport.Conn, i int, list *transport.Call) error {
	m := a.members[i]
	if err := a.session.Await(ctx, c, list, false); errors.Is(err, zk.ErrNoNode) {
		return errNotDone // a round sees that, too
	} else if err != nil {
		return err
	}
	names, err := session.Names(list)
	if err != nil {
		return err
	}
	m.drop()
	if m.snapshot, err = m.queue.Parse(names); err != nil {
		return err
	}
	m.list = list
	return a.stand(i, time.Now())
}

// hears is whether we would be told of newcomers behind a member.
func (m *member) hears() bool { return m.behind != nil && !m.newcomer.Load() }

// unwatch gives up what the member is told of. The watch for newcomers ends by itself when
// our node goes. To remove it would take a request.
func (m *member) unwatch() {
	m.watch.stop()
	m.behind = nil
}

// wakes returns a function for a watch on a node ahead. The watch is over with its first
// event, also if the node was only written to.
func (a *Multi) wakes(fired *atomic.Bool) func(session.Event) {
	woken := a.woken
	return func(session.Event) {
		fired.Store(true)
		select {
		case woken <- struct{}{}:
		default:
		}
	}
}

// takesRoom are the ways of owners for whom a joint MultiLock makes room at once, where it is
// in the way: those that have other locks, or may have some soon.
const (
	takesRoom = nodename.Ways(1<<nodename.Nesting|1<<nodename.Unknown|1<<nodename.Ordered) | backwards
	backwards = nodename.Ways(1<<nodename.Reverse | 1<<nodename.Backward)
)

// makesRoom is to whom a MultiLock of a way makes room in a queue at once. They may have what
// it waits for, and wait for it here. They are in nobody's way once it takes its locks in
// their order as well. Of two that go in different orders, only the Ordered one changes, but
// see ordered.
var makesRoom = [...]nodename.Ways{
	nodename.Joint:    takesRoom,
	nodename.Ordered:  backwards,
	nodename.Backward: nodename.Ways(1 << nodename.Nesting),
}

// ordered are ways, with the order of owners that say nothing as our client has seen it. Most
// may have one lock alone. So one that cannot take its locks in that order, or has changed its
// own too often, moves for them a few times. Then it keeps its places: it would never be served
// beside a crowd.
//
// Where owners say that they have other locks, and none goes in the reverse order, backward MultiLocks
// are there by mistake. Nobody follows them, and they follow the ordered ones. If
// both turned for each other, one mistake would keep a crowd going to and fro. Beside another
// library nobody follows them before its client has learned, or heard, that this is the order.
func (a *Multi) ordered(ways nodename.Ways) nodename.Ways {
	h, library := a.habitsOfOthers(), (a.others | ways).Has(nodename.Unknown)
	reverse := h.Reverse()
	switch {
	case reverse || h.reverse.lately():
	case library:
		ways &^= 1 << nodename.Backward
	case h.inOrder.lately():
		ways &^= 1 << nodename.Backward
		if ways.Has(nodename.Ordered) {
			ways = ways.With(nodename.Nesting)
		}
	}
	switch {
	case !ways.Has(nodename.Unknown) || a.obliged >= mostLeft:
		return ways
	case reverse:
		return ways.With(nodename.Reverse)
	}
	return ways.With(nodename.Nesting)
}

// besideLibrary is whether an owner of another library, or one whose node says as little, waits for
// us, and we take our locks in an order.
func (a *Multi) besideLibrary() bool {
	return a.way != nodename.Joint && slices.ContainsFunc(a.members, func(m *member) bool {
		return m.inTheWay() && m.snapshot.Ways(m.firstBehind()).Has(nodename.Unknown)
	})
}

// makeRoom makes room for owners that have come since the last round, if there are any: it takes its
// locks from now on as they do. If it cannot, or has changed too often, it moves in these queues.
func (a *Multi) makeRoom(ctx context.Context, c *transport.Conn) (made bool, err error) {
	var in []*member
	to, way := nodename.Ways(0), nodename.Ordered
	for _, m := range a.members {
		if !m.inTheWay() {
			continue
		}
		if behind := a.ordered(m.snapshot.Ways(m.firstBehind())) & makesRoom[a.way]; behind != 0 {
			in, to = append(in, m), to|behind
		}
	}
	if to&backwards != 0 {
		way = nodename.Backward
	}
	if len(in) == 0 {
		return false, nil
	}
	if a.obliged >= mostMoved {
		a.obliged, a.left = 0, 0
	}
	if a.left >= mostLeft || way == nodename.Backward && (a.hasTurn() || a.owner.Way == nodename.Nesting) {
		// Two that move for each other over and over would not see who else waits for them.
		if yielded, err := a.checkDeadlock(ctx, c); yielded || err != nil {
			return yielded, err
		}
		a.obliged++
		return true, a.yield(ctx, c, in, true, a.way)
	}
	if a.way != nodename.Joint {
		a.left++
	}
	return true, a.takeInOrder(ctx, c, way, len(a.members))
}

func (a *Multi) unwatch() {
	for _, m := range a.members {
		m.unwatch()
	}
}

// checkDeadlock yields where we are in the way, by the lists that were just taken.
func (a *Multi) checkDeadlock(ctx context.Context, c *transport.Conn) (yielded bool, err error) {
	if err := a.askSessions(ctx, c); err != nil {
		return false, err
	}
	in, why := a.history.Decide(a.view(time.Now()))
	if len(in) == 0 {
		return false, nil
	}
	if a.besideLibrary() { // a yield tells their order, and less so if others have said that they go in ours
		said := a.way != nodename.Backward && a.met.Has(nodename.Nesting) && !a.met.Has(nodename.Reverse)
		a.habitsOfOthers().Yielded(a.way == nodename.Backward, said, a.roundTrip, time.Now())
	}
	// By time it may be a mistake. One that goes in an order from now on makes all others do so that
	// it meets, and so for ever. One that queues anew is as it was, and in nobody's way.
	if a.way == nodename.Joint && why == deadlock.Among {
		return true, a.takeInOrder(ctx, c, nodename.Joint, 0)
	}
	var yield []*member
	for _, i := range in {
		yield = append(yield, a.members[i])
	}
	return true, a.leaveOrMove(ctx, c, yield, why)
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

// firstBehind is the place of the first node that waits for a member that is first, or the
// end of the queue. Readers that have a lock together do not wait for each other.
func (m *member) firstBehind() int {
	at := m.place + 1
	for at < m.snapshot.Len() && m.snapshot.Kind(m.place) == znode.Read && m.snapshot.Kind(at) == znode.Read {
		at++
	}
	return at
}

// followers are those that wait behind a member that is first.
func (m *member) followers() []znode.Entry {
	from := m.firstBehind()
	return m.snapshot.Entries(from, min(m.snapshot.Len(), from+mostAsked))
}

// askSessions asks the servers, once for each node that matters, which session it belongs
// to.
func (a *Multi) askSessions(ctx context.Context, c *transport.Conn) error {
	var matter, paths []string
	ask := func(q *Queue, nodes []znode.Entry) {
		for _, path := range q.paths(nodes) {
			matter = append(matter, path)
			if _, known := a.asked[path]; !known && !slices.Contains(paths, path) {
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
	if len(a.asked) > mostAsked*len(matter) { // most have gone
		maps.DeleteFunc(a.asked, func(path string, _ asked) bool { return !slices.Contains(matter, path) })
	}
	if a.asked == nil {
		a.asked = make(map[string]asked)
	}
	began := time.Now()
	err := eachStat(ctx, a.session, c, paths, func(i int, of *wire.Stat) {
		a.asked[paths[i]] = asked{of.EphemeralOwner, of.Czxid, time.Now()}
	})
	a.roundTrip = time.Since(began)
	return err
}

// leaves is whether it leaves queues now, with all later ones, or else moves to their ends and
// keeps those. It counts both.
func (a *Multi) leaves(why deadlock.Reason) bool {
	moves := why >= deadlock.Matched || a.left >= mostLeft || a.hasTurn()
	if moves && (a.moved < mostMoved || !a.hasTurn()) {
		a.moved++
		return false
	}
	a.moved = 0
	a.left++
	return true
}

// leaveOrMove makes room in queues.
func (a *Multi) leaveOrMove(ctx context.Context, c *transport.Conn, yield []*member, why deadlock.Reason) error {
	if !a.leaves(why) {
		return a.yield(ctx, c, yield, true, a.way)
	}
	return a.takeInOrder(ctx, c, max(a.way, nodename.Ordered), slices.Index(a.members, yield[0]))
}

// takeInOrder makes room for owners that take their locks one after another. From now on we
// do so too, in the order of the paths, as if we were Ordered, or in the reverse order. In
// that order we leave the queues from a member on, or from an earlier one which is not ours,
// and keep what is before that. A joint one leaves all, and queues anew in all at once.
func (a *Multi) takeInOrder(ctx context.Context, c *transport.Conn, way nodename.Way, from int) error {
	members := a.members
	turns := way != a.way && (way == nodename.Backward || a.way == nodename.Backward)
	if turns {
		members = slices.Clone(members)
		slices.Reverse(members)
	}
	var leaves []*member
	for i, m := range members {
		if i < from && !m.isWhole() {
			from = i
		}
		if i >= from && m.turn == nil && m.phase == queued {
			leaves = append(leaves, m)
		}
	}
	if err := a.yield(ctx, c, leaves, false, way); err != nil {
		return err
	}
	if slices.ContainsFunc(leaves, func(m *member) bool { return m.phase == queued }) {
		return nil // it was refused, as one of the nodes has gone; the next round sees which
	}
	if turns {
		a.turnRound()
	}
	a.way, a.reach = way, from
	if a.extend(); way == nodename.Joint {
		a.reach = len(a.members)
	}
	return nil
}

// turnRound takes the locks in the reverse of the order so far.
func (a *Multi) turnRound() {
	slices.Reverse(a.members)
	a.history.TurnRound()
}

// hasTurn is whether a member is a semaphore. Beside owners of its leases that did not pass
// on their contexts, to leave queues, or to wait long before we yield, starves both sides.
func (a *Multi) hasTurn() bool {
	return slices.ContainsFunc(a.members, func(m *member) bool { return m.turn != nil })
}

// isWhole is whether we are first, and with a turn have the lease.
func (m *member) isWhole() bool { return m.isFirst() && (m.lease == nil || m.lease.isFirst()) }

// yield takes our nodes out of some queues, in one transaction, which may put new nodes at
// the ends of these. The lease of a turn goes with it. The new nodes say that way, see plan.
func (a *Multi) yield(ctx context.Context, c *transport.Conn, members []*member, replace bool, way nodename.Way) error {
	var gone, replaced []*contender
	for _, m := range members {
		if m.lease != nil && m.lease.phase == queued {
			gone = append(gone, m.lease.contender)
		}
		if gone = append(gone, m.contender); replace {
			replaced = append(replaced, m.contender)
		}
	}
	req := &wire.MultiRequest{}
	for _, k := range gone {
		req.Ops = append(req.Ops, wire.MultiOp{Op: wire.OpDelete, Request: &wire.PathVersionRequest{Path: k.path, Version: -1}})
		k.rename(a.id, way)
	}
	for _, k := range replaced {
		req.Ops = append(req.Ops, wire.MultiOp{Op: wire.OpCreate, Request: k.creation(c)})
	}
	call, err := transaction(req)
	if half := len(members) / 2; half > 0 && errors.Is(err, session.ErrTooLarge) {
		if err := a.yield(ctx, c, members[:half], replace, way); err != nil {
			return err
		}
		return a.yield(ctx, c, members[half:], replace, way)
	}
	if err == nil {
		err = a.session.Send(ctx, c, call)
	}
	if err != nil {
		return err
	}
	for _, m := range members {
		a.host.Observe(Event{Kind: Yield, Queue: m.queue, Predecessor: m.follower()})
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
		m.unwatch()
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
