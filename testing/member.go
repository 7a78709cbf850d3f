package zktest

import (
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// role is what a member does.
type role int

const (
	roleLooking   role = iota // serves nobody, and looks for a leader
	roleFollowing             // serves clients, and hands their writes to its leader
	roleLeading
	roleReadOnly // has no leader, and serves clients that only read
)

// member is one server of an ensemble: a replica of the data, and an endpoint
// for clients with their watches.
type member struct {
	e        *ensemble
	index    int
	endpoint endpoint

	// guarded by ensemble.mu
	data     *tree.Tree
	applied  int64 // zxid of the transaction that data has seen last
	watches  watches
	conns    map[*conn]struct{} // until their goroutines have ended
	attached map[int64]*conn    // the connection that serves a session here
	down     bool               // not opened yet, or stopped
	refuses  bool               // new connections are turned away
	thaw     chan struct{}      // closed by Thaw; nil while not frozen

	role    role
	leader  *member   // whom it follows, itself if it leads
	since   time.Time // when it began to look
	heard   time.Time // when it heard its leader last
	acked   time.Time // when its leader heard it last
	dropped bool      // its leader has given it up, and it does not know yet
	// touched are the sessions whose clients it heard since it told its leader.
	touched  map[*session]struct{}
	late     bool                  // a leader's, which stood still when it was to ping
	answer   map[*session]struct{} // to its leader's ping, on its way; nil if there is none
	pending  []proposal            // a leader's: waits for a majority
	outbox   []proposal            // a follower's: on the way to its leader
	inbox    []delivery            // on the way from its leader
	lag      time.Duration
	arrivals alarm // for the first in inbox
	overdue  alarm // for the ping of a leader that stood still

	stalls    map[int64]Direction // by session; 0 is everybody
	restalled chan struct{}       // closed when stalls changes; nil if nobody waits

	received, sent           int64
	bytesReceived, bytesSent int64
	notifications            int64
}

func newMember(e *ensemble, index int) *member {
	addr := memberAddr(e.cfg.listen, index)
	if e.cfg.memory {
		addr = fmt.Sprintf("%s:%d", e.host, 1+index)
	}
	return &member{
		e:        e,
		index:    index,
		endpoint: endpoint{addr: addr},
		down:     true,
		watches:  newWatches(e.cfg.release),
		conns:    make(map[*conn]struct{}),
		attached: make(map[int64]*conn),
		touched:  make(map[*session]struct{}),
	}
}

// applyLocked brings the replica one transaction further. Events go out before
// the answer, so that no client sees an effect before the event that tells of it.
func (m *member) applyLocked(txn *tree.Txn, to reply) tree.Outcome {
	out := m.data.Apply(txn)
	m.applied = txn.Zxid
	for _, ev := range out.Events {
		m.watches.fireLocked(ev, m.eventZxid(txn))
	}
	if to.conn != nil && to.conn.m == m {
		to.conn.answerLocked(to.xid, txn, out)
		to.conn.answeredLocked()
	}
	if txn.Op == wire.OpCloseSession {
		if c := m.attached[txn.Session]; c != nil {
			c.finishLocked()
		}
	}
	return out
}

// eventZxid is the zxid that events of a transaction have.
func (m *member) eventZxid(txn *tree.Txn) int64 {
	if m.e.cfg.release >= tree.Release393 {
		return txn.Zxid
	}
	return noZxid
}

// touchLocked notes that a session's client was heard. A leader knows this at
// once. A follower tells the leader at its next question.
func (m *member) touchLocked(s *session) {
	switch {
	case m == m.e.leader:
		m.e.touchLocked(s)
	case m.role == roleFollowing:
		m.touched[s] = struct{}{}
	}
}

// servesLocked reports whether clients can have sessions here.
func (m *member) servesLocked() bool { return m.role != roleLooking && !m.down }

// frozenLocked reports whether the member stands still.
func (m *member) frozenLocked() bool { return m.thaw != nil }
