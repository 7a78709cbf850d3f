package workload

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// Way is how an actor takes locks.
type Way int

// The ways to take locks.
const (
	Nested    Way = iota // one after another; the last is given back first
	Multi                // all in one step
	Ordered              // all in one step, by an Ordered MultiLock
	Reentry              // one lock, and the same again under its hold
	Downgrade            // each under the hold before, which is given back then
)

// Held is a lock that an actor has. A *locks.Hold is one.
type Held interface {
	Context() context.Context // for what is taken under it
	Release() error
}

// Step takes one lock.
type Step struct {
	Lock  locks.Lock
	Wait  time.Duration // so long at most; negative for ever
	Under Held          // what the step before has taken; nil in the first step
}

const forever time.Duration = -1

// Take takes the lock.
func (s Step) Take(ctx context.Context) (*locks.Hold, error) {
	if s.Wait < 0 {
		return s.Lock.Acquire(ctx)
	}
	return s.Lock.TryAcquire(ctx, s.Wait)
}

// How is what a test decides. Only Inside is needed.
type How struct {
	// Take does a step. nil is Step.Take alone.
	Take func(ctx context.Context, s Step) (Held, error)

	// Inside runs while the actor has all its locks, with the last one taken. In a downgrade
	// it runs after each step.
	Inside func(last Held) error

	// Wait is for how long a step waits at most, negative for ever. nil waits for ever, and
	// so does the inner step of a re-entry.
	Wait func(step int) time.Duration

	// Chained has a nested step take its lock with the context of the hold before, as a
	// re-entry and a downgrade always do.
	Chained bool

	// OuterFirst is whether a re-entry gives back the outer hold first. nil does not.
	OuterFirst func() bool
}

// Once takes locks in a way, runs Inside, and gives the locks back. It reports whether it
// had all of them: that a step has waited for long enough is no error.
func (h How) Once(ctx context.Context, way Way, all ...locks.Lock) (had bool, err error) {
	switch way {
	case Multi:
		all = []locks.Lock{locks.NewInterProcessMultiLock(all...)}
	case Ordered:
		all = []locks.Lock{locks.NewInterProcessMultiLock(all...).Ordered()}
	case Reentry:
		return h.reenter(ctx, all[0])
	case Downgrade:
		return h.downgrade(ctx, all)
	}
	return h.nest(ctx, all)
}

func (h How) nest(ctx context.Context, all []locks.Lock) (had bool, err error) {
	var holds []Held
	defer func() {
		for _, held := range slices.Backward(holds) {
			err = errors.Join(err, held.Release())
		}
	}()
	var last Held
	for i, lock := range all {
		next, err := h.step(ctx, i, lock, last)
		if next == nil {
			return false, err
		}
		if holds, last = append(holds, next), next; h.Chained {
			ctx = next.Context()
		}
	}
	return true, h.Inside(last)
}

func (h How) reenter(ctx context.Context, lock locks.Lock) (had bool, err error) {
	outer, err := h.step(ctx, 0, lock, nil)
	if outer == nil {
		return false, err
	}
	inner, err := h.take(outer.Context(), Step{Lock: lock, Wait: forever, Under: outer})
	if inner == nil {
		return false, errors.Join(err, outer.Release())
	}
	err = h.Inside(inner)
	if h.OuterFirst != nil && h.OuterFirst() {
		outer, inner = inner, outer
	}
	return true, errors.Join(err, inner.Release(), outer.Release())
}

func (h How) downgrade(ctx context.Context, all []locks.Lock) (had bool, err error) {
	var last Held
	for i, lock := range all {
		next, err := h.step(ctx, i, lock, last)
		if last != nil {
			err = errors.Join(err, last.Release())
		}
		if next == nil {
			return false, err
		}
		if err = errors.Join(err, h.Inside(next)); err != nil {
			return false, errors.Join(err, next.Release())
		}
		last, ctx = next, next.Context()
	}
	return true, last.Release()
}

// step does the i-th step. It returns nil if that did not get the lock, and no error if it
// has waited for long enough.
func (h How) step(ctx context.Context, i int, lock locks.Lock, under Held) (Held, error) {
	s := Step{Lock: lock, Wait: forever, Under: under}
	if h.Wait != nil {
		s.Wait = h.Wait(i)
	}
	held, err := h.take(ctx, s)
	if s.Wait >= 0 && (errors.Is(err, locks.ErrNotAcquired) || errors.Is(err, framework.ErrNotConnected)) {
		return nil, nil // a busy server need not have answered by then
	}
	return held, err
}

func (h How) take(ctx context.Context, s Step) (Held, error) {
	take := h.Take
	if take == nil {
		take = func(ctx context.Context, s Step) (Held, error) { return s.Take(ctx) }
	}
	held, err := take(ctx, s)
	if err != nil {
		return nil, err // and not a nil pointer, which would be something held
	}
	return held, nil
}
