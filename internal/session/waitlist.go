package session

import "time"

// waitLink is a removal's place among those that are waited for. The session's
// mu guards it.
type waitLink struct {
	due        time.Time
	prev, next *Removal
	waiting    bool
}

// waitList are the removals that are waited for, the first due first. The
// run loop ends the waits. With a timer for each, each would wake up a sleeping
// thread to look at it, as most are due before all other timers of a process,
// and that costs a good part of a round trip.
type waitList struct{ first, last *Removal }

func (p *waitList) add(r *Removal, due time.Time) {
	after := p.last
	for after != nil && due.Before(after.wait.due) { // none where limits are the same
		after = after.wait.prev
	}
	r.wait = waitLink{due: due, prev: after, waiting: true}
	if after == nil {
		r.wait.next, p.first = p.first, r
	} else {
		r.wait.next, after.wait.next = after.wait.next, r
	}
	if r.wait.next == nil {
		p.last = r
	} else {
		r.wait.next.wait.prev = r
	}
}

func (p *waitList) remove(r *Removal) {
	at := r.wait
	if !at.waiting {
		return
	}
	if at.prev == nil {
		p.first = at.next
	} else {
		at.prev.wait.next = at.next
	}
	if at.next == nil {
		p.last = at.prev
	} else {
		at.next.wait.prev = at.prev
	}
	r.wait = waitLink{}
}

// expect sees to it that a removal is answered within the limit.
func (s *Session) expect(r *Removal, limit time.Duration) {
	if limit <= 0 {
		r.tell(ErrLate)
		return
	}
	due := s.clock.Now().Add(limit)
	s.mu.Lock()
	s.waits.add(r, due)
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
	s.waits.remove(r)
}

// endWaits answers the removals whose limit has passed, and returns when the
// next one will, the zero time for never.
func (s *Session) endWaits(now time.Time) time.Time {
	for {
		s.mu.Lock()
		r := s.waits.first
		if r != nil && r.wait.due.After(now) {
			due := r.wait.due
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
