package session

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/listeners"
)

// State is the connection's state now.
func (s *Session) State() listeners.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// setStateLocked publishes under the mutex, so that listeners see states in
// the order in which they came about. Publish only queues.
func (s *Session) setStateLocked(to listeners.State) {
	s.state, s.stateSince = to, time.Now()
	s.states.Publish(to)
	s.tellStateLocked(s.stateSince, to)
}

// wakeWaitersLocked wakes the goroutines that wait for a change.
func (s *Session) wakeWaitersLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// upStateLocked is CONNECTED once, for the first server with a majority.
//
// Source: Curator's ConnectionStateManager.
func (s *Session) upStateLocked(c *transport.Conn) listeners.State {
	if c.ReadOnly() {
		return listeners.ReadOnly
	}
	if !s.served {
		s.served = true
		return listeners.Connected
	}
	return listeners.Reconnected
}

// limitLocked is when the session counts as lost if no server answers any more. Only with
// tracked nodes does it go by the rule for ensembles. Without any, nothing is written for
// a time, and by that rule the session would count as lost.
func (s *Session) limitLocked() time.Time {
	limit := s.lease.Heard()
	if s.tracked.granted() > 0 {
		limit = s.lease.Deadline()
	}
	if s.cfg.LostAfter > 0 && s.conn == nil {
		limit = earlier(limit, s.outage.since.Add(s.cfg.LostAfter))
	}
	return limit
}

// overdueLocked is whether the limit has passed. Once the session was seen to be overdue,
// no later reply changes that.
func (s *Session) overdueLocked(now time.Time) bool {
	if !s.overdue && s.id != 0 && !now.Before(s.limitLocked()) {
		s.overdue = true
		s.wakeLocked()
	}
	return s.overdue
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// lose gives the session up, and tells tracked nodes the reason. When it returns, that
// has been done, by this goroutine or another.
//
// It tells tracked nodes first. After that come the steps that may let another client
// have the nodes. These are the end of the connection, and the next connection, which tells
// the servers that the session is over. No tracked node is added meanwhile, since the session
// is overdue. To tell calls no code of users, so nothing can hold it up.
func (s *Session) lose(reason error) {
	s.mu.Lock()
	if losing := s.losing; losing != nil {
		s.mu.Unlock()
		<-losing
		return
	}
	if s.closed || s.id == 0 {
		s.mu.Unlock()
		return
	}
	id, done := s.id, make(chan struct{})
	if s.conn != nil {
		s.outage.since = s.clock.Now()
	}
	s.losing, s.overdue, s.conn = done, true, nil
	if errors.Is(reason, zk.ErrSessionExpired) {
		s.explainLocked(reason)
	}
	s.gone = gone{}
	changes := s.loseTrackedLocked(reason)
	s.mu.Unlock()
	notifyOwners(changes)

	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.id, s.givenUp = 0, id
		s.setStateLocked(listeners.Lost)
		s.wakeWaitersLocked()
	}
	s.mu.Unlock()
	if !closed { // otherwise Close does all this
		s.transport.Abandon(id)
		s.watches.End(zk.ErrSessionExpired, false)
		s.log.Warn("session lost", zap.String("session", hexID(id)), zap.Error(reason))
	}
	s.mu.Lock()
	s.losing = nil
	s.mu.Unlock()
	close(done)
}
