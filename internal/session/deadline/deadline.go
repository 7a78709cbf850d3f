// Package deadline keeps the limits of waits. One goroutine ends the waits that are due.
// If each wait had a timer, each would wake up a sleeping thread, since most are due
// before all other timers of a process. That costs a good part of a round trip.
package deadline

import (
	"sync"
	"time"

	"github.com/paddock-zk/paddock/internal/session/list"
)

// Waiter waits for something, up to a limit.
type Waiter interface {
	// GiveUp ends the wait. It is called once at most for each limit. It must not block.
	GiveUp()
}

// Entry is a waiter's place in a List, which guards it.
type Entry struct {
	waiter Waiter
	due    time.Time
	place  list.Place[Entry]
}

// List is a list of waits, the first due first. No other mutex is taken while its own is
// held.
type List struct {
	now  func() time.Time
	wake func(due time.Time)

	mu    sync.Mutex // guards the fields below, and the entries
	waits list.List[Entry]
}

// New is a list by a clock. It wakes the goroutine that calls Expire when a limit was added.
func New(now func() time.Time, wake func(due time.Time)) *List { return &List{now: now, wake: wake} }

// Add tells a waiter when so long has passed, unless its entry is removed before.
func (l *List) Add(e *Entry, w Waiter, limit time.Duration) {
	due := l.now().Add(limit)
	l.mu.Lock()
	after := l.waits.Last()
	for after != nil && due.Before(after.Of().due) { // none where limits are the same
		after = after.Prev()
	}
	e.waiter, e.due = w, due
	l.waits.Insert(e, &e.place, after)
	l.mu.Unlock()
	l.wake(due)
}

// Remove takes an entry out, if it is in the list.
func (l *List) Remove(e *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.place.Remove()
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
	switch e := l.waits.First(); {
	case e == nil:
		return nil, time.Time{}
	case e.due.After(now):
		return nil, e.due
	default:
		e.place.Remove()
		return e.waiter, time.Time{}
	}
}
