package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/retry"
)

type job string

func (j job) String() string { return string(j) }

// gives returns these results one after another, and the last for ever.
func gives(jobs ...job) func(context.Context) (job, error) {
	return func(context.Context) (job, error) {
		next := jobs[0]
		if len(jobs) > 1 {
			jobs = jobs[1:]
		}
		return next, nil
	}
}

func judgeJob(j job) retry.Decision {
	switch j {
	case "pending":
		return retry.Again
	case "sent":
		return retry.Unsure
	case "refused":
		return retry.Stop
	}
	return retry.Pass
}

func TestWithResult(t *testing.T) {
	p := retry.WithResult(retry.NTimes(2, 0), judgeJob)
	for _, tc := range []struct {
		results  []job
		opts     []retry.Option
		attempts int
		reason   error
		last     job
	}{
		{[]job{"done"}, nil, 1, nil, "done"},
		{[]job{"pending", "done"}, nil, 2, nil, "done"},
		{[]job{"pending"}, nil, 3, retry.ErrExhausted, "pending"},
		{[]job{"pending", "refused"}, nil, 2, retry.ErrStopped, "refused"},
		{[]job{"sent", "done"}, nil, 1, retry.ErrUnsure, "sent"},
		{[]job{"sent", "done"}, []retry.Option{retry.Idempotent()}, 2, nil, "done"},
	} {
		t.Run(fmt.Sprint(tc.results, len(tc.opts)), func(t *testing.T) {
			var done retry.Attempt
			got, err := retry.DoValue(t.Context(), p.OnDone(func(_ context.Context, a retry.Attempt) { done = a }), gives(tc.results...), tc.opts...)
			assert.Equal(t, tc.attempts, done.Number)
			assert.Equal(t, err, done.Err)
			if tc.reason == nil {
				require.NoError(t, err)
				assert.Equal(t, tc.last, got)
				return
			}
			assert.Empty(t, got)
			require.ErrorIs(t, err, tc.reason)
			var e *retry.ResultError
			require.ErrorAs(t, err, &e)
			assert.Equal(t, retry.ResultError{Value: tc.last, Decision: judgeJob(tc.last)}, *e)
			assert.NotContains(t, err.Error(), string(tc.last), "it may be secret")
		})
	}
}

// A classifier that stops at every error but its own does not stop at a result.
func TestWithResultIsJudgedBeforeClassifiers(t *testing.T) {
	p := retry.WithResult(retry.NTimes(2, 0).WithClassifier(retry.On(errors.New("its own"))), judgeJob)
	got, err := retry.DoValue(t.Context(), p, gives("pending", "done"))
	require.NoError(t, err)
	assert.EqualValues(t, "done", got)
}

func TestWithResultOfSeveralTypes(t *testing.T) {
	p := retry.WithResult(retry.NTimes(1, 0), func(fmt.Stringer) retry.Decision { return retry.Stop })
	p = retry.WithResult(p, func(j job) retry.Decision {
		if j == "mine" {
			return retry.Again
		}
		return retry.Pass
	})
	p = retry.WithResult[job](p, nil)

	_, err := retry.DoValue(t.Context(), p, gives("mine"))
	require.ErrorIs(t, err, retry.ErrExhausted, "the one added last is asked first")
	_, err = retry.DoValue(t.Context(), p, gives("another"))
	require.ErrorIs(t, err, retry.ErrStopped, "an interface")
	n, err := retry.DoValue(t.Context(), p, func(context.Context) (int, error) { return 7, nil })
	require.NoError(t, err)
	assert.Equal(t, 7, n)
	s, err := retry.DoValue(t.Context(), p, func(context.Context) (fmt.Stringer, error) { return nil, nil })
	require.NoError(t, err)
	assert.Nil(t, s)
	assert.NoError(t, retry.Do(t.Context(), p, fails(nil)))
	assert.False(t, retry.WithResult(retry.Policy{}, judgeJob).IsZero())
}

func TestResultAfterTheEndOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := retry.WithResult(retry.NTimes(5, 0), judgeJob)
	_, err := retry.DoValue(ctx, p, func(context.Context) (job, error) { cancel(); return "pending", nil })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorAs(t, err, new(*retry.ResultError))
	_, err = retry.DoValue(t.Context(), p, func(context.Context) (job, error) { return "pending", errors.New("also failed") })
	assert.NotErrorAs(t, err, new(*retry.ResultError), "an error hides the result")
}
