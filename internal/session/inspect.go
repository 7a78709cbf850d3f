package session

import (
	"sync"

	"github.com/paddock-zk/paddock/framework/monitor"
)

// Stats is how a session stands.
func Stats(s *Session) monitor.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := monitor.Stats{
		State: s.state, Since: s.stateSince, Session: s.id, Timeout: s.lease.Timeout(),
		LastError: s.lastFailure, Holds: s.tracked.granted(), Unsupported: s.transport.Suspects.Lacking(),
	}
	st.Batches, st.Batched, st.BatchesUndone = s.transport.Batched()
	if s.conn != nil {
		st.Server = s.conn.Addr()
	}
	if s.id != 0 {
		st.LeaseLeft = max(0, s.limitLocked().Sub(s.clock.Now()))
	}
	return st
}

// holding is whether a lock is held.
func (s *Session) holding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tracked.granted() > 0
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
