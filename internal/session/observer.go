package session

import (
	"time"

	"github.com/paddock-zk/paddock/listeners"
)

// Observer hears of a session, in the order in which things happen, and holds up nothing.
type Observer interface {
	// Connection hears of each state of the connection. server is "" and id 0 while there
	// is none.
	Connection(at time.Time, state listeners.State, server string, id int64)
	// LeaseRenewed hears that a write has confirmed the session lease. It comes only while
	// nodes are tracked, and not for each reply.
	LeaseRenewed(at time.Time, left time.Duration)
}

// Aside runs fn in another goroutine, in the order of the calls of Aside. It is for
// goroutines that nothing may hold up.
func (s *Session) Aside(fn func()) { s.aside.Publish(fn) }

// tellStateLocked tells of a state of the connection. It only queues.
func (s *Session) tellStateLocked(at time.Time, state listeners.State) {
	if s.cfg.Observer == nil {
		return
	}
	id, server := s.id, ""
	if s.conn != nil {
		server = s.conn.Addr()
	}
	s.Aside(func() { s.cfg.Observer.Connection(at, state, server, id) })
}

// tellLease tells that the session lease lasts.
func (s *Session) tellLease(left time.Duration) {
	if s.cfg.Observer != nil {
		at := time.Now()
		s.Aside(func() { s.cfg.Observer.LeaseRenewed(at, left) })
	}
}
