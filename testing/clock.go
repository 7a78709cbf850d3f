package zktest

import "time"

// Advance lets d pass for the server at once. Sessions age, and those that are
// due expire. Times to live run, a sweep that is due happens, and later changes
// have later times. Clients do not notice, so a session survives only if its
// timeout is longer than d. It panics if d is negative.
func (s *Server) Advance(d time.Duration) {
	if d < 0 {
		panic("zktest: Advance by a negative duration")
	}
	e := s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	every := e.cfg.sweepInterval
	sweeps := every > 0 && time.Since(e.origin)%every+d >= every
	e.origin = e.origin.Add(-d)
	e.wall += d
	if e.closed || e.sessions.paused {
		return
	}
	e.expireDueLocked()
	if sweeps {
		e.sweepLocked()
	}
	if e.sweeping {
		e.sweeps.stop()
		e.sweeping = false
		e.scheduleSweepLocked()
	}
}

// MoveClock moves the server's wall clock by d, which may be negative. The
// times of later changes in a Stat follow that clock, and so do times to live.
// Sessions do not age by it, as in ZooKeeper.
func (s *Server) MoveClock(d time.Duration) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.e.wall += d
}
