package retry

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Policy says how often, how long apart, and after which failures to try
// again.
//
// It is an immutable value without per-call state: keep one per dependency in
// a package variable and share it between goroutines. Each method returns a
// changed copy. The zero value makes one attempt.
type Policy struct {
	schedule       schedule // nil until one was chosen
	jitter         Jitter
	maxElapsed     time.Duration // 0 is no bound
	attemptTimeout time.Duration // 0 is no bound
	maxAfter       time.Duration // 0 is defaultMaxAfter

	name     string
	classify Classifier
	results  func(any) Decision // nil accepts every result
	budget   *Budget
	onRetry  []hook
	onDone   []hook
}

// Next is the schedule alone: the delay before the next attempt, and whether
// to make it.
//
// retries is how many retries were made so far, 0 after the first attempt.
// elapsed is the time since the first attempt began. Next applies the jitter
// and WithMaxElapsed. Two calls with the same arguments may return different
// delays.
func (p Policy) Next(retries int, elapsed time.Duration) (delay time.Duration, ok bool) {
	delay, reason := p.next(p.schedule, max(0, retries), elapsed, 0)
	return delay, reason == nil
}

// next asks s, which is the policy's schedule in one loop or nil, and raises
// the delay to atLeast, as far as that is allowed. The reason is why there is no further attempt.
func (p *Policy) next(s delays, retries int, elapsed, atLeast time.Duration) (delay time.Duration, reason error) {
	if s == nil {
		return 0, ErrExhausted
	}
	own, bound, ok := s.next(retries, elapsed)
	if !ok {
		return 0, usedUp(s)
	}
	most := p.maxAfter
	if most == 0 {
		most = defaultMaxAfter
	}
	delay = max(p.jitter.spread(own, bound), min(atLeast, most))
	if reason = p.tooLate(elapsed, delay); reason != nil {
		return 0, reason
	}
	return delay, nil
}

// tooLate is why an attempt may not be made after a delay, nil if it may. It
// subtracts where adding could overflow.
func (p *Policy) tooLate(elapsed, delay time.Duration) error {
	if p.maxElapsed > 0 && delay > p.maxElapsed-elapsed {
		return timeError(fmt.Sprintf("limit %v, next attempt due in %v", p.maxElapsed, delay))
	}
	return nil
}

// shortest is the least duration above 0 that a policy takes. What is shorter was meant
// to have a unit, and makes attempts that end before they begin.
const shortest = 100 * time.Microsecond

// Validate returns an error that names the first duration of p between 0 and 100µs, or
// nil. Such a one is a number without a unit, which counts nanoseconds:
// ExponentialBackoff(1000, 3) or WithAttemptTimeout(5). Do returns the error as Reason
// and makes no attempt.
func (p Policy) Validate() error {
	type setting struct {
		name  string
		value time.Duration
	}
	all := [...]setting{2: {"WithMaxElapsed", p.maxElapsed}, {"WithAttemptTimeout", p.attemptTimeout}, {"WithMaxAfter", p.maxAfter}}
	switch s := p.schedule.(type) {
	case exponential:
		all[0], all[1] = setting{"the base", s.base}, setting{"maxSleep", s.max}
	case nTimes:
		all[0] = setting{"the sleep", s.sleep}
	case forever:
		all[0] = setting{"the interval", s.interval}
	case untilElapsed:
		all[0], all[1] = setting{"the limit", s.limit}, setting{"the sleep", s.sleep}
	}
	for _, d := range all {
		if err := tooShort(d.name, d.value); err != nil {
			return err
		}
	}
	return nil
}

// tooShort is an error for a duration between 0 and shortest.
func tooShort(name string, d time.Duration) error {
	if d <= 0 || d >= shortest {
		return nil
	}
	return fmt.Errorf("%s is %v: it must be %v at least (a number alone counts nanoseconds: write %d*time.Second or %d*time.Millisecond)",
		name, d, shortest, d, d)
}

// IsZero reports whether p is the zero Policy, on which nothing was set. A library
// may replace such a policy by a default. None is not the zero Policy.
func (p Policy) IsZero() bool {
	return p.schedule == nil && p.jitter == CuratorJitter && p.maxElapsed == 0 && p.attemptTimeout == 0 && p.maxAfter == 0 &&
		p.name == "" && p.classify == nil && p.results == nil && p.budget == nil && p.onRetry == nil && p.onDone == nil
}

// Named puts a name into errors and hooks. The default is no name, except for
// Custom.
func (p Policy) Named(name string) Policy {
	p.name = name
	return p
}

// WithJitter replaces the schedule's randomness. A value that is none of the
// Jitter constants counts as CuratorJitter.
func (p Policy) WithJitter(j Jitter) Policy {
	if j < CuratorJitter || j > EqualJitter {
		j = CuratorJitter
	}
	p.jitter = j
	return p
}

// WithMaxElapsed gives up rather than begin a delay that ends later than d
// after the first attempt began. It does not cut an attempt short; see
// WithAttemptTimeout and the context for that. A d of 0 or less removes the
// bound.
func (p Policy) WithMaxElapsed(d time.Duration) Policy {
	p.maxElapsed = max(0, d)
	return p
}

// WithAttemptTimeout bounds each attempt: its context ends after d. A failure
// returned after that counts as Unsure, whatever it is, unless it carries a
// Mark. A d of 0 or less removes the bound.
func (p Policy) WithAttemptTimeout(d time.Duration) Policy {
	p.attemptTimeout = max(0, d)
	return p
}

// defaultMaxAfter is as long as the limits of public services ask clients to wait.
const defaultMaxAfter = time.Hour

// WithMaxAfter bounds the delay that the other side may ask for, see AgainAfter: of a
// longer one d is waited. The policy's own delay may be longer. A d of 0 or less, the
// default, is one hour.
func (p Policy) WithMaxAfter(d time.Duration) Policy {
	p.maxAfter = max(0, d)
	return p
}

// WithClassifier asks c before the classifiers already there. A nil c changes
// nothing.
func (p Policy) WithClassifier(c Classifier) Policy {
	p.classify = inOrder(c, p.classify)
	return p
}

// WithFallback asks c after the classifiers already there. It is for a
// package that runs its callers' policies and knows its own errors. A nil c
// changes nothing.
func (p Policy) WithFallback(c Classifier) Policy {
	p.classify = inOrder(p.classify, c)
	return p
}

// WithBudget takes each retry from b, which other policies may share. Each call of
// Do that gets an answer gives a part of a retry back to b, see Budget. A nil b
// removes the budget.
func (p Policy) WithBudget(b *Budget) Policy {
	p.budget = b
	return p
}

// OnRetry adds a hook, called before each delay in the goroutine of Do and
// with the context given to Do. Hooks run in the order they were added. A nil
// fn changes nothing.
func (p Policy) OnRetry(fn func(ctx context.Context, a Attempt)) Policy {
	p.onRetry = addHook(p.onRetry, fn)
	return p
}

// OnDone adds a hook, called once per Do, in its goroutine and with the
// context given to it, just before Do returns.
//
// Attempt.Err is nil after success and else the *Error that Do returns;
// Attempt.Number counts the attempts made and may be 0. The hook is also called
// if op panics or calls runtime.Goexit, with an *Error that says so. It is not
// called for a nil context or a nil op. A nil fn changes nothing.
func (p Policy) OnDone(fn func(ctx context.Context, a Attempt)) Policy {
	p.onDone = addHook(p.onDone, fn)
	return p
}

// addHook never writes to the array of hooks, which other copies of the policy
// share.
func addHook(hooks []hook, fn hook) []hook {
	if fn == nil {
		return hooks
	}
	return append(slices.Clip(hooks), fn)
}
