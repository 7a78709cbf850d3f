package acquire

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/transport"
)

// Multi is an attempt to take several locks of one client at once. One transaction puts a
// node into each queue. So any two MultiLocks meet in the same order everywhere and cannot
// deadlock, in whatever order their locks were named. It has the locks when it is first in
// all queues.
//
// Against owners that take the locks one after another this is not enough, see
// package deadlock.
//
// Each round lists all queues in one request. So a grant rests on one moment at which all
// nodes were there and first. Between rounds only the queues are listed in which something
// has happened.
type Multi struct {
	Attempt
	members   []*member     // in the order of their paths, a lease behind its turn
	wanted    []*contender  // the nodes that the locks are
	created   []*member     // in the latest round
	listed    []*member     // in the latest round
	reach     int           // how many of them may have a node
	woken     chan struct{} // something has happened to a node ahead
	refusedBy Position      // who was ahead of the first node that was looked for
	refusedIn *Queue        // there
	told      Position      // the latest that the host was told
	// Under is the owner, by what it has besides. It changes as others come to want that. nil if it
	// has nothing.
	Under  func() nodename.Owner
	lookBy time.Time // when to ask that next
	yieldState
}

// Member is a lock of a MultiLock: a queue, or the two of a semaphore with one lease.
type Member struct {
	Queue     *Queue
	Turns     *Queue       // nil for a lock without leases
	Contended *atomic.Bool // with Turns: whether another participant was in the way the last time
}

// member is our place in one of the queues.
type member struct {
	*contender
	turn        *member        // of a lease: our place among those who are being served
	lease       *member        // of a turn: the lease
	contended   *atomic.Bool   // of a lease: see Member
	optimistic  bool           // the lease is made with the turn, see Semaphore
	sawAhead    bool           // a node was seen ahead
	place       int            // our place in the snapshot
	seen        int            // the round of that list
	predecessor string         // the node that it waits for, "" for none
	watch       nodeWatch      // on that node, the zero value for none
	fired       *atomic.Bool   // whether it has told its one event
	behind      *session.Watch // for newcomers in a queue in which we may be in the way, nil for none
	newcomer    *atomic.Bool   // whether that has told its one event
}

// NewMulti makes an attempt for locks of one client, which are in the order of their
// paths. With ordered it takes them one after another.
//
// If the owner has other locks, which it does not give back while it waits, its nodes do
// not say that it yields. Others would wait for it to do so. Locks that nobody wants who may have
// others do not count.
func NewMulti(locks []Member, ordered bool, owner nodename.Owner, host Host) *Multi {
	a := &Multi{woken: make(chan struct{}, 1)}
	a.inOrder = ordered
	owner.Way = a.says(owner.Way)
	a.owner = owner
	all := make([]contender, 0, 2*len(locks))
	add := func(q *Queue) *member {
		all = append(all, contender{queue: q, owner: owner})
		m := &member{contender: &all[len(all)-1]}
		a.members = append(a.members, m)
		return m
	}
	for _, l := range locks {
		if l.Turns == nil {
			a.wanted = append(a.wanted, add(l.Queue).contender)
			continue
		}
		turn := add(l.Turns)
		turn.lease = add(l.Queue)
		turn.lease.turn, turn.lease.contended = turn, l.Contended
		a.wanted = append(a.wanted, turn.lease.contender)
	}
	a.init(all, host, a)
	return a
}

// says is what its nodes say at first, by what the owner has besides.
func (a *Multi) says(besides nodename.Way) nodename.Way {
	switch {
	case besides != nodename.Plain:
		return besides
	case a.inOrder:
		return nodename.Ordered
	}
	return nodename.Joint
}

// obstacle is the node that was seen ahead when Run failed, in the first queue in which
// we are not first. It is nil if none is known.
func (a *Multi) obstacle() *Obstacle {
	if a.refusedBy.Predecessor != "" {
		return a.refusedBy.obstacle(a.refusedIn)
	}
	for _, m := range a.members {
		if m.waits() && m.snapshot.Len() > 0 { // the latest list may be empty, and not have been looked at yet
			m.position(&a.told)
			in := a.told.obstacle(m.queue)
			in.Session, in.Has = a.asked[in.Node].session, a.has()
			return in
		}
	}
	return nil
}

// precheck refuses if others are ahead anywhere.
func (a *Multi) precheck(ctx context.Context, c *transport.Conn) error {
	all := contendersOf(a.members)
	err := a.listBefore(ctx, c, all)
	if errors.Is(err, errStale) { // once more, with a request for each queue
		err = a.listBefore(ctx, c, all)
	}
	if err != nil {
		return err
	}
	for _, k := range all {
		a.refusedIn = k.queue
		if err := a.mayBeFirst(k, &a.refusedBy); err != nil {
			return err
		}
	}
	for _, k := range all {
		k.drop()
	}
	return nil
}

// plan makes the wanted nodes, which say our way. It lists the queues in which we have a
// node, or may have one. A check for a deadlock lists all others too, since an owner in
// them may have what we want next and wait for us.
func (a *Multi) plan() plan {
	unknown := a.any((*contender).unknown)
	a.created, a.listed = a.missing(unknown), nil
	for _, m := range a.members {
		if m.phase != absent || a.checking || slices.Contains(a.created, m) {
			a.listed = append(a.listed, m)
		}
	}
	for _, m := range a.created {
		if m.owner.Way.Yields() && m.owner.Way != a.way { // it was named before we changed our way
			m.rename(a.id, a.way)
		}
	}
	p := plan{create: contendersOf(a.created), joint: true, list: contendersOf(a.listed)}
	for _, m := range a.listed {
		if m.turn != nil && (m.phase != absent || slices.Contains(a.created, m)) {
			p.around = append(p.around, m.contender)
		}
	}
	return p
}

// missing are the members that need a node now.
func (a *Multi) missing(unknown bool) []*member {
	if unknown {
		return nil
	}
	var missing []*member
	for _, m := range a.members[:a.reach] {
		if m.phase == absent && (m.turn == nil || m.optimistic || m.turn.isFirst()) {
			missing = append(missing, m)
		}
	}
	return missing
}

func (a *Multi) failed(err error) error {
	a.tried(errors.Is(err, errStale))
	return err
}

// tried says that the attempt has tried to make leases together with their turns. It does
// so again only if parents were missing.
func (a *Multi) tried(parentless bool) {
	for _, m := range a.created {
		m.optimistic = m.optimistic && parentless && m.phase == absent
	}
}

// judge says how far the attempt has come after a round.
func (a *Multi) judge() (step, error) {
	a.tried(false)
	if err := a.locateAll(); err != nil {
		return again, err
	}
	if a.history.Suspects() {
		a.history.Learn(a.view(time.Now()))
	}
	a.retract()
	if len(a.missing(false)) > 0 {
		return again, nil
	}
	for _, m := range a.members[:a.reach] {
		if !m.isFirst() {
			a.sawAhead = true
			if a.once {
				return waiting, ErrNotAcquired
			}
			return waiting, nil
		}
	}
	if a.reach < len(a.members) {
		a.extend()
		return again, nil
	}
	return granted, nil
}

// locateAll reads where we stand in the queues that were listed.
func (a *Multi) locateAll() error {
	a.rounds++
	now := time.Now()
	if a.connectedOn != a.conn {
		a.connectedOn = a.conn
		a.history.Connected(now)
	}
	came := false // one of our locks, in this round
	for i, m := range a.members {
		if !slices.Contains(a.listed, m) {
			continue
		}
		before := m.isFirst()
		if err := a.stand(i, now); err != nil {
			return err
		}
		came = came || !before && m.isFirst()
	}
	if came && a.besideLibrary() {
		a.habitsOfOthers().Came(a.way == nodename.Backward)
	}
	return nil
}

// stand reads from the latest list of a queue where we stand in it.
func (a *Multi) stand(i int, now time.Time) error {
	m := a.members[i]
	m.seen = a.rounds
	if m.phase == queued {
		before := m.isFirst()
		at, ahead, err := a.locate(m.contender)
		if err != nil {
			return err
		}
		if m.gone() {
			m.watch.stop() // it may have told of a change, and the node is still there
		}
		m.place, m.predecessor = at, ""
		if ahead >= 0 {
			m.predecessor, m.sawAhead = m.snapshot.Name(ahead), true
		}
		if !before && m.isFirst() {
			a.history.CameFirst()
		}
	}
	a.sawHead(i, m, now)
	return nil
}

// retract gives back the leases for which it is not our turn. The owner of the turn would
// wait for them.
func (a *Multi) retract() {
	for _, m := range a.members {
		if m.turn != nil && m.phase == queued && !m.turn.isFirst() {
			a.abandon(m.contender)
			m.watch.stop()
		}
	}
}

func (a *Multi) tracked(*session.TrackedNode) {}

// wantedNodes are the nodes that the locks are.
func (a *Multi) wantedNodes() []*contender {
	for _, m := range a.members {
		if m.lease != nil {
			m.lease.contended.Store(m.sawAhead || m.lease.sawAhead)
		}
	}
	return a.wanted
}

// has are the locks in whose queues we are first. A lease has its turn as well.
func (a *Multi) has() (has []string) {
	for _, m := range a.members {
		if m.lease == nil && m.isFirst() {
			has = append(has, m.queue.Lock)
		}
	}
	return has
}

// tellStandings says where we stand in each queue while we wait. A turn and its lease are one
// acquisition.
func (a *Multi) tellStandings() {
	for _, m := range a.members {
		q := m.queue
		if m.turn != nil {
			q = m.turn.queue
		}
		switch {
		case m.waits():
			m.position(&a.told)
			a.tellWait(q, m.path, &a.told)
		case m.lease == nil && m.isFirst():
			a.host.Observe(Event{Kind: First, Queue: q})
		case m.turn == nil && m.phase != queued:
			a.host.Observe(Event{Kind: Away, Queue: q})
		}
	}
}

// follower is the name of the first node that waits behind ours where we are first, "" if
// there is none.
func (m *member) follower() string {
	if !m.isFirst() {
		return ""
	}
	if at := m.firstBehind(); at < m.snapshot.Len() {
		return m.snapshot.Name(at)
	}
	return ""
}

// position notes where our node waits.
func (m *member) position(p *Position) {
	p.Place, p.Predecessor = m.place, m.predecessor
	p.Head = m.snapshot.Name(0)
}

// isFirst is whether we were seen to have a node with nobody ahead.
func (m *member) isFirst() bool { return m.phase == queued && m.snapshot != nil && m.first }

// waits is whether we were seen to have a node with another one ahead.
func (m *member) waits() bool { return m.phase == queued && m.snapshot != nil && !m.first }

func contendersOf(members []*member) []*contender {
	all := make([]*contender, len(members))
	for i, m := range members {
		all[i] = m.contender
	}
	return all
}
