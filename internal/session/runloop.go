package session

import (
	"time"

	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/session/lease"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// run watches the clock until the session closes. It looks after the end of the session
// lease, its renewals and the watches on tracked nodes.
func (s *Session) run() {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for s.life.Err() == nil {
		next := s.maintain(s.clock.Now())
		s.mu.Lock()
		s.wakeAt = next
		s.mu.Unlock()
		if next.IsZero() {
			timer.Stop()
		} else if wait := next.Sub(s.clock.Now()); wait > 0 {
			timer.Reset(wait)
		} else {
			continue // no Reset of 0: to read a timer that is due can crash Go's race detector in a synctest bubble
		}
		select {
		case <-timer.C:
		case <-s.wake:
		case <-s.life.Done():
		}
	}
}

// lookAgain is how often the run loop reads the clock while there are tracked nodes.
// Timers stand still while the machine sleeps. So after a sleep a context may end this
// much later than its deadline.
const lookAgain = time.Second

// maintain does what is due and returns when to look again, the zero time for
// never unless woken.
func (s *Session) maintain(now time.Time) time.Time {
	s.mu.Lock()
	s.wakeAt = time.Time{} // what comes while we look must wake us again
	if s.id == 0 || s.closed {
		s.mu.Unlock()
		return time.Time{}
	}
	if s.overdueLocked(now) {
		s.mu.Unlock()
		s.lose(ErrNotConnected)
		return time.Time{}
	}
	next := s.limitLocked()
	switch {
	case s.tracked.len() > 0:
		next = earlier(next, now.Add(lookAgain))
	case s.everTracked:
		// Short-lived nodes follow each other, and each would wake us to look for what
		// is over by then.
		next = earlier(next, now.Add(watchAfter))
	}
	s.everTracked = false
	c := s.conn
	if c == nil || c.ReadOnly() {
		s.mu.Unlock()
		return next
	}
	s.grantWaitingLocked(now)
	warn, warnDue := s.warnLocked(now)
	long := s.longHeldLocked(now)
	renewal, renewalDue := s.renewLocked(c, now)
	tracked := s.tracked.len()
	s.mu.Unlock()
	for _, log := range []func(){warn, long} {
		if log != nil {
			log()
		}
	}
	next = lease.Sooner(next, lease.Sooner(warnDue, renewalDue))
	_ = c.SendFirst(renewal...) // else the connection has ended, and the next one begins anew
	if tracked == 0 {
		return next
	}
	return lease.Sooner(next, s.watchAllTracked(c, now))
}

// longHeld is from when on a tracked node is logged, once.
const longHeld = 10 * time.Minute

// longHeldLocked returns a function that logs, in one line, which nodes have been there
// for long, or nil. Nothing else shows a forgotten Release of a lock that nobody waits
// for.
func (s *Session) longHeldLocked(now time.Time) func() {
	if now.Before(s.heldLook) {
		return nil
	}
	s.heldLook = now.Add(longHeld)
	var oldest *TrackedNode
	n := 0
	for _, node := range s.tracked.all() {
		age := now.Sub(s.opened.Add(node.since))
		if age < longHeld || age >= 2*longHeld {
			continue
		}
		if n++; oldest == nil || node.since < oldest.since {
			oldest = node
		}
	}
	if n == 0 {
		return nil
	}
	path, age := oldest.path, now.Sub(s.opened.Add(oldest.since))
	return func() {
		s.log.Info("locks are held for long, which may be meant: otherwise look for a Release that was forgotten",
			zap.Int("locks", n), zap.String("oldest", path), zap.Duration("held", age))
	}
}

// useLocked is the use for which the session lease is renewed.
func (s *Session) useLocked() lease.Use {
	switch {
	case s.tracked.len() > 0:
		return lease.Held
	case s.ready:
		return lease.Ready
	}
	return lease.Unused
}

// renewLocked makes the requests that are due on c: those that renew the session
// lease, and those that verify tracked nodes. It says when to ask again.
func (s *Session) renewLocked(c *transport.Conn, now time.Time) (calls []*transport.Call, next time.Time) {
	if s.tracked.hasUncertain() {
		if until := s.checks.Until(); now.Before(until) {
			next = until
		} else {
			for chk := s.nextCheckLocked(true); chk != nil; chk = s.nextCheckLocked(true) {
				calls = append(calls, s.sendable(c, chk))
			}
		}
	}
	step, due := s.lease.Renew(now, s.useLocked())
	if step&lease.Write != 0 {
		if chk := s.nextCheckLocked(false); chk != nil {
			calls = append(calls, s.sendable(c, chk))
		}
	}
	if step&lease.Sync != 0 {
		call := transport.NewCall(wire.OpSync, &wire.PathRequest{Path: "/"})
		call.OnReply = func(call *transport.Call) { s.synced(c, call) }
		calls = append(calls, call)
	}
	return calls, lease.Sooner(next, due)
}

func (s *Session) sendable(c *transport.Conn, chk *check) *transport.Call {
	chk.call.OnReply = func(*transport.Call) { s.checkAnswered(c, chk) }
	return chk.call
}

// synced takes in the reply to a sync, of which only a refusal is news: Acked has
// told of an answer.
func (s *Session) synced(c *transport.Conn, call *transport.Call) {
	if !call.Replied() || call.Code() == wire.CodeOK {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == c {
		s.lease.Refused(lease.Sync, s.clock.Now())
		s.wakeLocked()
	}
}

// warnLocked returns a function that logs, once for each connection, that holds are about
// to be lost although the connection works. Or it returns nil and when to look again.
func (s *Session) warnLocked(now time.Time) (log func(), next time.Time) {
	if s.warned || s.tracked.granted() == 0 || s.cfg.Lease != lease.ByQuorum {
		return nil, time.Time{}
	}
	if short := s.lease.Short(); short.After(now) {
		return nil, short
	}
	s.warned = true
	left, takes, timeout := s.limitLocked().Sub(now), s.lease.Takes(), s.lease.Timeout()
	return func() {
		s.log.Warn("the session lease is about to end: renewals take too long for the session timeout",
			zap.Duration("left", left), zap.Duration("renewal_takes", takes), zap.Duration("session_timeout", timeout))
	}, time.Time{}
}
