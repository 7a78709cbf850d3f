package zktest

import (
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// SweepContainers removes now what the server removes every SweepInterval:
// containers that had children and have none left, and nodes without children
// whose time to live is over. A container that never had a child stays, as in
// ZooKeeper.
func (s *Server) SweepContainers() {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.e.sweepLocked()
}

func (e *ensemble) sweepLocked() {
	for _, path := range e.head.data.Sweepable(e.now()) {
		if _, err := e.ownLocked(wire.OpDeleteContainer, tree.Caller{}, &wire.PathRequest{Path: path}); err != nil {
			return
		}
	}
}

// scheduleSweepLocked sets the alarm for the next sweep, if there may be
// something to sweep.
func (e *ensemble) scheduleSweepLocked() {
	every := e.cfg.sweepInterval
	if e.sweeping || every == 0 || e.closed || e.sessions.paused || !e.head.data.Sweeps() {
		return
	}
	e.sweeping = true
	// Not at the instant at which sessions expire.
	e.sweeps.set(every-time.Since(e.origin)%every+2*time.Nanosecond, e.sweep)
}

func (e *ensemble) sweep() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sweeping = false
	if e.closed || e.sessions.paused {
		return
	}
	e.sweepLocked()
	e.scheduleSweepLocked()
}
