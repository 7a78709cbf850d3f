package retry

import (
	"math"
	"sync/atomic"
)

// Budget keeps many callers from retrying a failing dependency all at once. A
// retry costs one, and a call that gets an answer gives back a part of one: a
// success, or a failure that is judged Stop, such as "not found". It is safe for
// use by many goroutines.
type Budget struct {
	size, refill int64 // in parts
	left         atomic.Int64
}

const (
	// part divides a retry. Counting in whole parts keeps ten refills of 0.1
	// equal to one retry, which adding floats would not.
	part = 1_000_000
	// maxRetries keeps sums of parts far from overflowing.
	maxRetries = 1_000_000_000_000
)

// NewBudget makes a budget that is full. It holds at most size retries, and
// each answer gives back refill of one, to the sixth decimal. With a refill of
// 0.1, once the first size retries are spent, there is at most one retry for
// ten answers. A size or refill below 0, or not a number, counts as 0.
func NewBudget(size int, refill float64) *Budget {
	if math.IsNaN(refill) {
		refill = 0
	}
	b := &Budget{
		size:   min(max(0, int64(size)), maxRetries) * part,
		refill: int64(math.Round(min(max(0, refill), maxRetries) * part)),
	}
	b.left.Store(b.size)
	return b
}

// spend takes one retry if there is one.
func (b *Budget) spend() bool {
	for {
		left := b.left.Load()
		if left < part {
			return false
		}
		if b.left.CompareAndSwap(left, left-part) {
			return true
		}
	}
}

// add gives back n parts. A full budget, the usual case, is only read.
func (b *Budget) add(n int64) {
	for {
		left := b.left.Load()
		if left >= b.size {
			return
		}
		if b.left.CompareAndSwap(left, min(b.size, left+n)) {
			return
		}
	}
}
