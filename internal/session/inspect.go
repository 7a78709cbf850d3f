package session

import (
	"sync"
	"time"

	"github.com/paddock-zk/paddock/listeners"
)

// Stats is how a session stands, as package monitor says it.
type Stats struct {
	State                           listeners.State
	Since                           time.Time
	Server                          string
	Session                         int64
	Timeout, LeaseLeft              time.Duration
	LastError                       error
	Holds                           int
	Batches, Batched, BatchesUndone int64
	Unsupported                     []string
}

// StatsOf is how a session stands.
func StatsOf(s *Session) Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{
		State: s.state, Since: s.stateSince, Session: s.id, Timeout: s.lease.Timeout(),
		LastError: s.lastFailure, Holds: s.tracked.granted(), Unsupported: s.transport.Suspects.Lacking(),
	}
	st.Batches, st.Batched, st.BatchesUndone = s.batches.Load()
	if s.conn != nil {
		st.Server = s.conn.Addr()
	}
	if s.id != 0 {
		st.LeaseLeft = max(0, s.limitLocked().Sub(s.clock.Now()))
	}
	return st
}

// holding is what is left until locks that are held are lost, 0 without one.
func (s *Session) holding() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tracked.granted() == 0 {
		return 0
	}
	return s.limitLocked().Sub(s.clock.Now())
}

var shown = Slot[sync.Map]{New: func(*Session) *sync.Map { return new(sync.Map) }}

// Show has a client show what somebody does with its session, until remove is called. The
// client knows by its type what it can show.
func Show(s *Session, what any) (remove func()) {
	key := new(byte)
	all := shown.Of(s)
	all.Store(key, what)
	return func() { all.Delete(key) }
}

// Shown is all of one type that is shown, in no order.
func Shown[T any](s *Session) (all []T) {
	shown.Of(s).Range(func(_, what any) bool {
		if is, ok := what.(T); ok {
			all = append(all, is)
		}
		return true
	})
	return all
}
