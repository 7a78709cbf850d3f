package memnet

import (
	"sync"
	"time"
)

// deadline is a point in time that can be moved while goroutines wait for it.
type deadline struct {
	mu    sync.Mutex // guards the fields below; held for a moment only
	at    time.Time
	timer *time.Timer
	done  chan struct{} // closed once at has passed
}

func newDeadline() *deadline { return &deadline{done: make(chan struct{})} }

// passed returns a channel that is closed when the deadline has passed. It
// follows the deadline as long as that is moved before it passes.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// set moves the deadline; the zero time is never.
func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = at
	select {
	case <-d.done:
		d.done = make(chan struct{})
	default:
	}
	if at.IsZero() {
		if d.timer != nil {
			d.timer.Stop()
		}
		return
	}
	wait := time.Until(at)
	switch {
	case wait <= 0:
		close(d.done)
	case d.timer == nil:
		d.timer = time.AfterFunc(wait, d.fire)
	default:
		d.timer.Reset(wait)
	}
}

func (d *deadline) fire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.IsZero() || time.Until(d.at) > 0 {
		return // moved meanwhile
	}
	select {
	case <-d.done:
	default:
		close(d.done)
	}
}

func (d *deadline) stop() { d.set(time.Time{}) }
