package retry_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/retry"
)

var errFailure = errors.New("failure")

// trace runs p with an op that always fails and returns when each attempt
// began.
func trace(ctx context.Context, p retry.Policy, opts ...retry.Option) (at []time.Duration, e *retry.Error) {
	start := time.Now()
	err := retry.Do(ctx, p, func(context.Context) error {
		at = append(at, time.Since(start))
		return errFailure
	}, opts...)
	errors.As(err, &e)
	return at, e
}

func TestAttemptsInTime(t *testing.T) {
	const attemptsUp = "attempts used up"
	s := time.Second
	cases := []struct {
		name    string
		policy  retry.Policy
		want    []time.Duration
		elapsed time.Duration
		reason  string
	}{
		{"zero policy", retry.Policy{}, []time.Duration{0}, 0, attemptsUp},
		{"none", retry.None(), []time.Duration{0}, 0, attemptsUp},
		{"n times", retry.NTimes(2, s), []time.Duration{0, s, 2 * s}, 2 * s, attemptsUp},
		{"exponential", retry.BoundedExponentialBackoff(s, 5*s, 3).WithJitter(retry.NoJitter), []time.Duration{0, s, 4 * s, 9 * s}, 9 * s, attemptsUp},
		{"until elapsed", retry.UntilElapsed(3*s, 2*s), []time.Duration{0, 2 * s, 4 * s}, 4 * s, "time used up (limit 3s)"},
		{"max elapsed", retry.UntilElapsed(3*s, 2*s).WithMaxElapsed(3 * s), []time.Duration{0, 2 * s}, 2 * s, "time used up (limit 3s, next attempt due in 2s)"},
		{"longer delay asked for", retry.OneTime(s).WithClassifier(always(retry.AgainAfter(3 * s))), []time.Duration{0, 3 * s}, 3 * s, attemptsUp},
		{"longer than the bound", retry.BoundedExponentialBackoff(s, s, 1).WithClassifier(always(retry.AgainAfter(3 * s))), []time.Duration{0, 3 * s}, 3 * s, attemptsUp},
		{"unsure, a longer delay asked for", retry.OneTime(s).WithClassifier(always(retry.UnsureAfter(3 * s))), []time.Duration{0, 3 * s}, 3 * s, attemptsUp},
		{"a year asked for", retry.OneTime(s).WithClassifier(always(retry.AgainAfter(8760 * time.Hour))), []time.Duration{0, time.Hour}, time.Hour, attemptsUp},
		{"more than is allowed", retry.OneTime(s).WithMaxAfter(2 * s).WithClassifier(always(retry.AgainAfter(3 * s))), []time.Duration{0, 2 * s}, 2 * s, attemptsUp},
		{"less than the policy's own", retry.OneTime(5 * s).WithMaxAfter(2 * s).WithClassifier(always(retry.AgainAfter(3 * s))), []time.Duration{0, 5 * s}, 5 * s, attemptsUp},
		{"the default again", retry.OneTime(s).WithMaxAfter(2 * s).WithMaxAfter(-1).WithClassifier(always(retry.AgainAfter(3 * s))), []time.Duration{0, 3 * s}, 3 * s, attemptsUp},
		{"shorter delay asked for", retry.OneTime(5 * s).WithClassifier(always(retry.AgainAfter(3 * s))), []time.Duration{0, 5 * s}, 5 * s, attemptsUp},
		{"longer than max elapsed", retry.OneTime(s).WithMaxElapsed(2 * s).WithClassifier(always(retry.AgainAfter(3 * s))), []time.Duration{0}, 0,
			"time used up (limit 2s, next attempt due in 3s)"},
		{"both", retry.NTimes(1, s).WithMaxElapsed(s), []time.Duration{0, s}, s, attemptsUp},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				at, e := trace(t.Context(), tc.policy.Named("orders"), retry.Idempotent())
				assert.Equal(t, tc.want, at)
				assert.ErrorIs(t, e.Reason, retry.ErrExhausted)
				assert.EqualError(t, e.Reason, tc.reason)
				assert.Equal(t, errFailure, e.Last)
				assert.Equal(t, len(tc.want), e.Attempts)
				assert.Equal(t, tc.elapsed, e.Elapsed)
				assert.Equal(t, "orders", e.Policy)
			})
		})
	}
}

func TestForeverWithoutIntervalDoesNotSpin(t *testing.T) {
	for _, p := range []retry.Policy{retry.Forever(0), retry.Forever(-time.Hour), retry.UntilElapsed(time.Hour, 0)} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			at, _ := trace(ctx, p)
			assert.Len(t, at, 1000, "%v", p)
		})
	}
}

func TestContextEndedBefore(t *testing.T) {
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	var done []retry.Attempt
	p := retry.OneTime(0).OnDone(func(_ context.Context, a retry.Attempt) { done = append(done, a) })

	at, e := trace(ctx, p)

	assert.Empty(t, at)
	assert.EqualError(t, e.Reason, "context canceled (cause: shutting down)")
	assert.NoError(t, e.Last)
	assert.ErrorIs(t, e, context.Canceled)
	assert.NotErrorIs(t, e, cause, "the cause may be any error")
	require.Len(t, done, 1)
	assert.Equal(t, e, done[0].Err)
	assert.Zero(t, done[0].Number)
}

func TestContextEndsDuringDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(1500*ms, func() { cancel(cause) })
		budget := retry.NewBudget(5, 0)

		at, e := trace(ctx, retry.Forever(time.Second).WithBudget(budget))

		assert.Equal(t, []time.Duration{0, time.Second}, at)
		assert.EqualError(t, e.Reason, "context canceled (cause: shutting down)")
		assert.Equal(t, errFailure, e.Last)
		assert.ErrorIs(t, e, context.Canceled)
		assert.NotErrorIs(t, e, cause)
		assert.NotErrorIs(t, e, context.DeadlineExceeded)
		assert.Equal(t, 1500*ms, e.Elapsed)
		assert.Equal(t, 4, left(t, budget), "the retry that was not made is given back")
	})
}

func TestContextEndsDuringAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		asked := false
		p := retry.Forever(ms).WithClassifier(func(error) retry.Decision { asked = true; return retry.Again })
		err := retry.Do(ctx, p, func(ctx context.Context) error {
			<-ctx.Done()
			return errFailure
		}, retry.Idempotent())
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, errFailure)
		assert.False(t, asked, "the end of the caller's context is not up to classifiers")
	})
}

func TestSuccessCountsThoughContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	assert.NoError(t, retry.Do(ctx, retry.Policy{}, func(context.Context) error { cancel(); return nil }))
}

func TestDelayThatWouldOutlastTheDeadlineIsNotBegun(t *testing.T) {
	cases := []struct {
		name     string
		deadline time.Duration
		policy   retry.Policy
		want     []time.Duration
	}{
		{"shorter", 2 * time.Second, retry.Forever(1500 * ms), []time.Duration{0, 1500 * ms}},
		{"equal", 2 * time.Second, retry.Forever(2 * time.Second), []time.Duration{0}},
		{"asked for", 2 * time.Second, retry.Forever(ms).WithClassifier(always(retry.AgainAfter(time.Hour))), []time.Duration{0}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
				defer cancel()
				budget := retry.NewBudget(5, 0)
				hooks := 0
				at, e := trace(ctx, tc.policy.WithBudget(budget).OnRetry(func(context.Context, retry.Attempt) { hooks++ }))
				assert.Equal(t, tc.want, at)
				assert.Equal(t, tc.want[len(tc.want)-1], e.Elapsed, "given up at once")
				assert.ErrorIs(t, e.Reason, context.DeadlineExceeded)
				assert.ErrorContains(t, e, "context would end before the next attempt, due in ")
				assert.NoError(t, ctx.Err())
				assert.Equal(t, len(tc.want)-1, hooks, "hooks hear only of delays that begin")
				assert.Equal(t, 5-hooks, left(t, budget), "nor are others charged for")
			})
		})
	}
}

func TestAttemptTimeout(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	p := retry.OneTime(time.Second).WithAttemptTimeout(2 * time.Second)
	cases := []struct {
		name    string
		policy  retry.Policy
		op      func(context.Context) error
		opts    []retry.Option
		reason  error
		elapsed time.Duration
	}{
		{"unsure", p, hang, nil, retry.ErrUnsure, 2 * time.Second},
		{"idempotent", p, hang, []retry.Option{retry.Idempotent()}, retry.ErrExhausted, 5 * time.Second},
		{"whatever a classifier says", p.WithClassifier(always(retry.Again)), hang, nil, retry.ErrUnsure, 2 * time.Second},
		{"whatever the error", p, func(ctx context.Context) error { _ = hang(ctx); return errFailure }, nil, retry.ErrUnsure, 2 * time.Second},
		{"op knows better", p, func(ctx context.Context) error { return retry.Mark(hang(ctx), retry.Again) }, nil, retry.ErrExhausted, 5 * time.Second},
		{"removed", p.WithAttemptTimeout(0), func(context.Context) error { time.Sleep(time.Minute); return errFailure }, nil, retry.ErrExhausted, 121 * time.Second},
		{"op's own limit is no attempt timeout", p, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return hang(ctx)
		}, nil, retry.ErrExhausted, 3 * time.Second},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e *retry.Error
				require.ErrorAs(t, retry.Do(t.Context(), tc.policy, tc.op, tc.opts...), &e)
				assert.Equal(t, tc.reason, e.Reason)
				assert.Equal(t, tc.elapsed, e.Elapsed)
			})
		})
	}
}

func TestAttemptTimeoutLeavesALateSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := retry.DoValue(t.Context(), retry.Policy{}.WithAttemptTimeout(time.Second), func(context.Context) (int, error) {
			time.Sleep(time.Minute)
			return 1, nil
		})
		assert.NoError(t, err)
		assert.Equal(t, 1, n)
	})
}

func TestCallersDeadlineBeforeAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := retry.Do(ctx, retry.Forever(ms).WithAttemptTimeout(time.Minute), func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, retry.Idempotent())
		var e *retry.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, context.DeadlineExceeded, e.Reason)
		assert.Equal(t, 1, e.Attempts)
	})
}

type key struct{}

func TestOpsContext(t *testing.T) {
	for _, p := range []retry.Policy{retry.OneTime(0), retry.OneTime(0).WithAttemptTimeout(time.Hour)} {
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Minute)
		defer cancel()
		callers, _ := ctx.Deadline()
		var seen []context.Context
		err := retry.Do(ctx, p, func(ctx context.Context) error {
			for _, earlier := range seen {
				assert.ErrorIs(t, earlier.Err(), context.Canceled)
			}
			seen = append(seen, ctx)
			assert.NoError(t, ctx.Err())
			assert.Equal(t, "value", ctx.Value(key{}))
			deadline, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, callers, deadline)
			return errFailure
		})
		assert.ErrorIs(t, err, retry.ErrExhausted)
		require.Len(t, seen, 2)
		assert.ErrorIs(t, seen[1].Err(), context.Canceled, "op's context ends when op returns")
		assert.NoError(t, ctx.Err())
	}
}

// Contexts derived from op's must not need a goroutine each, which they would
// if the standard library did not recognise what is underneath.
func TestContextsBelowOpsNeedNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_ = retry.Do(ctx, retry.Policy{}, func(ctx context.Context) error {
		for range 100 {
			_, cancel := context.WithCancel(ctx)
			defer cancel()
		}
		assert.Less(t, runtime.NumGoroutine(), before+50)
		return nil
	})
}

func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.WithValue(t.Context(), key{}, "value")
		var retries, done []retry.Attempt
		p := retry.NTimes(5, time.Second).Named("orders").
			OnRetry(func(ctx context.Context, a retry.Attempt) {
				assert.Equal(t, "value", ctx.Value(key{}))
				assert.NoError(t, ctx.Err())
				retries = append(retries, a)
			}).
			OnDone(func(ctx context.Context, a retry.Attempt) {
				assert.NoError(t, ctx.Err())
				done = append(done, a)
			})
		second := errors.New("second")
		require.NoError(t, retry.Do(ctx, p, fails(errFailure, second, nil)))
		assert.Equal(t, []retry.Attempt{
			{Policy: "orders", Number: 1, Err: errFailure, Delay: time.Second},
			{Policy: "orders", Number: 2, Err: second, Delay: time.Second, Elapsed: time.Second},
		}, retries)
		assert.Equal(t, []retry.Attempt{{Policy: "orders", Number: 3, Elapsed: 2 * time.Second}}, done)

		err := retry.Do(ctx, p.WithClassifier(always(retry.Stop)), fails(errFailure))
		assert.Equal(t, retry.Attempt{Policy: "orders", Number: 1, Err: err}, done[1], "told the error that Do returns")
	})
}

func TestPanicInOp(t *testing.T) {
	var done []retry.Attempt
	budget := retry.NewBudget(3, 1)
	p := retry.NTimes(5, 0).WithBudget(budget).
		OnDone(func(_ context.Context, a retry.Attempt) { done = append(done, a) })
	calls := 0
	assert.PanicsWithValue(t, "op", func() {
		_ = retry.Do(t.Context(), p, func(context.Context) error {
			if calls++; calls == 2 {
				panic("op")
			}
			return errFailure
		})
	})
	require.Len(t, done, 1, "hooks hear of it")
	assert.Equal(t, 2, done[0].Number)
	assert.ErrorIs(t, done[0].Err, errFailure)
	assert.ErrorContains(t, done[0].Err, "panic or end of the goroutine after 2 attempts")
	assert.Equal(t, 2, left(t, budget), "one retry was made")
}

func TestGoexitInOp(t *testing.T) {
	var done []retry.Attempt
	p := retry.Policy{}.OnDone(func(_ context.Context, a retry.Attempt) { done = append(done, a) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = retry.Do(context.Background(), p, func(context.Context) error {
			runtime.Goexit()
			return nil
		})
	}()
	<-ended
	require.Len(t, done, 1)
	assert.Error(t, done[0].Err)
}

func TestPanicInHook(t *testing.T) {
	budget := retry.NewBudget(3, 0)
	done := 0
	p := retry.NTimes(5, 0).WithBudget(budget).
		OnRetry(func(context.Context, retry.Attempt) { panic("hook") }).
		OnDone(func(context.Context, retry.Attempt) { done++ })
	assert.PanicsWithValue(t, "hook", func() { _ = retry.Do(t.Context(), p, fails(errFailure)) })
	assert.Equal(t, 1, done)
	assert.Equal(t, 3, left(t, budget), "the retry that was not made is given back")
}

// One policy serves many goroutines, each with its own count.
func TestPolicyIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := retry.NTimes(3, time.Second)
		results := make(chan string, 10)
		for range cap(results) {
			go func() {
				at, e := trace(t.Context(), p)
				results <- fmt.Sprint(at, e.Attempts)
			}()
		}
		for range cap(results) {
			assert.Equal(t, "[0s 1s 2s 3s] 4", <-results)
		}
	})
}
