package session

import "github.com/paddock-zk/paddock/framework/monitor"

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

// Inspector says what locks hold and wait for in a session.
type Inspector interface {
	Holds() []monitor.HoldInfo
	Waiters() []monitor.WaiterInfo
}

// Inspect lets a client show what locks do with its session. It is for the package of the
// locks.
func Inspect(s *Session, by Inspector) { s.inspector.Store(&by) }

// Inspected says what the locks hold and wait for.
func Inspected(s *Session) Inspector {
	if by := s.inspector.Load(); by != nil {
		return *by
	}
	return noLocks{}
}

// noLocks is for a client that no lock was made with.
type noLocks struct{}

func (noLocks) Holds() []monitor.HoldInfo     { return nil }
func (noLocks) Waiters() []monitor.WaiterInfo { return nil }

// Show lets a client show a cache until remove is called. info must not block.
func Show(s *Session, info func() monitor.CacheInfo) (remove func()) {
	s.caches.Store(&info, info)
	return func() { s.caches.Delete(&info) }
}

// Caches are those that are shown, in no order.
func Caches(s *Session) (list []monitor.CacheInfo) {
	s.caches.Range(func(_, info any) bool {
		list = append(list, info.(func() monitor.CacheInfo)())
		return true
	})
	return list
}
