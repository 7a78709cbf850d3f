package retry

import (
	"math"
	"math/rand/v2"
	"time"
)

// schedule is the formula of a policy.
type schedule interface {
	delays
	// text returns what Parse reads.
	text() string
}

// delays answers one loop. Several goroutines may ask at once.
type delays interface {
	// next returns the delay before the next attempt by the formula, and the
	// longest delay that the formula allows. Both are 0 or more.
	next(retries int, elapsed time.Duration) (own, bound time.Duration, ok bool)
}

// starter is a schedule that needs state in each loop.
type starter interface{ begin() delays }

// begin returns s, which may be nil, for one loop.
func begin(s schedule) delays {
	if s, ok := s.(starter); ok {
		return s.begin()
	}
	return s
}

const (
	// maxExponent is what 2 is raised to at most.
	maxExponent = 29
	// minInterval separates attempts where nothing else bounds their number.
	minInterval = time.Millisecond
	unbounded   = time.Duration(math.MaxInt64)
)

// ExponentialBackoff waits base times a random number below 2^(retry+1), where
// retry is 0 before the first retry, and at least base.
//
// A base below 0 counts as 0, and so does maxRetries.
//
// Source: Curator ExponentialBackoffRetry.
// Differs: Curator lowers maxRetries to 29. Here more retries are made, and
// only the exponent stops growing at 29. A product that overflows is the
// longest time.Duration.
func ExponentialBackoff(base time.Duration, maxRetries int) Policy {
	return Policy{schedule: exponential{base: max(0, base), max: unbounded, retries: max(0, maxRetries)}}
}

// BoundedExponentialBackoff is ExponentialBackoff with no wait above maxSleep,
// unless a classifier asks for more with AgainAfter, which WithMaxAfter bounds. A
// maxSleep of 0 or less is no bound.
//
// Source: Curator BoundedExponentialBackoffRetry, and ExponentialBackoffRetry
// with its third argument.
func BoundedExponentialBackoff(base, maxSleep time.Duration, maxRetries int) Policy {
	if maxSleep <= 0 {
		maxSleep = unbounded
	}
	return Policy{schedule: exponential{base: max(0, base), max: maxSleep, retries: max(0, maxRetries)}}
}

type exponential struct {
	base, max time.Duration
	retries   int
}

func (s exponential) next(retries int, _ time.Duration) (own, bound time.Duration, ok bool) {
	if retries >= s.retries {
		return 0, 0, false
	}
	n := int64(1) << min(retries+1, maxExponent)
	return s.times(max(1, rand.Int64N(n))), s.times(n - 1), true
}

func (s exponential) times(n int64) time.Duration {
	if s.base > s.max/time.Duration(n) {
		return s.max
	}
	return s.base * time.Duration(n)
}

// NTimes retries n times, sleep apart. Values below 0 count as 0.
//
// Source: Curator RetryNTimes.
func NTimes(n int, sleep time.Duration) Policy {
	return Policy{schedule: nTimes{retries: max(0, n), sleep: max(0, sleep)}}
}

// OneTime retries once, after sleep. It is NTimes(1, sleep).
//
// Source: Curator RetryOneTime.
func OneTime(sleep time.Duration) Policy { return NTimes(1, sleep) }

type nTimes struct {
	retries int
	sleep   time.Duration
}

func (s nTimes) next(retries int, _ time.Duration) (own, bound time.Duration, ok bool) {
	return s.sleep, s.sleep, retries < s.retries
}

// Forever retries every interval until the context ends. An interval below one
// millisecond is raised to it, so that a missing setting does not become a busy
// loop.
//
// Source: Curator RetryForever, which refuses an interval of 0.
func Forever(interval time.Duration) Policy {
	return Policy{schedule: forever{interval: raised(interval)}}
}

// raised keeps what Validate refuses as it is.
func raised(interval time.Duration) time.Duration {
	if interval > 0 && interval < shortest {
		return interval
	}
	return max(minInterval, interval)
}

type forever struct{ interval time.Duration }

func (s forever) next(int, time.Duration) (own, bound time.Duration, ok bool) {
	return s.interval, s.interval, true
}

// UntilElapsed retries, sleep apart, while less than limit has passed since the
// first attempt began. So the last attempt may begin up to sleep after the
// limit. WithMaxElapsed is stricter. A limit of 0 or less never retries; a
// sleep below one millisecond is raised to it.
//
// Source: Curator RetryUntilElapsed.
// Differs: Curator sleeps once more before it gives up.
func UntilElapsed(limit, sleep time.Duration) Policy {
	return Policy{schedule: untilElapsed{limit: max(0, limit), sleep: raised(sleep)}}
}

type untilElapsed struct{ limit, sleep time.Duration }

func (s untilElapsed) next(_ int, elapsed time.Duration) (own, bound time.Duration, ok bool) {
	return s.sleep, s.sleep, elapsed < s.limit
}

// None never retries. Unlike the zero Policy it also overrides a default, and
// forbids retries to loops below it (see Detach).
func None() Policy { return Policy{schedule: never{}} }

type never struct{}

func (s never) next(int, time.Duration) (own, bound time.Duration, ok bool) { return 0, 0, false }

// Custom makes a policy of next. Do passes to next how many retries it has made
// so far, 0 after the first attempt, and the time since the first attempt
// began.
//
// next may be called by several goroutines at once and must not block. A delay
// below 0 counts as 0. name is the policy's name and also its text form, which
// Parse does not read. So choose a name that Parse does not take for another
// policy. Custom panics if next is nil.
func Custom(name string, next func(retries int, elapsed time.Duration) (delay time.Duration, ok bool)) Policy {
	if next == nil {
		panic("retry: Custom without a function")
	}
	return Policy{name: name, schedule: custom{name: name, fn: next}}
}

type custom struct {
	name string
	fn   func(int, time.Duration) (time.Duration, bool)
}

func (s custom) next(retries int, elapsed time.Duration) (own, bound time.Duration, ok bool) {
	delay, ok := s.fn(retries, elapsed)
	delay = max(0, delay)
	return delay, delay, ok
}
