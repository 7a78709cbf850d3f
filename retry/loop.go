package retry

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/contextend"
)

// loop is one call of Do. It is the parent of each attempt's context, so loops
// inside op find it there.
//
// Those loops also use retries and over, and read the fields above them. So do
// hedged calls. The fields below belong to the goroutine of Do.
type loop struct {
	context.Context // the caller's
	policy          Policy
	schedule        delays // the policy's, for this loop; nil if there is none
	start           time.Time
	outer           *loop // the nearest loop around this one; may be over
	idempotent      bool
	retries         atomic.Int64
	over            atomic.Bool

	attempts int
	last     error    // the latest failure
	verdict  Decision // on last
}

func newLoop(ctx context.Context, p Policy, opts []Option) *loop {
	l := &loop{Context: ctx, policy: p, schedule: begin(p.schedule), start: time.Now(), outer: loopAround(ctx)}
	for _, o := range opts {
		if o != nil {
			o.apply(l)
		}
	}
	return l
}

// run closes the loop also when op panics. Loops below may not go on charging
// it, and hooks that count must not miss a call.
func (l *loop) run(op func(context.Context) error) (err error) {
	returned := false
	defer func() {
		l.over.Store(true)
		if !returned {
			err = l.fail(errNoReturn)
		}
		l.tell(l.policy.onDone, err, 0)
	}()
	reason := l.repeat(op)
	returned = true
	if b := l.policy.budget; b != nil && (reason == nil || errors.Is(reason, ErrStopped)) { // somebody has answered
		b.add(b.refill)
	}
	if reason != nil {
		return l.fail(reason)
	}
	return nil
}

// repeat returns nil after success, or why there is no further attempt.
func (l *loop) repeat(op func(context.Context) error) error {
	for {
		if reason := l.ended(); reason != nil {
			return reason
		}
		timedOut, err := l.attempt(op)
		if err == nil {
			return nil
		}
		delay, reason := l.weigh(err, timedOut)
		if reason == nil {
			reason = l.pause(delay)
		}
		if reason != nil {
			return reason
		}
	}
}

// ended is the end of the caller's context, nil while it goes on.
func (l *loop) ended() error { return contextend.Of(l.Context) }

// attempt calls op once.
func (l *loop) attempt(op func(context.Context) error) (timedOut bool, err error) {
	ctx, cancel := l.attemptContext()
	defer cancel()
	l.attempts++
	err = op(ctx)
	return errors.Is(context.Cause(ctx), errAttemptTimeout), err
}

func (l *loop) attemptContext() (context.Context, context.CancelFunc) {
	if d := l.policy.attemptTimeout; d > 0 {
		return context.WithTimeoutCause(l, d, errAttemptTimeout)
	}
	return context.WithCancel(l)
}

// weigh decides what follows a failure: a delay, or the reason to stop.
func (l *loop) weigh(err error, timedOut bool) (delay time.Duration, reason error) {
	l.last = err
	if reason := l.ended(); reason != nil {
		l.verdict = judge(err, true, nil) // cut short, like an attempt that timed out
		return 0, reason
	}
	l.verdict = judge(err, timedOut, l.policy.classify)
	switch {
	case l.verdict.kind == kindStop:
		return 0, ErrStopped
	case l.verdict.kind == kindUnsure && !l.idempotent:
		return 0, ErrUnsure
	}
	return l.policy.next(l.schedule, int(l.retries.Load()), time.Since(l.start), l.verdict.after)
}

// pause charges for a retry, tells the hooks and waits. If ctx ends meanwhile
// it returns nil, since the caller checks ctx next.
func (l *loop) pause(delay time.Duration) (reason error) {
	if deadline, ok := l.Deadline(); ok && delay >= time.Until(deadline) {
		return fmt.Errorf("context would end before the next attempt, due in %v: %w", delay, context.DeadlineExceeded)
	}
	bill, reason := l.charge(delay)
	if reason != nil {
		return reason
	}
	due := false
	defer func() {
		if !due { // also if a hook panicked
			bill.refund()
		}
	}()
	l.tell(l.policy.onRetry, l.last, delay)
	due = sleep(l.Context, delay)
	return nil
}

// sleep reports whether ctx has lasted for d.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// tell calls hooks with the caller's context, so that a Do in a hook is not
// part of this loop.
func (l *loop) tell(hooks []hook, err error, delay time.Duration) {
	if len(hooks) == 0 {
		return
	}
	a := Attempt{Policy: l.policy.name, Number: l.attempts, Err: err, Delay: delay, Elapsed: time.Since(l.start)}
	for _, fn := range hooks {
		fn(l.Context, a)
	}
}

func (l *loop) fail(reason error) error {
	return &Error{
		Policy:   l.policy.name,
		Attempts: l.attempts,
		Elapsed:  time.Since(l.start),
		Reason:   reason,
		Last:     l.last,
		verdict:  l.verdict,
	}
}
