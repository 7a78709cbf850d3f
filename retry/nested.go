package retry

import (
	"context"
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
}

// charge books one retry, to be made after delay, on l and on every loop
// around it: on all of them or on none.
func (l *loop) charge(delay time.Duration) (bill, bool) {
	l.retries.Add(1) // weigh has asked the schedule
	b := bill{loops: []*loop{l}}
	ok := b.spend(l.policy.budget)
	for o := l.outer; ok && o != nil; o = o.outer {
		if o.schedule == nil || o.over.Load() {
			continue
		}
		if ok = o.allow(delay); ok {
			b.loops = append(b.loops, o)
			ok = b.spend(o.policy.budget)
		}
	}
	if !ok {
		b.refund()
	}
	return b, ok
}

// allow counts a retry of a loop inside op. Several may ask at once, so what
// the schedule said holds only if nobody else was counted meanwhile.
func (l *loop) allow(delay time.Duration) bool {
	for {
		retries, elapsed := l.retries.Load(), time.Since(l.start)
		if _, _, ok := l.schedule.next(int(retries), elapsed); !ok || l.policy.tooLate(elapsed, delay) {
			return false
		}
		if l.retries.CompareAndSwap(retries, retries+1) {
			return true
		}
	}
}

// spend charges each budget once, however many of the loops share it.
func (b *bill) spend(budget *Budget) bool {
	if budget == nil || slices.Contains(b.budgets, budget) {
		return true
	}
	if !budget.spend() {
		return false
	}
	b.budgets = append(b.budgets, budget)
	return true
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
