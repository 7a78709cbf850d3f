package retry_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/retry"
)

// left counts the retries that b allows, and uses them up.
func left(t *testing.T, b *retry.Budget) int {
	t.Helper()
	err := retry.Do(t.Context(), retry.NTimes(1000, 0).WithBudget(b), fails(errors.New("failure")))
	var e *retry.Error
	require.ErrorAs(t, err, &e)
	if e.Attempts <= 1000 {
		require.Equal(t, retry.ErrNoBudget, e.Reason)
	}
	return e.Attempts - 1
}

func succeed(t *testing.T, b *retry.Budget, times int) {
	t.Helper()
	for range times {
		require.NoError(t, retry.Do(t.Context(), retry.None().WithBudget(b), fails(nil)))
	}
}

func TestBudget(t *testing.T) {
	cases := []struct {
		name          string
		size          int
		refill        float64
		atFirst       int
		successes     int
		afterSuccess  int
		thenSuccesses int
		then          int
	}{
		{"tenths add up exactly", 3, 0.1, 3, 9, 0, 1, 1},
		{"a success may give back one", 3, 1, 3, 2, 2, 0, 0},
		{"or more", 5, 2.5, 5, 1, 2, 1, 3},
		{"never above size", 3, 1, 3, 50, 3, 50, 3},
		{"no refill", 2, 0, 2, 50, 0, 0, 0},
		{"negative refill", 2, -1, 2, 50, 0, 0, 0},
		{"refill not a number", 2, math.NaN(), 2, 50, 0, 0, 0},
		{"infinite refill", 2, math.Inf(1), 2, 1, 2, 1, 2},
		{"empty", 0, 1, 0, 5, 0, 5, 0},
		{"negative size", -5, 1, 0, 5, 0, 5, 0},
		{"huge", math.MaxInt, math.MaxFloat64, 1000, 1, 1000, 1, 1000},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			b := retry.NewBudget(tc.size, tc.refill)
			assert.Equal(t, tc.atFirst, left(t, b))
			succeed(t, b, tc.successes)
			assert.Equal(t, tc.afterSuccess, left(t, b))
			succeed(t, b, tc.thenSuccesses)
			assert.Equal(t, tc.then, left(t, b))
		})
	}
}

func TestBudgetIsSharedByGoroutinesAndPolicies(t *testing.T) {
	b := retry.NewBudget(100, 0)
	policies := []retry.Policy{retry.NTimes(1000, 0).WithBudget(b), retry.ExponentialBackoff(0, 1000).WithBudget(b)}
	var calls atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			err := retry.Do(t.Context(), policies[i%2], func(context.Context) error {
				calls.Add(1)
				return errors.New("failure")
			})
			assert.ErrorIs(t, err, retry.ErrNoBudget)
		})
	}
	wg.Wait()
	assert.EqualValues(t, 8+100, calls.Load())
}

func TestBudgetUnderContention(t *testing.T) {
	b := retry.NewBudget(1000, 0.5)
	p := retry.OneTime(0).WithBudget(b)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				assert.NoError(t, retry.Do(t.Context(), p, fails(errors.New("once"), nil)))
			}
		})
	}
	wg.Wait()
	// Each refill follows a retry, so none was lost to a full budget.
	assert.Equal(t, 1000-800+400, left(t, b))
}

// What is judged Stop is an answer of a dependency that is well. Other failures are not.
func TestBudgetAfterAnswers(t *testing.T) {
	for d, want := range map[retry.Decision]int{retry.Stop: 2, retry.Unsure: 0, retry.Again: 0} {
		b := retry.NewBudget(5, 0.5)
		left(t, b)
		for range 4 {
			assert.Error(t, retry.Do(t.Context(), retry.None().WithBudget(b), fails(retry.Mark(errors.New("failure"), d))))
		}
		assert.Equal(t, want, left(t, b), d)
	}
}
