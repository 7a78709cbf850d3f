// Package deadline keeps the limits of waits. One goroutine ends the waits that are due.
// If each wait had a timer, each would wake up a sleeping thread, since most are due
// before all other timers of a process. That costs a good part of a round trip.
package deadline

import (
	"sync"
	"time"
)

// Waiter waits for something, up to a limit.
type Waiter interface {
	// GiveUp ends the wait. It is called once at most for each limit. It must not block.
	GiveUp()
}

// Entry is a waiter's place in a List, which guards it.
type Entry struct {
	waiter     Waiter // nil while it is in none
	due        time.Time
	prev, next *Entry
}

// List is a list of waits, the first due first. No other mutex is taken while its own is
// held.
type List struct {
	now  func() time.Time
	wake func(due time.Time)

	mu          sync.Mutex // guards the fields below, and the entries
	first, last *Entry
}

// New is a list by a clock. It wakes the goroutine that calls Expire when a limit was added.
func New(now func() time.Time, wake func(due time.Time)) *List { return &List{now: now, wake: wake} }

// Add tells a waiter when so long has passed, unless its entry is removed before.
func (l *List) Add(e *Entry, w Waiter, limit time.Duration) {
	due := l.now().Add(limit)
	l.mu.Lock()
	l.addLocked(e, w, due)
	l.mu.Unlock()
	l.wake(due)
}

func (l *List) addLocked(e *Entry, w Waiter, due time.Time) {
	after := l.last
	for after != nil && due.Before(after.due) { // none where limits are the same
		after = after.prev
	}
	*e = Entry{waiter: w, due: due, prev: after}
	if after == nil {
		e.next, l.first = l.first, e
	} else {
		e.next, after.next = after.next, e
	}
	if e.next == nil {
		l.last = e
	} else {
		e.next.prev = e
	}
}

// Remove takes an entry out, if it is in the list.
func (l *List) Remove(e *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeLocked(e)
}

func (l *List) removeLocked(e *Entry) {
	at := *e
	if at.waiter == nil {
		return
	}
	if at.prev == nil {
		l.first = at.next
	} else {
		at.prev.next = at.next
	}
	if at.next == nil {
		l.last = at.prev
	} else {
		at.next.prev = at.prev
	}
	*e = Entry{}
}

// Expire tells the waiters whose limit has passed, and returns when the next one
// will, the zero time for never.
func (l *List) Expire(now time.Time) time.Time {
	for {
		w, next := l.takeDue(now)
		if w == nil {
			return next
		}
		w.GiveUp()
	}
}

// takeDue takes out a waiter whose limit has passed. If there is none it returns when
// the next limit will pass.
func (l *List) takeDue(now time.Time) (w Waiter, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := l.first; {
	case e == nil:
		return nil, time.Time{}
	case e.due.After(now):
		return nil, e.due
	default:
		w = e.waiter
		l.removeLocked(e)
		return w, time.Time{}
	}
}
