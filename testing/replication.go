package zktest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// proposal is a request on its way to the leader: a write, a sync, or a session
// that is to be taken up again.
type proposal struct {
	to  reply
	who tree.Caller
	op  wire.Op
	req wire.Record
	// session is the one to open or to take up.
	session *session
}

// opRenew asks the leader whether a session lives. No client can send it.
const opRenew wire.Op = -1001

// delivery is something on its way from the leader to a follower.
type delivery struct {
	at time.Time // when it may arrive
	do func()    // with the lock held
}

// keep returns p such that it can wait: it shares no memory with a frame.
func (p proposal) keep() proposal {
	if p.req == nil {
		return p
	}
	var e wire.Encoder
	p.req.Encode(&e)
	if k, ok := kinds[p.op]; ok && k.body != nil {
		p.req = k.body()
		p.req.Decode(wire.NewDecoder(e.B))
	}
	return p
}

// openLocked reports whether what one member sends now reaches the other.
func (e *ensemble) openLocked(from, to *member) bool {
	if from == to {
		return true
	}
	return !from.down && !to.down && !from.frozenLocked() && !to.frozenLocked() && !e.cut[from.index][to.index]
}

// linkedLocked reports whether two members can talk.
func (e *ensemble) linkedLocked(a, b *member) bool { return e.openLocked(a, b) && e.openLocked(b, a) }

// canCommitLocked reports whether a majority follows l and answers it.
func (e *ensemble) canCommitLocked(l *member) bool {
	if l == nil || l != e.leader {
		return false
	}
	if len(e.members) == 1 {
		return true
	}
	if l.down || l.frozenLocked() {
		return false
	}
	n := 1
	for _, m := range e.members {
		if m != l && m.follows(l) && e.linkedLocked(l, m) {
			n++
		}
	}
	return 2*n > len(e.members)
}

// follows reports whether m is one of l's.
func (m *member) follows(l *member) bool {
	return m.role == roleFollowing && m.leader == l && !m.dropped
}

// proposeLocked takes a request towards the leader. Where it cannot go on it
// waits, in order.
func (m *member) proposeLocked(p proposal) {
	e, l := m.e, m.leader
	switch {
	case l == nil: // its connection is ending
	case m == l && len(m.pending) == 0 && (e.canCommitLocked(m) || p.op == wire.OpSync):
		// A leader that does not know yet that it lost its majority answers a
		// sync, as in ZooKeeper.
		e.commitLocked(p)
	case m == l:
		m.pending = append(m.pending, p.keep())
	case len(m.outbox) == 0 && !m.dropped && e.openLocked(m, l):
		l.proposeLocked(p)
	default:
		m.outbox = append(m.outbox, p.keep())
	}
}

// commitLocked carries a request out: the leader's data decide, and every
// member that follows applies; the one that serves the client answers.
func (e *ensemble) commitLocked(p proposal) tree.Outcome {
	l := e.leader
	switch p.op {
	case wire.OpSync:
		if p.to.conn.m.leader != nil {
			l = p.to.conn.m.leader // perhaps one that is about to learn of another
		}
		path := javaText(p.req.(*wire.PathRequest).Path)
		e.answerLocked(l, p.to, func(c *conn) { c.replyLocked(p.to.xid, wire.CodeOK, &wire.PathResponse{Path: path}) })
		return tree.Outcome{}
	case opRenew:
		e.renewLocked(p)
		return tree.Outcome{}
	}
	e.zxid++
	e.last = e.zxid
	e.transactions++
	var txn *tree.Txn
	if code := e.sessionLocked(p); code != wire.CodeOK {
		txn = tree.Refuse(e.zxid, e.now(), p.who, p.op, code)
	} else {
		txn = l.data.Prepare(e.zxid, e.now(), p.who, p.op, p.req)
	}
	out := l.applyLocked(txn, p.to)
	e.logLocked(l.data, txn, out)
	if len(e.members) > 1 {
		for _, m := range e.members {
			if m.follows(l) {
				m.deliverLocked(func() { m.applyLocked(txn, p.to) })
			}
		}
	}
	e.scheduleSweepLocked()
	e.wakeWaitersLocked()
	return out
}

// answerLocked runs fn for the connection that asked, behind everything that
// the leader has sent its member before.
func (e *ensemble) answerLocked(l *member, to reply, fn func(c *conn)) {
	answer := func() {
		fn(to.conn)
		to.conn.answeredLocked()
	}
	if m := to.conn.m; m != l {
		if m.follows(l) {
			m.deliverLocked(answer)
		}
		return
	}
	answer()
}

// deliverLocked sends a follower something.
func (m *member) deliverLocked(do func()) {
	if len(m.inbox) == 0 && m.lag == 0 && m.e.openLocked(m.leader, m) {
		do()
		return
	}
	m.inbox = append(m.inbox, delivery{time.Now().Add(m.lag), do})
	m.receiveLocked()
}

// receiveLocked handles what has arrived.
func (m *member) receiveLocked() {
	for len(m.inbox) > 0 && m.role == roleFollowing && m.e.openLocked(m.leader, m) {
		first := m.inbox[0]
		if wait := time.Until(first.at); wait > 0 {
			m.arrivals.set(wait, m.receive)
			return
		}
		m.inbox = m.inbox[1:]
		first.do()
		m.e.wakeWaitersLocked()
	}
}

func (m *member) receive() {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	if !m.e.closed {
		m.receiveLocked()
	}
}

// flowLocked lets go on what waited for a way that may be open now.
func (e *ensemble) flowLocked() {
	for _, m := range e.members {
		if m.role == roleFollowing {
			m.ackLocked() // it was sent before what is in the outbox
		}
		for m.role == roleFollowing && len(m.outbox) > 0 && !m.dropped && e.openLocked(m, m.leader) {
			p := m.outbox[0]
			m.outbox = m.outbox[1:]
			m.leader.proposeLocked(p)
		}
	}
	for l := e.leader; l != nil && len(l.pending) > 0 && e.canCommitLocked(l); {
		p := l.pending[0]
		l.pending = l.pending[1:]
		e.commitLocked(p)
	}
	for _, m := range e.members {
		m.receiveLocked()
	}
}

// sessionLocked judges a client's request by its session. A session that has
// moved to another member can be used there only.
//
// Source: ZooKeeper SessionTrackerImpl.checkSession, PrepRequestProcessor.
func (e *ensemble) sessionLocked(p proposal) wire.Code {
	switch {
	case p.op == wire.OpCreateSession:
		e.sessions.byID[p.session.id] = p.session
		e.touchLocked(p.session)
		return wire.CodeOK
	case p.op == wire.OpCloseSession:
		if s := e.sessions.byID[p.who.Session]; s != nil {
			delete(e.sessions.byID, s.id)
			e.unscheduleLocked(s)
		}
		return wire.CodeOK
	case p.who.Session == 0: // the server's own
		return wire.CodeOK
	}
	s := e.sessions.byID[p.who.Session]
	switch {
	case s == nil || s.closing:
		return wire.CodeSessionExpired
	case s.owner != p.to.conn.m:
		return wire.CodeSessionMoved
	}
	return wire.CodeOK
}

// renewLocked takes a session up for a connection, if it lives.
func (e *ensemble) renewLocked(p proposal) {
	c, s := p.to.conn, e.sessions.byID[p.who.Session]
	alive := s != nil && !s.closing && !c.isOverLocked()
	if alive {
		s.conn, s.owner, s.timeout = c, c.m, p.session.timeout
		e.touchLocked(s)
	}
	e.answerLocked(e.leader, p.to, func(c *conn) {
		if !alive {
			c.turnAwayLocked()
			c.finishLocked()
			return
		}
		if c.isOverLocked() { // since the leader agreed
			if s.conn == c {
				s.conn = nil
			}
			return
		}
		c.attachLocked(s)
		c.welcomeLocked(false)
		e.wakeWaitersLocked()
	})
}

// toldLocked is a follower's answer to its leader's ping: whom it has heard. If
// it cannot go through now it waits, as everything does that is on its way.
func (m *member) toldLocked() {
	m.heard = time.Now()
	if m.answer == nil {
		m.answer = make(map[*session]struct{})
	}
	maps.Copy(m.answer, m.touched)
	clear(m.touched)
	m.ackLocked()
}

// ackLocked hands over what toldLocked has said.
func (m *member) ackLocked() {
	if m.answer == nil || m.dropped || !m.e.openLocked(m, m.leader) {
		return
	}
	m.acked = time.Now()
	if m.leader == m.e.leader {
		for _, s := range slices.SortedFunc(maps.Keys(m.answer), func(a, b *session) int { return cmp.Compare(a.id, b.id) }) {
			m.e.touchLocked(s)
		}
	}
	m.answer = nil
}
