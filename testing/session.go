package zktest

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// session is one client's session. Its fields are guarded by ensemble.mu.
type session struct {
	id      int64
	timeout time.Duration
	conn    *conn   // nil while disconnected
	owner   *member // where the leader was told that it is
	due     int64   // the tick at which it expires, 0 while the clock stands still
	closing bool    // it has expired, and a majority has yet to hear
}

// sessions are the sessions of an ensemble and when they expire.
//
// A session expires on a tick, or a multiple of what ExpireEvery says: on the
// first one after the client has been silent for its timeout. Sessions that are
// due on the same tick expire in the order of their ids.
//
// Source: ZooKeeper SessionTrackerImpl, ExpiryQueue.
type sessions struct {
	byID   map[int64]*session
	last   int64 // number of the id given out last
	due    map[int64]map[*session]struct{}
	alarm  alarm
	armed  int64 // the tick that alarm is set to, 0 if it is not set
	paused bool  // nobody leads, so nobody looks at the clock
}

func newSessions() sessions {
	return sessions{
		byID:   make(map[int64]*session),
		due:    make(map[int64]map[*session]struct{}),
		paused: true,
	}
}

// password is the secret of a session, which a client shows to take it up again.
func (e *ensemble) password(id int64) []byte {
	if e.cfg.keeper != nil {
		return make([]byte, 16)
	}
	mac := hmac.New(sha256.New, e.secret[:])
	_ = binary.Write(mac, binary.BigEndian, id)
	return mac.Sum(nil)[:16]
}

// openSessionLocked begins a session for c. The answer goes out when c's
// member has applied the transaction.
func (e *ensemble) openSessionLocked(c *conn, timeout time.Duration) {
	s := e.newSessionLocked(c, timeout)
	c.attachLocked(s)
	c.proposeLocked(proposal{
		to: reply{conn: c}, who: tree.Caller{Session: s.id}, op: wire.OpCreateSession, session: s,
	})
}

// newSessionLocked returns a session that no member knows yet. As in ZooKeeper
// the first byte of its id is the number of the member.
func (e *ensemble) newSessionLocked(c *conn, timeout time.Duration) *session {
	e.sessions.last++
	id := int64(1+c.m.index)<<56 | e.sessions.last
	return &session{id: id, timeout: timeout, conn: c, owner: c.m}
}

// expireLocked ends a session: its ephemeral nodes go, and so does its
// connection.
func (e *ensemble) expireLocked(s *session) {
	s.closing = true
	e.unscheduleLocked(s)
	e.leader.proposeLocked(proposal{who: tree.Caller{Session: s.id}, op: wire.OpCloseSession})
}

// touchLocked notes that the session's client was heard.
func (e *ensemble) touchLocked(s *session) {
	if e.sessions.paused || s.closing {
		return
	}
	due := int64((time.Since(e.origin)+s.timeout)/e.cfg.expiry) + 1
	if due == s.due {
		return
	}
	e.unscheduleLocked(s)
	s.due = due
	bucket := e.sessions.due[due]
	if bucket == nil {
		bucket = make(map[*session]struct{})
		e.sessions.due[due] = bucket
	}
	bucket[s] = struct{}{}
	if e.sessions.armed == 0 || due < e.sessions.armed {
		e.armLocked(due)
	}
}

func (e *ensemble) unscheduleLocked(s *session) {
	bucket := e.sessions.due[s.due]
	delete(bucket, s)
	if len(bucket) == 0 {
		delete(e.sessions.due, s.due)
	}
	s.due = 0
}

// armLocked sets the alarm to a tick. It may ring too early, when the sessions
// of that tick were heard meanwhile; then it is set again.
func (e *ensemble) armLocked(tick int64) {
	e.sessions.armed = tick
	e.sessions.alarm.set(time.Until(e.origin.Add(time.Duration(tick)*e.cfg.expiry)), e.expire)
}

// expire ends the sessions that are due.
func (e *ensemble) expire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed && !e.sessions.paused {
		e.expireDueLocked()
	}
}

func (e *ensemble) expireDueLocked() {
	now := int64(time.Since(e.origin) / e.cfg.expiry)
	var over []*session
	for tick, bucket := range e.sessions.due {
		if tick <= now {
			for s := range bucket {
				over = append(over, s)
			}
		}
	}
	slices.SortFunc(over, func(a, b *session) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id))
	})
	for _, s := range over {
		e.expireLocked(s)
	}
	e.rearmLocked()
}

func (e *ensemble) rearmLocked() {
	next := int64(0)
	for tick := range e.sessions.due {
		if next == 0 || tick < next {
			next = tick
		}
	}
	if e.sessions.armed = next; next != 0 {
		e.armLocked(next)
	}
}

// pauseLocked stops the clock, since nobody leads.
func (e *ensemble) pauseLocked() {
	e.sessions.paused = true
	e.sessions.alarm.stop()
	e.sessions.armed = 0
	e.sweeps.stop()
	e.sweeping = false
	for _, s := range e.sessions.byID {
		e.unscheduleLocked(s)
	}
}

// resumeLocked starts the clock again and gives each session its full timeout.
func (e *ensemble) resumeLocked() {
	e.sessions.paused = false
	for _, s := range e.sessions.byID {
		s.closing = false
		e.touchLocked(s)
	}
	e.scheduleSweepLocked()
}

// negotiate returns the timeout that a client gets.
func (e *ensemble) negotiate(milliseconds int32) time.Duration {
	asked := time.Duration(milliseconds) * time.Millisecond
	return min(max(asked, e.cfg.minTimeout), e.cfg.maxTimeout)
}
