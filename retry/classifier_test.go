package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/retry"
)

type codeError struct{ code int }

func (e *codeError) Error() string { return fmt.Sprintf("code %d", e.code) }

func always(d retry.Decision) retry.Classifier { return func(error) retry.Decision { return d } }

func TestClassifiers(t *testing.T) {
	byCode := retry.As(func(e *codeError) retry.Decision {
		if e.code == 503 {
			return retry.Unsure
		}
		return retry.Stop
	})
	wrapped := fmt.Errorf("reading: %w", io.EOF)
	cases := []struct {
		name       string
		classifier retry.Classifier
		err        error
		want       retry.Decision
	}{
		{"on, one of them", retry.On(io.ErrClosedPipe, io.EOF), wrapped, retry.Again},
		{"on, another", retry.On(io.ErrClosedPipe), wrapped, retry.Stop},
		{"on nothing", retry.On(), wrapped, retry.Stop},
		{"except, one of them", retry.Except(io.ErrClosedPipe, io.EOF), wrapped, retry.Stop},
		{"except, another", retry.Except(io.ErrClosedPipe), wrapped, retry.Pass},
		{"as, the type", byCode, fmt.Errorf("get: %w", &codeError{503}), retry.Unsure},
		{"as, another code", byCode, &codeError{400}, retry.Stop},
		{"as, another type", byCode, wrapped, retry.Pass},
		{"as without judge", retry.As[*codeError](nil), &codeError{503}, retry.Pass},
		{"first of none", retry.First(), wrapped, retry.Pass},
		{"first with an opinion", retry.First(nil, byCode, always(retry.AgainAfter(1)), always(retry.Stop)), wrapped, retry.AgainAfter(1)},
		{"first without opinions", retry.First(byCode, nil), wrapped, retry.Pass},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) { assert.Equal(t, tc.want, tc.classifier(tc.err)) })
	}
}

func TestOnKeepsItsOwnList(t *testing.T) {
	errs := []error{io.EOF}
	on := retry.On(errs...)
	errs[0] = io.ErrClosedPipe
	assert.Equal(t, retry.Again, on(io.EOF))
}

func TestDecisions(t *testing.T) {
	all := []retry.Decision{retry.Pass, retry.Again, retry.Stop, retry.Unsure, retry.AgainAfter(time.Second), retry.UnsureAfter(time.Second)}
	seen := make(map[retry.Decision]bool) // they can be compared
	for _, d := range all {
		seen[d] = true
	}
	assert.Len(t, seen, len(all))
	assert.Equal(t, retry.Pass, retry.Decision{})
	assert.Equal(t, retry.Again, retry.AgainAfter(0))
	assert.Equal(t, retry.Again, retry.AgainAfter(-1))
	assert.Equal(t, retry.Unsure, retry.UnsureAfter(-1))
	assert.Equal(t, "[pass again stop unsure again after 1s unsure after 1s]", fmt.Sprint(all))
}

func TestMark(t *testing.T) {
	assert.NoError(t, retry.Mark(nil, retry.Stop))
	assert.Equal(t, io.EOF, retry.Mark(io.EOF, retry.Pass))

	err := retry.Mark(fmt.Errorf("get: %w", &codeError{503}), retry.Stop)
	assert.EqualError(t, err, "get: code 503")
	var code *codeError
	require.ErrorAs(t, err, &code)
	assert.Equal(t, 503, code.code)
}

// attempts runs p on err, twice if it is allowed, and returns the reason.
func attempts(t *testing.T, p retry.Policy, err error, opts ...retry.Option) (int, error) {
	t.Helper()
	got := retry.Do(t.Context(), p, fails(err), opts...)
	var e *retry.Error
	require.ErrorAs(t, got, &e)
	assert.Equal(t, err, e.Last)
	return e.Attempts, e.Reason
}

func TestWhoJudges(t *testing.T) {
	failure := errors.New("failure")
	once := retry.OneTime(0)
	cases := []struct {
		name       string
		policy     retry.Policy
		err        error
		idempotent bool
		attempts   int
		reason     error
	}{
		{"nobody", once, failure, false, 2, retry.ErrExhausted},
		{"no opinion", once.WithClassifier(always(retry.Pass)), failure, false, 2, retry.ErrExhausted},
		{"stop", once.WithClassifier(always(retry.Stop)), failure, true, 1, retry.ErrStopped},
		{"unsure", once.WithClassifier(always(retry.Unsure)), failure, false, 1, retry.ErrUnsure},
		{"unsure, idempotent", once.WithClassifier(always(retry.Unsure)), failure, true, 2, retry.ErrExhausted},
		{"the newest classifier first", once.WithClassifier(always(retry.Again)).WithClassifier(always(retry.Stop)), failure, false, 1, retry.ErrStopped},
		{"the older one if it passes", once.WithClassifier(always(retry.Stop)).WithClassifier(always(retry.Pass)), failure, false, 1, retry.ErrStopped},
		{"the fallback last", once.WithFallback(always(retry.Stop)).WithClassifier(always(retry.Again)), failure, false, 2, retry.ErrExhausted},
		{"the fallback last, added last", once.WithClassifier(always(retry.Again)).WithFallback(always(retry.Stop)), failure, false, 2, retry.ErrExhausted},
		{"the fallback alone", once.WithFallback(always(retry.Stop)), failure, false, 1, retry.ErrStopped},
		{"the mark before classifiers", once.WithClassifier(always(retry.Again)), retry.Mark(failure, retry.Stop), false, 1, retry.ErrStopped},
		{"a wrapped mark", once, fmt.Errorf("op: %w", retry.Mark(failure, retry.Unsure)), false, 1, retry.ErrUnsure},
		{"the outer one of two marks", once, retry.Mark(retry.Mark(failure, retry.Stop), retry.Again), false, 2, retry.ErrExhausted},
		{"zero policy", retry.Policy{}, failure, false, 1, retry.ErrExhausted},
		{"zero policy, stop", retry.Policy{}.WithClassifier(always(retry.Stop)), failure, false, 1, retry.ErrStopped},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var opts []retry.Option
			if tc.idempotent {
				opts = append(opts, retry.Idempotent())
			}
			n, reason := attempts(t, tc.policy, tc.err, opts...)
			assert.Equal(t, tc.attempts, n)
			assert.Equal(t, tc.reason, reason)
		})
	}
}

// A mark counts wherever it stands in the tree, and the strictest does of those that
// stand side by side.
func TestMarksInATreeOfErrors(t *testing.T) {
	failure := errors.New("failure")
	stop, unsure, again := retry.Mark(failure, retry.Stop), retry.Mark(failure, retry.Unsure), retry.Mark(failure, retry.Again)
	loops := func(p retry.Policy, err error) error { return retry.Do(t.Context(), p, fails(err)) }
	exhausted, stopped, doubtful := loops(retry.None(), failure), loops(retry.None(), stop), loops(retry.None(), unsure)
	both := func(a, b error) error { return fmt.Errorf("%w, and %w", a, b) }
	for name, tc := range map[string]struct {
		err    error
		reason error
	}{
		"behind another loop's error":        {errors.Join(exhausted, stop), retry.ErrStopped},
		"before another loop's error":        {errors.Join(stop, exhausted), retry.ErrStopped},
		"unsure behind another loop's error": {errors.Join(exhausted, unsure), retry.ErrUnsure},
		"again beside another loop's stop":   {errors.Join(stopped, again), retry.ErrExhausted},
		"deep in the tree":                   {both(failure, both(fmt.Errorf("op: %w", errors.Join(nil, failure, stop)), failure)), retry.ErrStopped},
		"again, then stop":                   {errors.Join(again, stop), retry.ErrStopped},
		"stop, then again":                   {errors.Join(stop, again), retry.ErrStopped},
		"again, then unsure":                 {both(again, unsure), retry.ErrUnsure},
		"unsure, then stop":                  {both(unsure, stop), retry.ErrStopped},
		"none, and two loops":                {both(exhausted, stopped), retry.ErrStopped},
		"none, and three loops":              {errors.Join(doubtful, exhausted, exhausted), retry.ErrUnsure},
		"a mark on the whole":                {retry.Mark(errors.Join(stop, unsure), retry.Again), retry.ErrExhausted},
		"a mark on a loop's error":           {retry.Mark(stopped, retry.Again), retry.ErrExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			_, reason := attempts(t, retry.OneTime(0), tc.err)
			assert.Equal(t, tc.reason, reason)
		})
	}
}

// A loop inside op has seen the failure; without a better opinion its own
// stands.
func TestNestedLoopsJudgementIsTheDefault(t *testing.T) {
	failure := errors.New("failure")
	inner := func(d retry.Decision, opts ...retry.Option) func(context.Context) error {
		return func(ctx context.Context) error {
			return fmt.Errorf("inner: %w", retry.Do(retry.Detach(ctx), retry.OneTime(0), fails(retry.Mark(failure, d)), opts...))
		}
	}
	cases := []struct {
		name   string
		policy retry.Policy
		op     func(context.Context) error
		reason error
	}{
		{"stopped", retry.OneTime(0), inner(retry.Stop), retry.ErrStopped},
		{"unsure", retry.OneTime(0), inner(retry.Unsure), retry.ErrUnsure},
		{"unsure and repeated", retry.OneTime(0), inner(retry.Unsure, retry.Idempotent()), retry.ErrUnsure},
		{"exhausted", retry.OneTime(0), inner(retry.Again), retry.ErrExhausted},
		{"classifier first", retry.OneTime(0).WithClassifier(retry.On(failure)), inner(retry.Stop), retry.ErrExhausted},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			err := retry.Do(t.Context(), tc.policy, tc.op)
			var e *retry.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, tc.reason, e.Reason)
			assert.ErrorIs(t, err, failure)
		})
	}
}
