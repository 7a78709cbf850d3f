package retry_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/retry"
)

const (
	ms      = time.Millisecond
	longest = time.Duration(math.MaxInt64)
)

// delays asks p for n delays, as a loop without work would.
func delays(p retry.Policy, n int) []time.Duration {
	var all []time.Duration
	var elapsed time.Duration
	for retries := range n {
		delay, ok := p.Next(retries, elapsed)
		if !ok {
			break
		}
		all = append(all, delay)
		elapsed += delay
	}
	return all
}

func TestSchedules(t *testing.T) {
	cases := []struct {
		name   string
		policy retry.Policy
		want   []time.Duration // at most 4 are asked for
	}{
		{"zero policy", retry.Policy{}, nil},
		{"none", retry.None(), nil},
		{"exponential's bounds", retry.ExponentialBackoff(10*ms, 4).WithJitter(retry.NoJitter), []time.Duration{10 * ms, 30 * ms, 70 * ms, 150 * ms}},
		{"exponential ends", retry.ExponentialBackoff(10*ms, 2).WithJitter(retry.NoJitter), []time.Duration{10 * ms, 30 * ms}},
		{"first exponential wait is the base", retry.ExponentialBackoff(10*ms, 1), []time.Duration{10 * ms}},
		{"exponential without retries", retry.ExponentialBackoff(10*ms, 0), nil},
		{"exponential with negative retries", retry.ExponentialBackoff(10*ms, -1), nil},
		{"exponential with negative base", retry.ExponentialBackoff(-10*ms, 2), []time.Duration{0, 0}},
		{"bounded", retry.BoundedExponentialBackoff(10*ms, 40*ms, 4).WithJitter(retry.NoJitter), []time.Duration{10 * ms, 30 * ms, 40 * ms, 40 * ms}},
		{"bounded below base", retry.BoundedExponentialBackoff(10*ms, 5*ms, 2), []time.Duration{5 * ms, 5 * ms}},
		{"bounded by 0 is not bounded", retry.BoundedExponentialBackoff(10*ms, 0, 2).WithJitter(retry.NoJitter), []time.Duration{10 * ms, 30 * ms}},
		{"n times", retry.NTimes(2, ms), []time.Duration{ms, ms}},
		{"negative times", retry.NTimes(-1, ms), nil},
		{"negative sleep", retry.NTimes(2, -ms), []time.Duration{0, 0}},
		{"one time", retry.OneTime(ms), []time.Duration{ms}},
		{"forever", retry.Forever(2 * ms), []time.Duration{2 * ms, 2 * ms, 2 * ms, 2 * ms}},
		{"forever without interval", retry.Forever(0), []time.Duration{ms, ms, ms, ms}},
		{"forever with negative interval", retry.Forever(-ms), []time.Duration{ms, ms, ms, ms}},
		{"until elapsed may pass the limit once", retry.UntilElapsed(5*ms, 2*ms), []time.Duration{2 * ms, 2 * ms, 2 * ms}},
		{"until elapsed ends at the limit", retry.UntilElapsed(4*ms, 2*ms), []time.Duration{2 * ms, 2 * ms}},
		{"until elapsed without sleep", retry.UntilElapsed(2*ms, 0), []time.Duration{ms, ms}},
		{"until elapsed without limit", retry.UntilElapsed(0, ms), nil},
		{"max elapsed may be met", retry.NTimes(4, 2*ms).WithMaxElapsed(4 * ms), []time.Duration{2 * ms, 2 * ms}},
		{"max elapsed may not be passed", retry.NTimes(4, 2*ms).WithMaxElapsed(5 * ms), []time.Duration{2 * ms, 2 * ms}},
		{"max elapsed removed", retry.OneTime(2 * ms).WithMaxElapsed(ms).WithMaxElapsed(-1), []time.Duration{2 * ms}},
		{"custom", retry.Custom("halves", func(retries int, _ time.Duration) (time.Duration, bool) {
			return 8 * ms >> retries, retries < 3
		}), []time.Duration{8 * ms, 4 * ms, 2 * ms}},
		{"custom below 0", retry.Custom("below", func(retries int, _ time.Duration) (time.Duration, bool) {
			return -ms, retries < 1
		}), []time.Duration{0}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, delays(tc.policy, 4))
		})
	}
}

func TestNextTakesNegativeRetriesForNone(t *testing.T) {
	delay, ok := retry.OneTime(ms).Next(-5, 0)
	assert.True(t, ok)
	assert.Equal(t, ms, delay)
}

// Curator multiplies the base by max(1, r), r being uniform below 2^(retry+1).
func TestExponentialBackoffIsCuratorsFormula(t *testing.T) {
	const draws = 20_000
	for retries := range 4 {
		n := 1 << (retries + 1)
		seen := make(map[time.Duration]int)
		for range draws {
			delay, ok := retry.ExponentialBackoff(ms, 10).Next(retries, 0)
			assert.True(t, ok)
			seen[delay]++
		}
		assert.Len(t, seen, n-1, "after %d retries", retries)
		for factor := 1; factor < n; factor++ {
			share := 1.0
			if factor == 1 {
				share = 2 // 0 counts as 1
			}
			// The standard deviation of each share is below 0.0036: 0.03 is more than 8 of it.
			assert.InDelta(t, share/float64(n), float64(seen[time.Duration(factor)*ms])/draws, 0.03,
				"%d times the base after %d retries", factor, retries)
		}
	}
}

// Source: Curator TestRetryLoop.testExponentialBackoffRetryLimit.
func TestExponentialBackoffStaysInBoundsForAnyRetry(t *testing.T) {
	bounded := retry.BoundedExponentialBackoff(ms, 100*ms, math.MaxInt)
	free := retry.ExponentialBackoff(ms, math.MaxInt)
	overflowing := retry.ExponentialBackoff(longest/2, math.MaxInt).WithJitter(retry.NoJitter)
	for _, retries := range []int{0, 1, 5, 28, 29, 30, 62, 63, 64, 1000, math.MaxInt - 1} {
		delay, ok := bounded.Next(retries, 0)
		assert.True(t, ok)
		assert.LessOrEqual(t, delay, 100*ms, "retry %d", retries)
		assert.GreaterOrEqual(t, delay, ms, "retry %d", retries)

		delay, ok = free.Next(retries, 0)
		assert.True(t, ok)
		assert.Less(t, delay, ms<<29, "the exponent is pinned at 29, retry %d", retries)
		assert.GreaterOrEqual(t, delay, ms, "retry %d", retries)

		delay, ok = overflowing.Next(retries, 0)
		assert.True(t, ok)
		assert.GreaterOrEqual(t, delay, longest/2, "retry %d", retries)
	}
	delay, _ := free.WithJitter(retry.NoJitter).Next(100, 0)
	assert.Equal(t, ms*(1<<29-1), delay)
	delay, _ = overflowing.Next(100, 0)
	assert.Equal(t, longest, delay)
}

func TestMaxElapsedDoesNotOverflow(t *testing.T) {
	_, ok := retry.NTimes(1, longest).WithMaxElapsed(time.Hour).Next(0, longest)
	assert.False(t, ok)
	_, ok = retry.NTimes(1, longest).WithMaxElapsed(longest).Next(0, 0)
	assert.True(t, ok)
}

func TestCustomWithoutFunction(t *testing.T) {
	assert.Panics(t, func() { retry.Custom("nil", nil) })
}
