package retry_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/retry"
)

// nest runs op under all policies, the first being the outermost.
func nest(ctx context.Context, op func(context.Context) error, policies ...retry.Policy) error {
	if len(policies) == 0 {
		return op(ctx)
	}
	return retry.Do(ctx, policies[0], func(ctx context.Context) error { return nest(ctx, op, policies[1:]...) })
}

func TestNestedLoopsAddUp(t *testing.T) {
	cases := []struct {
		name     string
		policies []retry.Policy
		calls    int
	}{
		{"alike", []retry.Policy{retry.NTimes(3, 0), retry.NTimes(3, 0)}, 4}, // CURATOR-559
		{"three deep", []retry.Policy{retry.NTimes(3, 0), retry.NTimes(3, 0), retry.NTimes(3, 0)}, 4},
		{"outer smaller", []retry.Policy{retry.NTimes(2, 0), retry.NTimes(9, 0)}, 3},
		{"inner smaller", []retry.Policy{retry.NTimes(5, 0), retry.NTimes(1, 0)}, 6},
		{"middle smallest", []retry.Policy{retry.NTimes(5, 0), retry.NTimes(1, 0), retry.NTimes(9, 0)}, 6},
		{"none outside", []retry.Policy{retry.None(), retry.NTimes(3, 0)}, 1},
		{"none inside", []retry.Policy{retry.NTimes(3, 0), retry.None()}, 4},
		{"unset outside", []retry.Policy{{}, retry.NTimes(3, 0)}, 4},
		{"unset between", []retry.Policy{retry.NTimes(2, 0), retry.Policy{}.Named("unset"), retry.NTimes(3, 0)}, 3},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			calls := 0
			err := nest(t.Context(), func(context.Context) error { calls++; return errFailure }, tc.policies...)
			assert.Equal(t, tc.calls, calls)
			assert.ErrorIs(t, err, errFailure)
		})
	}
}

// A policy that counts how often it was asked, as in Curator's
// TestThreadLocalRetryLoop.testRecursingRetry.
func TestOuterPolicyIsAskedOncePerRetry(t *testing.T) {
	asked := 0
	outer := retry.Custom("counting", func(retries int, _ time.Duration) (time.Duration, bool) {
		assert.Equal(t, asked, retries)
		asked++
		return 0, retries < 3
	})
	err := nest(t.Context(), fails(errFailure, errFailure, errFailure, nil), outer, retry.Forever(ms))
	assert.NoError(t, err)
	assert.Equal(t, 3, asked)
}

func TestInnerLoopSaysThatTheOuterHasNoRetriesLeft(t *testing.T) {
	var inner, outer *retry.Error
	err := retry.Do(t.Context(), retry.NTimes(2, 0).Named("outer"), func(ctx context.Context) error {
		err := retry.Do(ctx, retry.NTimes(9, 0).Named("inner"), fails(errFailure))
		require.ErrorAs(t, err, &inner)
		return err
	})
	assert.ErrorIs(t, inner.Reason, retry.ErrNoBudget)
	assert.NotErrorIs(t, inner.Reason, retry.ErrExhausted, "the inner loop had attempts left")
	assert.EqualError(t, inner.Reason, "retry budget used up (that of the loop around: attempts used up)")
	assert.Equal(t, 3, inner.Attempts)
	require.ErrorAs(t, err, &outer)
	assert.Equal(t, "outer", outer.Policy)
	assert.Equal(t, 1, outer.Attempts)
	assert.Equal(t, retry.ErrExhausted, outer.Reason)
}

func TestDetach(t *testing.T) {
	ctx := t.Context()
	assert.Equal(t, ctx, retry.Detach(ctx), "no loop, no change")
	calls := 0
	op := func(context.Context) error { calls++; return errFailure }
	err := retry.Do(ctx, retry.NTimes(2, 0), func(ctx context.Context) error {
		return nest(retry.Detach(ctx), op, retry.NTimes(3, 0), retry.NTimes(3, 0))
	})
	assert.ErrorIs(t, err, retry.ErrExhausted)
	assert.Equal(t, 3*4, calls, "the two below Detach share, the one above does not")
}

// Work that goes on after its loop has nothing to charge.
func TestFinishedLoopIsPassedOver(t *testing.T) {
	var left context.Context
	require.NoError(t, retry.Do(t.Context(), retry.None(), func(ctx context.Context) error {
		left = context.WithoutCancel(ctx)
		return nil
	}))
	at, _ := trace(left, retry.NTimes(3, 0))
	assert.Len(t, at, 4)
}

func TestHookIsNotPartOfTheLoop(t *testing.T) {
	calls := 0
	p := retry.OneTime(0).OnRetry(func(ctx context.Context, _ retry.Attempt) {
		at, _ := trace(ctx, retry.NTimes(5, 0))
		calls += len(at)
	})
	_ = retry.Do(t.Context(), p, fails(errFailure))
	assert.Equal(t, 6, calls)
}

func TestOuterTimeLimitsBindInnerLoops(t *testing.T) {
	s := time.Second
	cases := []struct {
		name  string
		outer retry.Policy
		want  []time.Duration // the attempts of an inner loop, a second apart
		why   string
	}{
		{"until elapsed", retry.UntilElapsed(3*s, s), []time.Duration{0, s, 2 * s, 3 * s}, "limit 3s"},
		{"max elapsed", retry.Forever(time.Hour).WithMaxElapsed(2500 * ms), []time.Duration{0, s, 2 * s}, "limit 2.5s, next attempt due in 1s"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []time.Duration
				var inner *retry.Error
				_ = retry.Do(t.Context(), tc.outer, func(ctx context.Context) error {
					at, inner = trace(ctx, retry.Forever(s))
					return inner
				})
				assert.Equal(t, tc.want, at)
				assert.ErrorIs(t, inner.Reason, retry.ErrNoBudget)
				assert.EqualError(t, inner.Reason, "retry budget used up (that of the loop around: time used up ("+tc.why+"))")
			})
		})
	}
}

func TestNestedBudgets(t *testing.T) {
	a, b := retry.NewBudget(10, 0), retry.NewBudget(2, 0)
	none := errors.New("no budget")
	inner := retry.NTimes(9, 0).WithBudget(a)
	op := func(ctx context.Context) error {
		_, e := trace(ctx, inner)
		if assert.EqualError(t, e.Reason, "retry budget used up (that of the loop around: retry budget used up)") {
			return retry.Mark(none, retry.Stop)
		}
		return nil
	}
	assert.ErrorIs(t, retry.Do(t.Context(), retry.Forever(ms).WithBudget(b), op), none)
	assert.Equal(t, 8, left(t, a), "what the outer budget refused was not charged to the inner")
	assert.Equal(t, 0, left(t, b))

	shared := retry.NewBudget(4, 0)
	at, _ := traceNested(t.Context(), retry.NTimes(2, 0).WithBudget(shared), retry.NTimes(9, 0).WithBudget(shared))
	assert.Len(t, at, 3)
	assert.Equal(t, 2, left(t, shared), "a retry costs one, however many loops share the budget")
}

func traceNested(ctx context.Context, outer, inner retry.Policy) (at []time.Duration, e *retry.Error) {
	_ = retry.Do(ctx, outer, func(ctx context.Context) error {
		at, e = trace(ctx, inner)
		return e
	})
	return at, e
}

func TestRetryNotMadeIsGivenBackToTheOuterLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := retry.NTimes(1, 0)
		attempts := 0
		err := retry.Do(t.Context(), outer, func(ctx context.Context) error {
			if attempts++; attempts == 2 {
				return nil
			}
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(ms, cancel)
			_, e := trace(ctx, retry.Forever(time.Second))
			return e
		})
		assert.NoError(t, err, "the outer loop still had its retry")
		assert.Equal(t, 2, attempts)
	})
}

// Source: Curator TestThreadLocalRetryLoop.testThreadedRecursingRetry, but for
// one loop with many goroutines in it.
func TestGoroutinesInOneLoopShareItsRetries(t *testing.T) {
	var calls atomic.Int64
	outer := retry.Custom("yielding", func(retries int, _ time.Duration) (time.Duration, bool) {
		runtime.Gosched() // lets another one be counted between the answer and its use
		return 0, retries < 50
	})
	_ = retry.Do(t.Context(), outer, func(ctx context.Context) error {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_ = retry.Do(ctx, retry.NTimes(1000, 0), func(context.Context) error {
					calls.Add(1)
					return errFailure
				})
			})
		}
		wg.Wait()
		return retry.Mark(errFailure, retry.Stop)
	})
	assert.EqualValues(t, 8+50, calls.Load())
}

// An attempt cut short may have taken effect, whichever loop's limit cut it.
func TestInnerLoopCutShortIsUnsure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := func(during time.Duration) error {
			return retry.Do(t.Context(), retry.OneTime(0), func(ctx context.Context) error {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return retry.Do(ctx, retry.Forever(time.Minute), func(ctx context.Context) error {
					select {
					case <-ctx.Done():
					case <-time.After(during):
					}
					return errFailure
				})
			})
		}
		var e *retry.Error
		require.ErrorAs(t, cut(time.Hour), &e)
		assert.Equal(t, retry.ErrUnsure, e.Reason, "cut during an attempt")
		require.ErrorAs(t, cut(ms), &e)
		assert.Equal(t, retry.ErrExhausted, e.Reason, "cut during a delay")
	})
}

// The delay that somebody asked of an inner loop is over for the loops around it.
func TestDelayAskedOfAnInnerLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		inner := retry.None().WithClassifier(always(retry.AgainAfter(time.Hour)))
		err := retry.Do(t.Context(), retry.OneTime(time.Second), func(ctx context.Context) error {
			return retry.Do(retry.Detach(ctx), inner, fails(errFailure))
		})
		assert.ErrorIs(t, err, errFailure)
		assert.Equal(t, time.Second, time.Since(began))
	})
}
