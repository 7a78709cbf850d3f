package deadlock

import "sync"

// Order is in which order owners of other libraries go, as a client has seen it. Their nodes do
// not say. All that nest have to go in one order, or they would wait for each other for ever. If
// that is ours, an owner that seems to wait for us gives back by itself what we wait for: it
// was another thread of that session which waits for us. If it is the reverse of ours, it
// does not. So suspicions that last count against our order, and those that pass for it.
//
// The zero Order is that of the paths.
type Order struct {
	mu      sync.Mutex // guards the fields below
	reverse bool
	against int // how many more lasted than passed
}

// mostAgainst is how many suspicions have to last before we take their order for the other one.
const mostAgainst = 3

// Reverse is whether they seem to go in the reverse of the order of the paths.
func (o *Order) Reverse() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reverse
}

// count counts a suspicion of a MultiLock that takes its locks in an order.
func (o *Order) count(reverse, lasts bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case reverse != o.reverse:
	case !lasts:
		o.against = max(0, o.against-1)
	default:
		if o.against++; o.against == mostAgainst {
			o.reverse, o.against = !o.reverse, 0
		}
	}
}
