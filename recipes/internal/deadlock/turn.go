package deadlock

import "time"

// Turn is for how long an attempt for several leases of a semaphore keeps its turn before
// it looks whether it is in the way. The zero Turn is that of an attempt that begins.
//
// Curator takes several leases one after another, and holds those it has while it queues
// for the next. Say that two owners have one of three leases each and want a second one,
// behind a caller at the head of the queue that wants two at once. All wait for ever: the
// two for their turn, and the head for a lease. So an attempt for several gives its turn up
// when nothing moves and somebody behind it has a lease already. It queues again at the
// end.
type Turn struct{ backoff time.Duration }

const (
	firstTurn = 250 * time.Millisecond
	mostTurn  = 4 * time.Second // without having yielded
)

// Next is the time to the next check. yields is whether there is one: an attempt for one
// lease never yields.
func (t *Turn) Next(leases int) (_ time.Duration, yields bool) {
	if t.backoff == 0 {
		t.backoff = firstTurn
	}
	return t.backoff, leases > 1
}

// Checked counts a check, which has shown or not that somebody behind the turn has a lease.
// The backoff doubles with each yield, so that owners who merely take long, in processes
// that want more leases meanwhile, do not starve the attempt.
func (t *Turn) Checked(inTheWay bool) {
	if inTheWay || t.backoff < mostTurn {
		t.backoff *= 2
	}
}
