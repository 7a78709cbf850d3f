package session

import "time"

// timeouts is a removal's place among those that are waited for. The session's
// mu guards it.
type timeouts struct {
	due        time.Time
	prev, next *Removal
	waiting    bool
}

// timeoutLists are the removals that are waited for, the first due first. The
// run loop ends the waits. With a timer for each, each would wake up a sleeping
// thread to look at it, as most are due before all other timers of a process,
// and that costs a good part of a round trip.
type timeoutLists struct{ first, last *Removal }

func (p *timeoutLists) add(r *Removal, due time.Time) {
	after := p.last
	for after != nil && due.Before(after.timeouts.due) { // none where limits are the same
		after = after.timeouts.prev
	}
	r.timeouts = timeouts{due: due, prev: after, waiting: true}
	if after == nil {
		r.timeouts.next, p.first = p.first, r
	} else {
		r.timeouts.next, after.timeouts.next = after.timeouts.next, r
	}
	if r.timeouts.next == nil {
		p.last = r
	} else {
		r.timeouts.next.timeouts.prev = r
	}
}

func (p *timeoutLists) remove(r *Removal) {
	at := r.timeouts
	if !at.waiting {
		return
	}
	if at.prev == nil {
		p.first = at.next
	} else {
		at.prev.timeouts.next = at.next
	}
	if at.next == nil {
		p.last = at.prev
	} else {
		at.next.timeouts.prev = at.prev
	}
	r.timeouts = timeouts{}
}

// expect sees to it that a removal is answered within the limit.
func (s *Session) expect(r *Removal, limit time.Duration) {
	if limit <= 0 {
		r.tell(ErrLate)
		return
	}
	due := s.clock.Now().Add(limit)
	s.mu.Lock()
	s.timeouts.add(r, due)
	if s.wakeAt.IsZero() || due.Before(s.wakeAt) {
		s.wakeLocked()
	}
	s.mu.Unlock()
	if r.isTold() { // before it was waited for
		s.forget(r)
	}
}

// forget ends a wait.
func (s *Session) forget(r *Removal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timeouts.remove(r)
}

// endWaits answers the removals whose limit has passed, and returns when the
// next one will, the zero time for never.
func (s *Session) endWaits(now time.Time) time.Time {
	for {
		s.mu.Lock()
		r := s.timeouts.first
		if r != nil && r.timeouts.due.After(now) {
			due := r.timeouts.due
			s.mu.Unlock()
			return due
		}
		s.mu.Unlock()
		if r == nil {
			return time.Time{}
		}
		r.tell(ErrLate)
	}
}
