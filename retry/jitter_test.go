package retry_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/retry"
)

func TestJitter(t *testing.T) {
	const draws = 20_000
	base := 1000 * ms // bounds of 1, 3, 7 s
	cases := []struct {
		jitter          retry.Jitter
		least, most     time.Duration // after 2 retries
		mean, closeness float64       // in seconds
	}{
		{retry.NoJitter, 7000 * ms, 7000 * ms, 7, 1e-9},
		{retry.FullJitter, 0, 7000 * ms, 3.5, 0.15}, // standard deviation of the mean: 0.0143
		{retry.EqualJitter, 3500 * ms, 7000 * ms, 5.25, 0.1},
		{retry.CuratorJitter, 1000 * ms, 7000 * ms, 29.0 / 8, 0.2},
	}
	for _, tc := range cases {
		t.Run(tc.jitter.String(), func(t *testing.T) {
			p := retry.ExponentialBackoff(base, 3).WithJitter(tc.jitter)
			var sum time.Duration
			for range draws {
				delay, ok := p.Next(2, 0)
				assert.True(t, ok)
				if delay < tc.least || delay > tc.most {
					t.Fatalf("delay %v is not between %v and %v", delay, tc.least, tc.most)
				}
				sum += delay
			}
			assert.InDelta(t, tc.mean, (sum / draws).Seconds(), tc.closeness)
		})
	}
}

func TestJitterSpreadsEverySchedule(t *testing.T) {
	custom := retry.Custom("custom", func(int, time.Duration) (time.Duration, bool) { return time.Second, true })
	for _, p := range []retry.Policy{retry.Forever(time.Second), retry.UntilElapsed(time.Hour, time.Second), custom} {
		seen := make(map[time.Duration]bool)
		for range 100 {
			delay, ok := p.WithJitter(retry.FullJitter).Next(0, 0)
			assert.True(t, ok)
			assert.LessOrEqual(t, delay, time.Second)
			seen[delay] = true
		}
		assert.Greater(t, len(seen), 50, "%v: a second has many nanoseconds to choose from", p)
	}
}

func TestJitterAtTheEdges(t *testing.T) {
	for _, bound := range []time.Duration{0, 1, 2, 3, longest} {
		for j := retry.CuratorJitter; j <= retry.EqualJitter; j++ {
			delay, ok := retry.OneTime(bound).WithJitter(j).Next(0, 0)
			assert.True(t, ok)
			assert.GreaterOrEqual(t, delay, time.Duration(0), "%v of %v", j, bound)
			assert.LessOrEqual(t, delay, bound, "%v of %v", j, bound)
		}
	}
}

func TestUnknownJitterIsCurators(t *testing.T) {
	for _, j := range []retry.Jitter{-1, 99} {
		p := retry.OneTime(ms).WithJitter(j)
		assert.Equal(t, []time.Duration{ms}, delays(p, 2))
		assert.Equal(t, "onetime sleep=1ms", p.String())
		assert.Equal(t, "curator", j.String())
	}
}
