package framework

import (
	"sync"
	"time"

	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/retry"
)

// CircuitBreaker passes connection states on and hides a series of short
// outages. Use it where SUSPENDED triggers expensive work.
//
// Closed, it passes every state. The first state without a connection is passed
// and opens it, if the policy has a delay. Open, it passes nothing but one LOST
// after a SUSPENDED. At the end of each delay it closes if the client is
// connected, and otherwise asks the policy for another delay. It also closes
// when the policy has none. When it closes, it passes the present state, unless
// that is the last state that it passed.
//
// Holds of locks do not depend on a breaker: they hear of each state at once.
//
// Source: Curator's CircuitBreakingConnectionStateListener. Differs: after the
// policy has given up, it compares the present state with the last one that it
// passed. Curator compares with the state that opened the breaker, and so may pass
// LOST twice.
type CircuitBreaker struct {
	source *listeners.Subscription[listeners.State]
	policy retry.Policy
	out    listeners.Hub[listeners.State]
	stop   chan struct{}
	once   sync.Once
	done   chan struct{}
}

// NewCircuitBreaker makes a breaker for the states of a source, such as
// Client.States. The breaker ends with its own Close, or when the source ends. The
// source of a client ends with the client's Close. The delays of policy count from
// the time at which the breaker opens. The zero Policy and retry.None never open
// it.
func NewCircuitBreaker(states listeners.Source[listeners.State], policy retry.Policy) *CircuitBreaker {
	b := &CircuitBreaker{source: states.Subscribe(), policy: policy, stop: make(chan struct{}), done: make(chan struct{})}
	b.out.ReplayLast = true
	go b.run()
	return b
}

// States delivers what the breaker passes, beginning with the last one.
func (b *CircuitBreaker) States() listeners.Source[listeners.State] { return &b.out }

// Close ends the breaker and its States, and waits for its goroutine. It may be
// called more than once. A breaker made without NewCircuitBreaker has only States.
func (b *CircuitBreaker) Close() {
	if b.stop == nil {
		b.out.Close()
		return
	}
	b.once.Do(func() { close(b.stop) })
	<-b.done
}

// circuit is what the breaker's goroutine knows.
type circuit struct {
	open    bool
	opened  time.Time
	retries int
	passed  listeners.State // the last one
	latest  listeners.State
}

func (b *CircuitBreaker) run() {
	defer close(b.done)
	defer b.out.Close()
	defer b.source.Stop()
	var c circuit
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case state, ok := <-b.source.C:
			if !ok {
				b.pass(&c, c.latest)
				return
			}
			if c.latest = state; c.open {
				if state == listeners.Lost && c.passed == listeners.Suspended {
					b.pass(&c, state)
				}
				continue
			}
			b.pass(&c, state)
			if !state.IsConnected() {
				c.open, c.opened, c.retries = b.again(timer, 0, 0), time.Now(), 0
			}
		case <-timer.C:
			c.retries++
			if c.latest.IsConnected() || !b.again(timer, c.retries, time.Since(c.opened)) {
				c.open = false
				b.pass(&c, c.latest)
			}
		case <-b.stop:
			return
		}
	}
}

// again begins the next delay, if the policy has one.
func (b *CircuitBreaker) again(timer *time.Timer, retries int, elapsed time.Duration) bool {
	delay, ok := b.policy.Next(retries, elapsed)
	if ok {
		timer.Reset(max(delay, time.Nanosecond)) // never due at once, see docs/testing.md
	}
	return ok
}

func (b *CircuitBreaker) pass(c *circuit, state listeners.State) {
	if state != c.passed {
		c.passed = state
		b.out.Publish(state)
	}
}
