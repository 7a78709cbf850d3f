package retry

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Detach lets loops below ctx count for themselves.
//
// Without it, a Do under another Do's context charges its retries to the outer
// loop as well: to its number of retries, its elapsed time and its budget. If
// the outer loop has no retry left, the inner one gives up with ErrNoBudget. So
// the retries of nested loops add up and do not multiply: below a policy of
// five retries there are five in all. Two outer policies are special. The zero
// Policy is ignored, and below None nothing is retried. A loop that has
// returned is ignored, too.
//
// Use Detach for long work that begins inside a loop. Otherwise the work would
// use up the loop's retries in the course of time. A nil ctx stays nil.
//
// Source: Curator ThreadLocalRetryLoop (CURATOR-559).
// Differs: In Curator the thread ties nested loops together, and inner policies
// are not asked. Here the context ties them, and both policies must allow a
// retry.
func Detach(ctx context.Context) context.Context {
	if ctx == nil || loopAround(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, loopKey{}, (*loop)(nil))
}

type loopKey struct{}

// Value makes l the loop around everything that is given a context below l.
func (l *loop) Value(key any) any {
	if key == (loopKey{}) {
		return l
	}
	return l.Context.Value(key)
}

func loopAround(ctx context.Context) *loop {
	l, _ := ctx.Value(loopKey{}).(*loop)
	return l
}

// bill is what one retry was charged to.
type bill struct {
	loops   []*loop
	budgets []*Budget
	empty   *Budget // the one that had nothing left
}

// charge books one retry, to be made after delay, on l and on every loop
// around it: on all of them or on none.
func (l *loop) charge(delay time.Duration) (bill, error) {
	l.retries.Add(1) // weigh has asked the schedule
	b := bill{loops: []*loop{l}}
	reason := b.spend(l.policy.budget)
	if reason == nil {
		reason = b.chargeFrom(l.outer, delay)
	}
	if reason != nil {
		b.cancel(l.Context, Attempt{Policy: l.policy.name, Number: l.attempts, Err: l.last, Elapsed: time.Since(l.start)})
	}
	return b, reason
}

// chargeBeside books a call of a hedged op, which is made at once. It may be called
// in any goroutine.
func (l *loop) chargeBeside() (bill, error) {
	var b bill
	reason := b.chargeFrom(l, 0)
	if reason == nil {
		reason = b.spend(l.policy.budget) // once, also if l has no schedule
	}
	if reason != nil {
		b.cancel(l.Context, Attempt{Policy: l.policy.name, Elapsed: time.Since(l.start)})
	}
	return b, reason
}

// chargeFrom books a retry on l, which may be nil, and on every loop around it.
func (b *bill) chargeFrom(l *loop, delay time.Duration) error {
	for ; l != nil; l = l.outer {
		if l.schedule == nil || l.over.Load() {
			continue
		}
		why := l.allow(delay)
		if why == nil {
			b.loops = append(b.loops, l)
			why = b.spend(l.policy.budget)
		}
		if why != nil {
			return fmt.Errorf("%w (that of the loop around: %v)", ErrNoBudget, why) //nolint:errorlint // this loop's attempts are not used up
		}
	}
	return nil
}

// cancel is for a retry that somebody does not pay for. It tells a budget's hooks.
func (b *bill) cancel(ctx context.Context, a Attempt) {
	b.refund()
	if b.empty != nil && b.empty.told.CompareAndSwap(false, true) {
		for _, fn := range b.empty.onEmpty {
			fn(ctx, a)
		}
	}
}

// allow counts a retry of a loop inside op, or is why it may not be made. Several may
// ask at once, so what the schedule said holds only if nobody else was counted meanwhile.
func (l *loop) allow(delay time.Duration) error {
	for {
		retries, elapsed := l.retries.Load(), time.Since(l.start)
		if _, _, ok := l.schedule.next(int(retries), elapsed); !ok {
			return usedUp(l.schedule)
		}
		if why := l.policy.tooLate(elapsed, delay); why != nil {
			return why
		}
		if l.retries.CompareAndSwap(retries, retries+1) {
			return nil
		}
	}
}

// spend charges each budget once, however many of the loops share it.
func (b *bill) spend(budget *Budget) error {
	if budget == nil || slices.Contains(b.budgets, budget) {
		return nil
	}
	if !budget.spend() {
		b.empty = budget
		return ErrNoBudget
	}
	b.budgets = append(b.budgets, budget)
	return nil
}

// refund is for a retry that will not be made.
func (b *bill) refund() {
	for _, l := range b.loops {
		l.retries.Add(-1)
	}
	for _, budget := range b.budgets {
		budget.add(part)
	}
}
