package locks

import (
	"bytes"
	"runtime"
	"strconv"
	"sync"
)

// goroutines are the holds of the process, by the goroutines that have acquired them. An owner that
// takes several locks most often does so in one goroutine, also if it does not pass on the contexts of
// its holds. So its nodes can say that they say nothing, and all others can be taken at their word,
// see [decision 30]. No lock is granted, re-entered or refused by it.
//
// It has those alone that were not acquired under another hold, nor left by another goroutine of the
// client: that happens only where no MultiLock is about.
//
// [decision 30]: https://github.com/paddock-zk/paddock/blob/main/docs/decisions/030-what-a-goroutine-has.md
var goroutines = heldBy{of: make(map[uint64]*Hold)}

type heldBy struct {
	mu sync.Mutex       // guards the field below, and earlier and later of the holds in it
	of map[uint64]*Hold // by goroutine, the first one: they are a ring
}

// firstLines are buffers for what the runtime writes about a goroutine. Each would be an allocation.
var firstLines = sync.Pool{New: func() any { return new([len("goroutine 18446744073709551615 ")]byte) }}

// goroutine is the number of the calling goroutine. The runtime gives a number to one only.
// It is 0 if it cannot be read, and then all such goroutines count as one.
func goroutine() uint64 {
	line := firstLines.Get().(*[len("goroutine 18446744073709551615 ")]byte) //nolint:forcetypeassert // nothing else is in it
	defer firstLines.Put(line)
	_, number, _ := bytes.Cut(line[:runtime.Stack(line[:], false)], []byte(" "))
	number, _, _ = bytes.Cut(number, []byte(" "))
	n, _ := strconv.ParseUint(string(number), 10, 64)
	return n
}

// notes is whether it has a hold, as long as that goes on.
func (b *heldBy) notes(h *Hold) bool {
	return h.chain.outer == nil && h.ownership.queue != nil && h.ownership.handovers == 0
}

// acquired notes a hold that the calling goroutine has acquired.
func (b *heldBy) acquired(h *Hold) {
	if !b.notes(h) {
		return
	}
	number := goroutine()
	h.mu.Lock() // it may have been lost meanwhile
	defer h.mu.Unlock()
	if h.ended != nil {
		return
	}
	h.goroutine = number
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.of[number]
	if first == nil {
		b.of[number], first, h.earlier = h, h, h
	}
	h.earlier, h.later = first.earlier, first
	h.earlier.later, first.earlier = h, h
}

// ended forgets a hold that is released or lost, with the hold's mu held.
func (b *heldBy) ended(h *Hold) {
	if !b.notes(h) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case h.later == nil: // it had ended before it was noted
		return
	case h.later == h:
		delete(b.of, h.goroutine)
	case b.of[h.goroutine] == h:
		b.of[h.goroutine] = h.later
	}
	h.earlier.later, h.later.earlier = h.later, h.earlier
	h.earlier, h.later = nil, nil
}

// first is the first hold that the calling goroutine has acquired and that goes on, nil for none.
func (b *heldBy) first() *Hold {
	b.mu.Lock()
	none := len(b.of) == 0
	b.mu.Unlock()
	if none { // most often where few locks are held
		return nil
	}
	number := goroutine()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of[number]
}
