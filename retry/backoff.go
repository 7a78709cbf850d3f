package retry

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// FromBackOff takes a schedule from cenkalti/backoff.
//
// A BackOff has state and serves one loop. So Do calls newPolicy once, calls
// Reset of the result, and uses it in one goroutine at a time. Policy.Next
// calls newPolicy each time, and NextBackOff of the result retries+1 times. A
// nil BackOff never retries. The policy's text form is "backoff", which Parse
// does not read. FromBackOff panics if newPolicy is nil.
//
// Do does not know backoff.Permanent. To stop at it, add a classifier made by
// As for *backoff.PermanentError.
func FromBackOff(newPolicy func() backoff.BackOff) Policy {
	if newPolicy == nil {
		panic("retry: FromBackOff without a function")
	}
	return Policy{schedule: borrowed{make: newPolicy}}
}

type borrowed struct{ make func() backoff.BackOff }

func (s borrowed) begin() delays {
	b := s.make()
	if b == nil {
		return never{}
	}
	b.Reset()
	return &borrowedLoop{source: b}
}

func (s borrowed) next(retries int, elapsed time.Duration) (own, bound time.Duration, ok bool) {
	return s.begin().next(retries, elapsed)
}

func (s borrowed) text() string { return "backoff" }

// borrowedLoop makes a BackOff answer by number of retries, as a schedule
// does: asking twice for the same number does not use up two delays.
type borrowedLoop struct {
	mu     sync.Mutex // held over source, which computes and does not wait
	source backoff.BackOff
	asked  int
	latest time.Duration
}

func (s *borrowedLoop) next(retries int, _ time.Duration) (own, bound time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.asked <= retries && s.latest >= 0 {
		s.latest = s.source.NextBackOff()
		s.asked++
	}
	return max(0, s.latest), max(0, s.latest), s.latest >= 0
}

// ToBackOff returns p's schedule for one loop: delays, jitter and the bound of
// WithMaxElapsed, counted from this call or the latest Reset. It leaves out
// everything else of p. The result is not safe for use by several goroutines at
// once.
func ToBackOff(p Policy) backoff.BackOff {
	b := &lent{policy: p}
	b.Reset()
	return b
}

type lent struct {
	policy   Policy
	schedule delays
	start    time.Time
	retries  int
}

// Reset begins a new loop.
func (b *lent) Reset() {
	b.schedule, b.start, b.retries = begin(b.policy.schedule), time.Now(), 0
}

// NextBackOff returns the next delay or backoff.Stop.
func (b *lent) NextBackOff() time.Duration {
	delay, reason := b.policy.next(b.schedule, b.retries, time.Since(b.start), 0)
	if reason != nil {
		return backoff.Stop
	}
	b.retries++
	return delay
}
