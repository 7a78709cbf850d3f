package zktest

import (
	"maps"
	"slices"
	"time"
)

// A leader asks its followers every half tick whether they are there. The
// answer says which clients they have heard. A follower that has not heard its
// leader for syncLimit ticks looks for another. So does a leader that has not
// heard a majority for as long. A member that looks serves no clients. When a
// majority of members looks and they can talk, one of them leads after the time
// of an election.
//
// Source: ZooKeeper Leader.lead, Learner.processPacket, FastLeaderElection.

// readOnlyGrace is how long a member looks before it serves readers, unless a
// tick is longer. Source: ZooKeeper QuorumPeer.run.
const readOnlyGrace = 2 * time.Second

func (e *ensemble) nextBeatLocked() {
	// Not at the instant at which sessions expire.
	half, phase := e.cfg.tick/2, time.Nanosecond
	e.beats.set(half-(time.Since(e.begun)-phase)%half, e.beat)
}

// beat is what happens every half tick.
func (e *ensemble) beat() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	now, limit := time.Now(), time.Duration(e.cfg.syncLimit)*e.cfg.tick
	for _, l := range e.members {
		if l.role == roleLeading && !l.down {
			if l.late = l.late || l.frozenLocked(); !l.late {
				l.askLocked(now, limit)
			}
		}
	}
	for _, m := range e.members {
		switch {
		case m.frozenLocked() || m.down:
		case m.role == roleFollowing && now.Sub(m.heard) >= limit:
			m.lookLocked()
		case m.role == roleLooking && e.cfg.readOnly && now.Sub(m.since) >= max(readOnlyGrace, e.cfg.tick):
			m.role = roleReadOnly
		}
	}
	e.flowLocked()
	e.seekLocked()
	e.nextBeatLocked()
}

// askLocked is a leader's beat.
func (m *member) askLocked(now time.Time, limit time.Duration) {
	n := 1
	for _, f := range m.e.members {
		if f == m || !f.follows(m) {
			continue
		}
		f.deliverLocked(f.toldLocked)
		switch {
		case f.role != roleFollowing:
		case now.Sub(f.acked) < limit:
			n++
		default:
			f.dropped = true
			m.e.noticeLocked(f)
		}
	}
	if 2*n <= len(m.e.members) {
		m.lookLocked()
	}
}

// askLate is the beat of a leader that stood still when it was due.
func (m *member) askLate() {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	if m.e.closed || m.down || !m.late || m.role != roleLeading || m.frozenLocked() {
		return
	}
	m.late = false
	m.askLocked(time.Now(), time.Duration(m.e.cfg.syncLimit)*m.e.cfg.tick)
	m.e.flowLocked()
}

// noticeLocked makes a member look for another leader if its own is gone or has
// dropped it, as far as the member can know.
func (e *ensemble) noticeLocked(m *member) {
	if m.down || m.frozenLocked() {
		return
	}
	switch l := m.leader; m.role {
	case roleLeading:
		if l != e.leader {
			m.lookLocked()
		}
	case roleFollowing:
		if gone := l.role != roleLeading || l.down; (gone || m.dropped) && !e.cut[l.index][m.index] && !l.frozenLocked() {
			m.lookLocked()
		}
	}
}

// lookLocked makes a member stop serving and look for a leader. Requests of its
// clients that have no answer yet are lost.
func (m *member) lookLocked() {
	e, led := m.e, m.role == roleLeading
	m.role, m.leader, m.since, m.dropped = roleLooking, nil, time.Now(), false
	m.inbox, m.outbox, m.pending = nil, nil, nil
	m.arrivals.stop()
	clear(m.touched)
	m.answer, m.late = nil, false
	m.overdue.stop()
	m.hangUpLocked()
	if led && e.leader == m {
		e.leader = nil
		e.pauseLocked()
	}
	if led {
		for _, f := range e.members {
			if f.leader == m {
				e.noticeLocked(f)
			}
		}
	}
	e.seekLocked()
}

// hangUpLocked ends all connections in good order.
func (m *member) hangUpLocked() {
	for _, c := range m.sortedConnsLocked() {
		c.finishLocked()
	}
}

// idleLocked reports whether a member can take part in an election.
func (m *member) idleLocked() bool {
	return !m.down && !m.frozenLocked() && (m.role == roleLooking || m.role == roleReadOnly)
}

// groupLocked returns the members that c could lead, itself included.
func (e *ensemble) groupLocked(c *member) []*member {
	var group []*member
	for _, m := range e.members {
		if m.idleLocked() && e.linkedLocked(c, m) {
			group = append(group, m)
		}
	}
	return group
}

// candidateLocked returns the member that would win an election, nil if none
// is possible: the one with the latest data, and of these the last.
//
// Source: ZooKeeper FastLeaderElection.totalOrderPredicate.
func (e *ensemble) candidateLocked() *member {
	var best *member
	for _, c := range e.members {
		if !c.idleLocked() || 2*len(e.groupLocked(c)) <= len(e.members) {
			continue
		}
		if c == e.prefer {
			return c
		}
		if best == nil || c.applied >= best.applied {
			best = c
		}
	}
	return best
}

// seekLocked begins an election, or the joining of a leader, if one is possible.
func (e *ensemble) seekLocked() {
	if e.electing || e.closed {
		return
	}
	joins := slices.ContainsFunc(e.members, func(m *member) bool { return e.joinsLocked(m) })
	if joins || e.candidateLocked() != nil {
		e.electing = true
		e.election.set(e.cfg.electionTime, e.elect)
	}
}

// joinsLocked reports whether a member could follow the present leader.
func (e *ensemble) joinsLocked(m *member) bool {
	l := e.leader
	return l != nil && l != m && !l.down && m.idleLocked() && e.linkedLocked(l, m)
}

func (e *ensemble) elect() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.electing = false
	if e.closed {
		return
	}
	e.electLocked()
	e.seekLocked()
}

// electLocked is the end of an election.
func (e *ensemble) electLocked() {
	for _, m := range e.members {
		if e.joinsLocked(m) {
			m.followLocked(e.leader)
		}
	}
	if c := e.candidateLocked(); c != nil {
		c.leadLocked()
	}
	e.flowLocked()
	e.scheduleSweepLocked()
	e.wakeWaitersLocked()
}

// leadLocked makes a member the leader of all that it can reach. Every session
// gets its full timeout again.
func (m *member) leadLocked() {
	e := m.e
	group := e.groupLocked(m)
	if e.leader != nil { // it is cut off or stands still, and does not know
		e.pauseLocked()
	}
	if m != e.head && m.applied != e.head.applied {
		m.data = e.head.data.Clone()
	}
	m.applied = e.last
	if len(e.members) > 1 {
		e.epoch++
		e.zxid = e.epoch << 32
		m.applied = e.zxid
	}
	m.role, m.leader = roleLeading, m
	e.leader, e.head, e.prefer = m, m, nil
	for _, f := range group {
		if f != m {
			f.followLocked(m)
		}
	}
	e.resumeLocked()
}

// followLocked makes a member follow l.
func (m *member) followLocked(l *member) {
	m.hangUpLocked() // readers, if it served any
	if e := m.e; m.applied != e.last {
		m.data = l.data.Clone()
		// A follower hears of a new epoch with its first transaction, so a client
		// of the leader can be ahead of it until then, as in ZooKeeper.
		m.applied = e.last
	}
	m.role, m.leader, m.dropped = roleFollowing, l, false
	m.heard = time.Now()
	m.acked = m.heard
}

// sortedConnsLocked lists the connections in the order in which they came.
func (m *member) sortedConnsLocked() []*conn {
	return slices.SortedFunc(maps.Keys(m.conns), byNum)
}
