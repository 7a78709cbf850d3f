package session

import (
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/internal/link"
)

func panicText(v any) string { return fmt.Sprint(v) }

// mind watches the clock until the session closes: the deadline of the belief,
// the proofs that extend it, the watches on the nodes of claims, and the limits
// of removals that are waited for.
func (s *Session) mind() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.poke:
		case <-s.life.Done():
			return
		}
		next := s.tend(s.clock.Now())
		s.mu.Lock()
		s.wakeAt = next
		s.mu.Unlock()
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(next.Sub(s.clock.Now()))
		}
	}
}

// lookAgain is how often the minder reads the clock while there are claims.
// Timers stand still while the machine sleeps: this is how much later than the
// deadline a context may end that was waited for then.
const lookAgain = time.Second

// tend does what is due and returns when to look again, the zero time for
// never unless poked.
func (s *Session) tend(now time.Time) time.Time {
	s.mu.Lock()
	s.wakeAt = time.Time{} // what comes while we look must wake us again
	s.mu.Unlock()
	next := s.tendSession(now)
	if due := s.endWaits(now); next.IsZero() || !due.IsZero() && due.Before(next) {
		return due
	}
	return next
}

// tendSession does what is due for the session and its claims.
func (s *Session) tendSession(now time.Time) time.Time {
	s.mu.Lock()
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
	case s.claims.len() > 0:
		next = earlier(next, now.Add(lookAgain))
	case s.claimed:
		// Short claims follow each other, and each would wake us to look for what
		// is over by then.
		next = earlier(next, now.Add(watchAfter))
	}
	s.claimed = false
	c := s.conn
	var p *proof
	if c != nil && !c.ReadOnly() && s.claims.len() > 0 {
		var due time.Time
		if p, due = s.proofDueLocked(now); !due.IsZero() {
			next = earlier(next, due)
		}
	} else {
		c = nil
	}
	s.mu.Unlock()
	if c == nil {
		return next
	}
	if p != nil {
		s.prove(c, p)
	}
	if due := s.watchClaims(c, now); !due.IsZero() {
		next = earlier(next, due)
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// limitLocked is when the session counts as lost if nothing more is heard. The
// stricter grade of belief is for claims: without any it would lapse whenever
// nothing is written.
func (s *Session) limitLocked() time.Time {
	proof := ProofServer
	if s.claims.len() > 0 {
		proof = s.cfg.Proof
	}
	limit := s.belief.deadline(proof)
	if s.cfg.LostAfter > 0 && !s.downAt.IsZero() {
		limit = earlier(limit, s.downAt.Add(s.cfg.LostAfter))
	}
	return limit
}

// overdueLocked is whether the limit has passed. Once it was seen to have,
// nothing that comes later can make the session believed in again.
func (s *Session) overdueLocked(now time.Time) bool {
	if !s.overdue && s.id != 0 && !now.Before(s.limitLocked()) {
		s.overdue = true
		s.pokeLocked()
	}
	return s.overdue
}

// proofDueLocked returns the proof to send now, or when to look again.
func (s *Session) proofDueLocked(now time.Time) (*proof, time.Time) {
	if s.proving {
		return nil, time.Time{} // its reply pokes
	}
	due, ok := now, true
	if !s.claims.doubt() {
		if s.cfg.Proof != ProofLeader {
			return nil, time.Time{}
		}
		due, ok = s.belief.due()
		if pause := s.provenAt.Add(s.belief.timeout / 4); due.Before(pause) {
			due = pause
		}
	}
	if !ok || due.After(now) {
		return nil, due
	}
	p := s.nextProofLocked()
	s.proving = p != nil
	return p, time.Time{}
}

// prove sends a proof.
func (s *Session) prove(c *link.Conn, p *proof) {
	p.call.OnReply = func(*link.Call) { s.settle(c, p) }
	if c.Send(p.call) != nil {
		// The connection has ended, and the next one begins with a proof.
		s.mu.Lock()
		s.proving = false
		s.mu.Unlock()
	}
}
