package retry

import (
	"math/rand/v2"
	"time"
)

// Jitter is a way to spread delays, so that callers that failed together do not
// come back together.
type Jitter int

const (
	// CuratorJitter leaves the policy's own formula as it is: random multiples
	// of the base for the exponential policies, and a fixed delay for the
	// others.
	CuratorJitter Jitter = iota
	// NoJitter waits the formula's upper bound, exactly. For the exponential
	// policies that is base times 1, 3, 7, 15 and so on.
	NoJitter
	// FullJitter waits anything from 0 to the upper bound.
	FullJitter
	// EqualJitter waits half of the upper bound and up to as much again.
	EqualJitter
)

// String returns the word that Parse reads, such as "full".
func (j Jitter) String() string {
	switch j {
	case NoJitter:
		return "none"
	case FullJitter:
		return "full"
	case EqualJitter:
		return "equal"
	}
	return "curator"
}

// spread turns what a policy says into a delay. Curator's formula is in schedule.go.
func (j Jitter) spread(own, bound time.Duration) time.Duration {
	switch j {
	case NoJitter:
		return bound
	case FullJitter:
		return upTo(bound)
	case EqualJitter:
		half := bound / 2
		return bound - half + upTo(half)
	}
	return own
}

// upTo includes d; counting unsigned, d+1 does not overflow.
func upTo(d time.Duration) time.Duration {
	return time.Duration(rand.Uint64N(uint64(d) + 1))
}
