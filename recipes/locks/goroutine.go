package locks

import (
	"bytes"
	"runtime"
	"slices"
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
var goroutines = heldBy{of: make(map[uint64][]*Hold)}

type heldBy struct {
	mu sync.Mutex
	of map[uint64][]*Hold // by goroutine, the first one first
}

// goroutine is the number of the calling goroutine. The runtime gives a number to one only.
// It is 0 if it cannot be read, and then all such goroutines count as one.
func goroutine() uint64 {
	var line [len("goroutine 18446744073709551615 ")]byte
	_, number, _ := bytes.Cut(line[:runtime.Stack(line[:], false)], []byte(" "))
	number, _, _ = bytes.Cut(number, []byte(" "))
	n, _ := strconv.ParseUint(string(number), 10, 64)
	return n
}

// acquired notes a hold that the calling goroutine has acquired.
func (b *heldBy) acquired(h *Hold) {
	if h.chain.outer != nil || h.ownership.queue == nil || h.ownership.handovers > 0 {
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
	b.of[number] = append(b.of[number], h)
}

// ended forgets a hold that is released or lost, with the hold's mu held.
func (b *heldBy) ended(h *Hold) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := slices.DeleteFunc(b.of[h.goroutine], func(other *Hold) bool { return other == h })
	if b.of[h.goroutine] = left; len(left) == 0 {
		delete(b.of, h.goroutine)
	}
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
	if all := b.of[number]; len(all) > 0 {
		return all[0]
	}
	return nil
}
