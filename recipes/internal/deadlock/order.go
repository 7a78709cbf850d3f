package deadlock

import (
	"sync"
	"time"
)

// Order is in which order owners of other libraries go, as a client has seen it. Their nodes do
// not say. All that nest have to go in one order, or they would wait for each other for ever. If
// that is ours, what our MultiLocks wait for comes by itself, although such owners wait for them.
// If it is the reverse of ours, they often have to yield before anything comes.
//
// The zero Order is that of the paths.
type Order struct {
	mu       sync.Mutex // guards the fields below
	reverse  bool
	against  int       // what speaks against it, less what speaks for it
	yielded  time.Time // the latest that counted
	returned bool      // from the reverse order
}

const (
	// mostAgainst is how many yields turn the order, if nothing comes by itself.
	mostAgainst = 4
	// weight is how often something has to come by itself to outweigh a yield.
	weight = 8
	// turnWeight speaks for an order that has just turned, so five yields turn it again. With much less
	// four do. Beyond mostFor, more of it counts no longer.
	turnWeight = 12
	// mostFor limits what speaks for an order. Without a limit a client would not see that others have
	// changed their order.
	mostFor = 24
	// oneJam is how long after a yield others are most likely for the same reason.
	oneJam = 50 * time.Millisecond
	// jamTrips is oneJam in round trips. Far away locks are held for several of these. So a crowd
	// that goes in our order yields by time as often as elsewhere, and gets fewer locks meanwhile.
	jamTrips = 40
)

// Reverse is whether they seem to go in the reverse of the order of the paths.
func (o *Order) Reverse() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reverse
}

// Came says that a MultiLock has got one of its locks while such an owner waited for it. It takes
// its locks in the reverse order of the paths, or in theirs.
func (o *Order) Came(reverse bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if reverse == o.reverse {
		o.count(-1)
	}
}

// count takes something in, with o.mu held.
func (o *Order) count(against int) {
	if o.against = max(-mostFor, o.against+against); o.against > (mostAgainst-1)*weight {
		o.reverse, o.against, o.returned = !o.reverse, -turnWeight, o.reverse
	}
}

// Yielded says that a MultiLock has had to yield while such an owner waited for it. roundTrip is
// how long the servers take to answer. It counts half where others have said that they go in
// the order of the MultiLock, since those may have been the reason.
func (o *Order) Yielded(reverse, said bool, roundTrip time.Duration, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if reverse != o.reverse || now.Sub(o.yielded) < max(oneJam, jamTrips*roundTrip) {
		return
	}
	o.yielded = now
	against := weight
	if said {
		against /= 2
	}
	o.count(against)
}

// Hear says that somebody goes in the reverse order beside such owners: a MultiLock, whose client may have
// learned that, or an owner who says so. A client with reasons for its own order does not listen. Otherwise one mistake would
// turn a whole crowd, and two clients would take up from each other for ever what neither sees any more.
// Nor does one that has come back from the reverse order by itself. Where others change to the order of the
// paths, clients would hear from those that have not seen it yet, over and over.
func (o *Order) Hear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.reverse && !o.returned && o.against > -weight {
		o.reverse, o.against = true, 0
	}
}
