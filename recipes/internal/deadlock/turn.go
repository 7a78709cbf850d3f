package deadlock

import "time"

// Turn says how long an attempt for several leases of a semaphore keeps its turn before
// it checks whether it is in the way. The zero Turn is for an attempt that begins.
//
// Curator takes several leases one after another, and holds those it has while it queues
// for the next. Say that two owners have one of three leases each and want a second one,
// behind a caller at the head of the queue that wants two at once. All wait for ever: the
// two for their turn, and the head for a lease. So an attempt for several leases gives up
// its turn when nothing moves and a participant behind it has a lease already. It queues
// again at the end.
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

// Checked counts a check. inTheWay is whether it has shown a participant behind the turn
// with a lease. The backoff doubles with each yield. Otherwise owners that only hold for
// long, in processes that want more leases meanwhile, could starve the attempt.
func (t *Turn) Checked(inTheWay bool) {
	if inTheWay || t.backoff < mostTurn {
		t.backoff *= 2
	}
}
