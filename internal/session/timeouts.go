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
	for after != nil && due.Before(after.patience.due) { // none where limits are the same
		after = after.patience.prev
	}
	r.patience = timeouts{due: due, prev: after, waiting: true}
	if after == nil {
		r.patience.next, p.first = p.first, r
	} else {
		r.patience.next, after.patience.next = after.patience.next, r
	}
	if r.patience.next == nil {
		p.last = r
	} else {
		r.patience.next.patience.prev = r
	}
}

func (p *timeoutLists) remove(r *Removal) {
	at := r.patience
	if !at.waiting {
		return
	}
	if at.prev == nil {
		p.first = at.next
	} else {
		at.prev.patience.next = at.next
	}
	if at.next == nil {
		p.last = at.prev
	} else {
		at.next.patience.prev = at.prev
	}
	r.patience = timeouts{}
}

// expect sees to it that a removal is answered within the limit.
func (s *Session) expect(r *Removal, limit time.Duration) {
	if limit <= 0 {
		r.tell(ErrLate)
		return
	}
	due := s.clock.Now().Add(limit)
	s.mu.Lock()
	s.patiences.add(r, due)
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
	s.patiences.remove(r)
}

// endWaits answers the removals whose limit has passed, and returns when the
// next one will, the zero time for never.
func (s *Session) endWaits(now time.Time) time.Time {
	for {
		s.mu.Lock()
		r := s.patiences.first
		if r != nil && r.patience.due.After(now) {
			due := r.patience.due
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
