package leader

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

const (
	// standAgain is how long Terms waits after a term that was lost before it could begin.
	standAgain = time.Second
	// termsApart is how long after the beginning of a term Terms stands again at the
	// earliest.
	termsApart = 100 * time.Millisecond
)

// Terms stands again and again, and yields each term in which this candidate leads. The
// term lasts as long as the body of the loop, and is released when that ends in any way.
// The body has to return soon after Term.Context has ended. To leave the loop is to
// leave the election.
//
// After a term that was shorter than 100 ms, the candidate stands again 100 ms after the
// term began. Other candidates lead meanwhile.
//
// The last pair has an error and no term. The error is one of Await, except for
// locks.ErrLockLost: the candidate then stands again.
func (e *election) Terms(ctx context.Context) iter.Seq2[*Term, error] {
	return func(yield func(*Term, error) bool) {
		if err := e.usable(ctx, "await leadership"); err != nil {
			yield(nil, err)
			return
		}
		h := &health{check: e.opts.check, every: e.opts.checkEvery}
		defer h.checks.Wait()
		for {
			term, err := e.next(ctx, h)
			if err != nil {
				yield(nil, err)
				return
			}
			began := time.Now()
			if !e.serve(term, h, yield) { //nolint:contextcheck // the term's context is ctx's child
				return
			}
			if err := wait(ctx, max(term.pausing(), termsApart-time.Since(began))); err != nil {
				yield(nil, e.failed("await leadership", err))
				return
			}
		}
	}
}

// next stands until this candidate leads and is healthy.
func (e *election) next(ctx context.Context, h *health) (*Term, error) {
	for {
		if err := h.await(ctx); err != nil {
			return nil, e.failed("await leadership", err)
		}
		pause := standAgain
		switch term, err := e.elected(ctx); {
		case err == nil:
			if h.look(term.Context()) == nil { //nolint:contextcheck // the term's context is ctx's child
				e.began(term)
				return term, nil
			}
			_ = term.Release() // before a check that goes on has returned
			pause = h.every
		case !errors.Is(err, locks.ErrLockLost):
			return nil, err
		}
		if err := wait(ctx, pause); err != nil {
			return nil, e.failed("await leadership", err)
		}
	}
}

// serve yields one term, and releases it.
func (e *election) serve(term *Term, h *health, yield func(*Term, error) bool) bool {
	join := h.guard(term)
	defer func() {
		term.end(locks.ErrReleased) // and the health check with it
		join()
		_ = term.Release() // a deletion that is not confirmed goes on in the background
	}()
	return yield(term, nil)
}

// wait returns nil after d, or the end of ctx.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return framework.ContextError(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return framework.ContextError(ctx)
	}
}

// Run stands again and again, and calls lead in each term in which this candidate leads,
// in a goroutine of its own, with the term's context. When lead returns, the term is
// released, and the candidate stands again, at the end. What lead returns decides:
//
//   - nil, or the end of its context: it stands again at once, or 100 ms after the term
//     began if the term was shorter than that.
//   - ErrLeave: Run returns nil.
//   - any other error: Run reports it as a *FunctionError to the listeners of
//     framework.Client.Errors, and the candidate stands again after a pause, see BackOff.
//     If the policy of BackOff gives up, Run returns the *FunctionError.
//
// Run also returns when ctx ends, with an error that matches ctx.Err(), and with the
// other errors of Await, except for locks.ErrLockLost. If lead has failed the last times,
// the text of the error has the last failure. Run never returns before lead and the health
// check have.
// If lead panics, the term is released and Run panics with the same value.
//
// If lead goes on after its context has ended, Run reports an *OverrunError after a
// while, see Grace. It keeps the node until lead has returned or the session is over. If
// it deleted the node, the next leader would begin while this one still works. To end
// such a term, end the process: its session ends then, and another candidate leads.
func (e *election) Run(ctx context.Context, lead func(ctx context.Context, term *Term) error) error {
	if err := e.usable(ctx, "run"); err != nil {
		return err
	}
	if lead == nil {
		return &framework.OpError{Op: "run", Path: e.path, Err: fmt.Errorf("%w: lead is nil", framework.ErrInvalidArgument)}
	}
	var failed failures
	for term, err := range e.Terms(ctx) { //nolint:contextcheck // the term's context is ctx's child
		if err != nil {
			return e.failed("await leadership", failed.in(err))
		}
		err := e.call(term, lead)
		switch {
		case errors.Is(err, ErrLeave):
			return nil
		case err == nil, endedBy(term, err):
			failed = failures{}
			continue
		}
		failure := &FunctionError{Path: e.path, Number: term.Number(), Err: err}
		e.client.Report("leader function failed", failure)
		pause, again := failed.next(&e.opts, failure)
		if !again {
			return failure
		}
		term.GiveWay(pause)
	}
	return nil // not reached: the last pair has an error
}

// endedBy is whether a function returned an error because its context had ended.
func endedBy(term *Term, err error) bool {
	ctx := term.Context()
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// failures are those of a function in terms one after another.
type failures struct {
	count int
	since time.Time
	last  *FunctionError
}

// in adds the failures to the text of the error that ends Run. The error matches what it
// matched before, so that a program can tell it from one that Run was given.
func (f *failures) in(err error) error {
	if f.count == 0 {
		return err
	}
	var told *framework.OpError
	if errors.As(err, &told) {
		err = told.Err
	}
	return fmt.Errorf("%w (after %d failures in a row, the last one: %s)", err, f.count, f.last.Error())
}

func (f *failures) next(o *options, failure *FunctionError) (pause time.Duration, again bool) {
	f.last = failure
	if f.count == 0 {
		f.since = time.Now()
	}
	pause, again = o.backOff.Next(f.count, time.Since(f.since))
	f.count++
	return pause, again
}

// ending is how a function ended.
type ending struct {
	err      error
	panicked bool
	value    any // that it panicked with
}

// call calls lead in a goroutine and waits for it. It reports a function that goes on
// without its context.
func (e *election) call(term *Term, lead func(context.Context, *Term) error) error {
	done := make(chan ending, 1)
	go func() {
		out := ending{err: ErrExited}
		returned := false
		defer func() {
			if value := recover(); value != nil && !returned {
				out = ending{panicked: true, value: value}
			}
			done <- out
		}()
		out.err = lead(term.Context(), term)
		returned = true
	}()
	out := e.await(term, done)
	if out.panicked {
		panic(out.value)
	}
	return out.err
}

func (e *election) await(term *Term, done <-chan ending) ending {
	ctx := term.Context()
	select {
	case out := <-done:
		return out
	case <-ctx.Done():
	}
	grace := time.NewTimer(e.opts.grace)
	defer grace.Stop()
	select {
	case out := <-done:
		return out
	case <-grace.C:
	}
	e.overran(1)
	defer e.overran(-1)
	e.client.Report("leader function still runs", &OverrunError{Path: e.path, Number: term.Number(), Limit: e.opts.grace, Cause: context.Cause(ctx)})
	return <-done
}

func (e *election) overran(by int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.overrun += by
}
