package deadlock

import (
	"math"
	"time"
)

// backoff is how long an owner has to have been in our way before we yield. It grows by a
// quarter with each yield, as that owner may be about to go: it may be innocent, or tired
// of waiting for us. When it has reached its limit in vain, it begins anew: an owner that
// really waits for us does so for ever, and meanwhile nobody gets anything. Only if
// waiting has paid, it goes on to twice as much, up to mostPatience: there locks are held
// for longer than that.
type backoff struct {
	first  time.Duration
	most   time.Duration
	yields int // since it began
}

const (
	firstBackoff = time.Millisecond
	firstUnsure  = 20 * time.Millisecond // with one that may wait for us
	mostUntagged = 50 * time.Millisecond // with one of another library, while no yield has made it longer
	mostBackoff  = 450 * time.Millisecond
	growth       = 1.25 // with each yield
)

// mostPatience limits every backoff, whatever was learned. Meanwhile nobody gets anything if
// owners wait for each other. Where owners take the locks in the reverse order over and over
// and hold them for longer than that, MultiLocks are hardly ever served.
const mostPatience = 3500 * time.Millisecond

func (b *backoff) time() time.Duration {
	return time.Duration(min(float64(b.first)*math.Pow(growth, float64(b.yields)), float64(b.most)))
}

func (b *backoff) yielded() {
	if b.time() >= b.most {
		b.yields = 0
		return
	}
	b.yields++
}

// worth says that waiting has paid. If the wait was short, this says nothing about a
// longer one.
func (b *backoff) worth() {
	if b.time() >= b.most/4 {
		b.most = min(2*b.most, mostPatience)
	}
}

// stallTimeout is the backoff with owners of which the queues show nothing. It is a part
// of the time that we have waited. So of MultiLocks that are stuck together, the one that
// came last yields first. One that has waited for long does not begin anew with each
// newcomer. The time counts from the latest connection, since a wait during a fault says
// nothing of the others. The backoff has a limit, but see beside. Otherwise a MultiLock that waits for
// an owner which holds its lock for hours would make others wait as long.
type stallTimeout struct {
	waiting time.Time // since when, on this connection
	patient bool      // see Begin and TurnRound
	library bool      // an owner of another library, or one whose node says as little, waited behind us at the latest check
}

// beside is the backoff if others who take their locks in another way wait behind us. It has no
// limit where all say what they have, since what we wait for may be held for as long: we make room
// at once for those who have a lock, if that may help. Owners of other libraries say nothing, so it is
// shorter with them, unless we are patient.
func (s *stallTimeout) beside(now time.Time) time.Duration {
	switch {
	case s.library && s.patient:
		return max(besideStall, s.time(now))
	case s.library:
		return min(max(libraryStall, s.time(now)), besideStall)
	}
	return max(besideStall, now.Sub(s.waiting)/stallShare)
}

const (
	besideStall  = 300 * time.Millisecond
	libraryStall = 100 * time.Millisecond // the least with owners of other libraries
	leastStall   = 20 * time.Millisecond
	stallShare   = 10 // of the wait that part
	// The look at its end is late by up to this part of it, so that MultiLocks that are
	// stuck together do not all yield.
	stallJitter = 4
)

func (s *stallTimeout) time(now time.Time) time.Duration {
	return min(max(leastStall, now.Sub(s.waiting)/stallShare), mostPatience)
}
