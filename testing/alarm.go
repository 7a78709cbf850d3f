package zktest

import (
	"sync"
	"time"
)

// alarm calls a function later, in a goroutine that can be waited for. Only one
// goroutine at a time may call its methods. The zero value is ready.
type alarm struct {
	timer   *time.Timer
	pending sync.WaitGroup
}

// set replaces what was set before.
func (a *alarm) set(d time.Duration, fn func()) {
	a.stop()
	a.pending.Add(1)
	a.timer = time.AfterFunc(d, func() {
		defer a.pending.Done()
		fn()
	})
}

// stop takes back what was set, unless it is happening already.
func (a *alarm) stop() {
	if a.timer != nil && a.timer.Stop() {
		a.pending.Done()
	}
	a.timer = nil
}

// wait returns when no call is running. Call it after stop, without the lock
// that the function takes.
func (a *alarm) wait() { a.pending.Wait() }
