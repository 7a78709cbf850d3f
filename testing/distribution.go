package zktest

import (
	"math/rand/v2"
	"time"
)

// Distribution draws durations. It must draw all random numbers from r.
type Distribution func(r *rand.Rand) time.Duration

// Always draws d.
func Always(d time.Duration) Distribution {
	return func(*rand.Rand) time.Duration { return d }
}

// Uniform draws between least and most, to the nanosecond.
func Uniform(least, most time.Duration) Distribution {
	return func(r *rand.Rand) time.Duration { return least + time.Duration(r.Int64N(int64(most-least)+1)) }
}

// Exponential draws from an exponential distribution with the given mean, and
// nothing above most.
func Exponential(mean, most time.Duration) Distribution {
	return func(r *rand.Rand) time.Duration {
		return time.Duration(min(r.ExpFloat64()*float64(mean), float64(most)))
	}
}

// Sometimes draws from d with the probability p, and 0 otherwise.
func Sometimes(p float64, d Distribution) Distribution {
	return func(r *rand.Rand) time.Duration {
		if r.Float64() >= p {
			return 0
		}
		return d(r)
	}
}
