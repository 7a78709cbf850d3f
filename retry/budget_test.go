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

func TestBudgetLeft(t *testing.T) {
	b := retry.NewBudget(2, 0.25)
	assert.Equal(t, 2.0, b.Left())
	assert.Error(t, retry.Do(t.Context(), retry.OneTime(0).WithBudget(b), fails(errors.New("1"), errors.New("2"))))
	assert.Equal(t, 1.0, b.Left())
	succeed(t, b, 3)
	assert.Equal(t, 1.75, b.Left())
	succeed(t, b, 3)
	assert.Equal(t, 2.0, b.Left())
	assert.Zero(t, retry.NewBudget(-1, 0).Left())
}

// While a dependency is down, a few answers let a few retries through. That is one
// outage, of which one line is enough.
func TestBudgetTellsOnceThatItIsEmpty(t *testing.T) {
	var told []retry.Attempt
	var order []int
	b := retry.NewBudget(4, 1).
		OnEmpty(func(_ context.Context, a retry.Attempt) { told = append(told, a) }).
		OnEmpty(nil).
		OnEmpty(func(context.Context, retry.Attempt) { order = append(order, len(told)) })

	failure := errors.New("failure")
	use := func() {
		_ = retry.Do(t.Context(), retry.NTimes(10, 0).Named("orders").WithBudget(b), func(context.Context) error { return failure })
	}
	assert.NoError(t, retry.Do(t.Context(), retry.NTimes(4, 0).WithBudget(b), fails(failure, failure, failure, failure, nil)))
	assert.Equal(t, 1.0, b.Left())
	assert.Empty(t, told, "all were spent, and none was refused")

	use()
	require.Len(t, told, 1)
	assert.Equal(t, retry.Attempt{Policy: "orders", Number: 2, Err: failure, Elapsed: told[0].Elapsed}, told[0])
	use()
	succeed(t, b, 1)
	use()
	assert.Len(t, told, 1, "it was less than half full")
	succeed(t, b, 2)
	use()
	assert.Len(t, told, 2)
	assert.Equal(t, []int{1, 2}, order)
}

func TestBudgetOfAnOuterLoopTellsThatItIsEmpty(t *testing.T) {
	type key struct{}
	var told []any
	b := retry.NewBudget(1, 0).OnEmpty(func(ctx context.Context, a retry.Attempt) { told = append(told, ctx.Value(key{}), a.Policy) })
	inner := retry.NewBudget(5, 0)
	err := retry.Do(context.WithValue(t.Context(), key{}, "outer"), retry.NTimes(5, 0).WithBudget(b), func(ctx context.Context) error {
		return retry.Do(context.WithValue(ctx, key{}, "inner"), retry.NTimes(5, 0).Named("inner").WithBudget(inner), func(context.Context) error {
			return errors.New("failure")
		})
	})
	require.ErrorIs(t, err, retry.ErrNoBudget)
	assert.Equal(t, []any{"inner", "inner"}, told)
	assert.Equal(t, 4.0, inner.Left(), "a retry that was not made is given back")
}

// Many callers find it empty at once.
func TestBudgetTellsOneGoroutine(t *testing.T) {
	var told atomic.Int64
	b := retry.NewBudget(10, 0).OnEmpty(func(context.Context, retry.Attempt) { told.Add(1) })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { left(t, b) })
	}
	wg.Wait()
	assert.EqualValues(t, 1, told.Load())
}

// A hook that panics keeps nothing.
func TestBudgetHookPanics(t *testing.T) {
	outer := retry.NewBudget(0, 0).OnEmpty(func(context.Context, retry.Attempt) { panic("hook") })
	inner := retry.NewBudget(1, 0)
	assert.PanicsWithValue(t, "hook", func() {
		_ = retry.Do(t.Context(), retry.OneTime(0).WithBudget(outer), func(ctx context.Context) error {
			return retry.Do(ctx, retry.OneTime(0).WithBudget(inner), fails(errors.New("failure")))
		})
	})
	assert.Equal(t, 1.0, inner.Left())
}
