package retry_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/retry"
)

// doubling is 10ms, 20ms, 40ms and so on, written as a literal: without Reset
// its first delay would be 0.
func doubling() backoff.BackOff {
	return backoff.WithMaxRetries(&backoff.ExponentialBackOff{
		InitialInterval: 10 * ms, Multiplier: 2, MaxInterval: time.Minute, Stop: backoff.Stop, Clock: backoff.SystemClock,
	}, 3)
}

func TestFromBackOff(t *testing.T) {
	assert.Panics(t, func() { retry.FromBackOff(nil) })
	p := retry.FromBackOff(doubling)
	assert.Equal(t, []time.Duration{10 * ms, 20 * ms, 40 * ms}, delays(p, 5), "Next needs no state")
	assert.Equal(t, "backoff elapsed=1s", p.WithMaxElapsed(time.Second).String())
	assert.Empty(t, delays(retry.FromBackOff(func() backoff.BackOff { return nil }), 5))
	assert.Empty(t, delays(retry.FromBackOff(func() backoff.BackOff { return &backoff.StopBackOff{} }), 5))

	synctest.Test(t, func(t *testing.T) {
		made := 0
		p := retry.FromBackOff(func() backoff.BackOff { made++; return doubling() })
		for range 3 { // each loop starts anew
			at, e := trace(t.Context(), p)
			assert.Equal(t, []time.Duration{0, 10 * ms, 30 * ms, 70 * ms}, at)
			assert.Equal(t, retry.ErrExhausted, e.Reason)
		}
		assert.Equal(t, 3, made)
	})
}

func TestFromBackOffAroundOtherLoops(t *testing.T) {
	p := retry.FromBackOff(func() backoff.BackOff {
		return backoff.WithMaxRetries(&backoff.ZeroBackOff{}, 50)
	})
	var calls atomic.Int64
	_ = retry.Do(t.Context(), p, func(ctx context.Context) error {
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

func TestPermanentOfBackOff(t *testing.T) {
	p := retry.OneTime(0).WithClassifier(retry.As(func(*backoff.PermanentError) retry.Decision { return retry.Stop }))
	n, reason := attempts(t, p, backoff.Permanent(errFailure))
	assert.Equal(t, 1, n)
	assert.Equal(t, retry.ErrStopped, reason)
}

func TestToBackOff(t *testing.T) {
	p := retry.BoundedExponentialBackoff(10*ms, 50*ms, 3).WithJitter(retry.NoJitter)
	b := retry.ToBackOff(p)
	for range 2 {
		assert.Equal(t, 10*ms, b.NextBackOff())
		assert.Equal(t, 30*ms, b.NextBackOff())
		assert.Equal(t, 50*ms, b.NextBackOff())
		assert.Equal(t, backoff.Stop, b.NextBackOff())
		b.Reset()
	}
	assert.Equal(t, backoff.Stop, retry.ToBackOff(retry.Policy{}).NextBackOff())

	there := retry.ToBackOff(retry.FromBackOff(doubling))
	for range 2 {
		assert.Equal(t, 10*ms, there.NextBackOff())
		assert.Equal(t, 20*ms, there.NextBackOff())
		there.Reset()
	}
}

func TestToBackOffInTheirLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		op := func() error {
			at = append(at, time.Since(start))
			return errFailure
		}
		p := retry.Forever(time.Second).WithMaxElapsed(2500 * ms)
		assert.Equal(t, errFailure, backoff.Retry(op, backoff.WithContext(retry.ToBackOff(p), t.Context())))
		assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, at)
	})
}
