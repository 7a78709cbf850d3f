package retry

import (
	"context"
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
	onEmpty      []hook
	told         atomic.Bool // that it is empty, and it was not half full since
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

// Left is how many retries are left, with the parts that answers have given back. A
// retry is refused while Left is below 1.
func (b *Budget) Left() float64 { return float64(b.left.Load()) / part }

// OnEmpty adds a hook and returns b. It is called when b has run out, which is when b
// refuses a retry, in the goroutine that wanted to retry and with the context given to
// its Do. It is called once, and again only after b has been half full in between.
//
// The Attempt is the one that failed, as in OnRetry, without a delay. If it is a call
// beside another one that was refused, see Hedge, the Attempt has no Number and no
// Err. Hooks run in the order they were added. Add them before b is in use. A nil fn changes nothing.
func (b *Budget) OnEmpty(fn func(ctx context.Context, a Attempt)) *Budget {
	b.onEmpty = addHook(b.onEmpty, fn)
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
		now := min(b.size, left+n)
		if b.left.CompareAndSwap(left, now) {
			if now >= b.size/2 {
				b.told.Store(false)
			}
			return
		}
	}
}
