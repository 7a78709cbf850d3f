package retry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/retry"
)

// fails makes an op that fails with errs one after the other, then with the
// last one over and over. A nil error is a success.
func fails(errs ...error) func(context.Context) error {
	calls := 0
	return func(context.Context) error {
		err := errs[min(calls, len(errs)-1)]
		calls++
		return err
	}
}

// hookNumbers makes a hook that appends the attempt's number to told.
func hookNumbers(told *[]int) func(context.Context, retry.Attempt) {
	return func(_ context.Context, a retry.Attempt) { *told = append(*told, a.Number) }
}

func TestIsZero(t *testing.T) {
	assert.True(t, retry.Policy{}.IsZero())
	hook := func(context.Context, retry.Attempt) {}
	for name, p := range map[string]retry.Policy{
		"none":       retry.None(),
		"name":       retry.Policy{}.Named("name"),
		"jitter":     retry.Policy{}.WithJitter(retry.NoJitter),
		"elapsed":    retry.Policy{}.WithMaxElapsed(1),
		"timeout":    retry.Policy{}.WithAttemptTimeout(1),
		"after":      retry.Policy{}.WithMaxAfter(1),
		"classifier": retry.Policy{}.WithClassifier(retry.On()),
		"budget":     retry.Policy{}.WithBudget(retry.NewBudget(1, 1)),
		"retry hook": retry.Policy{}.OnRetry(hook),
		"done hook":  retry.Policy{}.OnDone(hook),
	} {
		assert.False(t, p.IsZero(), name)
	}
}

func TestNilChangesNothing(t *testing.T) {
	p := retry.Policy{}.WithClassifier(nil).WithFallback(nil).WithBudget(nil).OnRetry(nil).OnDone(nil)
	assert.True(t, p.IsZero())
	assert.NoError(t, retry.Do(t.Context(), retry.OneTime(0), fails(errors.New("once"), nil), nil), "nor does a nil option")
}

// Two policies derived from one must not share what was added to them, nor
// write to the array behind a slice they have in common.
func TestPoliciesAreValues(t *testing.T) {
	var a, b, base []int
	root := retry.OneTime(0)
	for range 3 { // leaves room in the arrays
		root = root.OnRetry(hookNumbers(&base)).OnDone(hookNumbers(&base))
	}
	left := root.OnRetry(hookNumbers(&a)).OnDone(hookNumbers(&a)).Named("left")
	right := root.OnRetry(hookNumbers(&b)).OnDone(hookNumbers(&b)).WithMaxElapsed(time.Second)

	failure := errors.New("failure")
	err := retry.Do(t.Context(), left, fails(failure))
	assert.ErrorContains(t, err, "retry left: ")
	assert.Equal(t, []int{1, 2}, a)
	assert.Empty(t, b)
	_ = retry.Do(t.Context(), right, fails(failure))
	assert.Equal(t, []int{1, 2}, a)
	assert.Equal(t, []int{1, 2}, b)
	assert.Equal(t, []int{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}, base)
	assert.Equal(t, "onetime sleep=0s", root.String())
}

func TestHooksRunInTheOrderTheyWereAdded(t *testing.T) {
	var order []string
	say := func(what string) func(context.Context, retry.Attempt) {
		return func(context.Context, retry.Attempt) { order = append(order, what) }
	}
	p := retry.OneTime(0).OnDone(say("done 1")).OnRetry(say("retry 1")).OnRetry(say("retry 2")).OnDone(say("done 2"))
	assert.NoError(t, retry.Do(t.Context(), p, fails(errors.New("once"), nil)))
	assert.Equal(t, []string{"retry 1", "retry 2", "done 1", "done 2"}, order)
}

// A duration without a unit is told, before anything is tried.
func TestDurationsWithoutAUnit(t *testing.T) {
	for want, p := range map[string]retry.Policy{
		"the base is 1µs":             retry.ExponentialBackoff(1000, 3),
		"maxSleep is 30µs":            retry.BoundedExponentialBackoff(time.Millisecond, 30000, 3),
		"the sleep is 100ns":          retry.NTimes(3, 100),
		"the interval is 5ns":         retry.Forever(5),
		"the limit is 60µs":           retry.UntilElapsed(60000, time.Second),
		"the sleep is 99.999µs":       retry.UntilElapsed(time.Minute, 99999),
		"WithMaxElapsed is 10ns":      retry.None().WithMaxElapsed(10),
		"WithAttemptTimeout is 5ns":   retry.None().WithAttemptTimeout(5),
		"WithMaxAfter is 60ns":        retry.None().WithMaxAfter(60),
		"WithAttemptTimeout is 2.5µs": retry.Policy{}.WithAttemptTimeout(2500),
	} {
		assert.ErrorContains(t, p.Validate(), want+": it must be 100µs at least (a number alone counts nanoseconds: write ")
		calls := 0
		hook := func(context.Context, retry.Attempt) { calls++ }
		err := retry.Do(t.Context(), p.Named("orders").OnDone(hook), func(context.Context) error { calls++; return nil })
		assert.ErrorContains(t, err, "retry orders: "+want)
		assert.Zero(t, calls)
	}
	for _, p := range []retry.Policy{{}, retry.None(), retry.NTimes(3, 0), retry.ExponentialBackoff(0, 3), retry.ExponentialBackoff(100*time.Microsecond, 3),
		retry.Forever(0), retry.UntilElapsed(0, 0), retry.Custom("own", func(int, time.Duration) (time.Duration, bool) { return 1, true })} {
		assert.NoError(t, p.Validate(), "%v", p)
	}
}
