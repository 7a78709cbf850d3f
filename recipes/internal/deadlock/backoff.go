package deadlock

import (
	"math"
	"time"
)

// backoff is for how long somebody has to have been in our way before we yield. It grows
// by a quarter with each yield, as that owner may be about to go: it may be innocent, or
// tired of waiting for us. When it has come to its most in vain, it begins anew: an owner
// that waits for us in truth does so for ever, and meanwhile nobody gets anything. Only
// if waiting has paid, it goes on to twice as much: there locks are held for longer than
// that.
type backoff struct {
	most   time.Duration
	yields int // since it began
}

const (
	firstBackoff = time.Millisecond
	mostBackoff  = 450 * time.Millisecond
	endless      = time.Hour
	growth       = 1.25 // with each yield
)

func (b *backoff) time() time.Duration {
	return time.Duration(min(float64(firstBackoff)*math.Pow(growth, float64(b.yields)), float64(b.most)))
}

func (b *backoff) yielded() {
	if b.time() >= b.most {
		b.yields = 0
		return
	}
	b.yields++
}

// worth says that waiting has paid. While it has been short, that says nothing about a
// longer one.
func (b *backoff) worth() {
	if b.time() >= b.most/4 {
		b.most = min(2*b.most, endless)
	}
}

// stallTimeout is the backoff with those of whom nothing shows. It is a part of the time
// that we have waited. So of MultiLocks that are stuck together the one that came last
// yields first, and one that has waited for long does not begin anew with each of those
// that come. That time counts from the latest connection, since through a fault it says
// nothing of the others. It has a limit, as nobody else shall have to wait for longer
// because of a MultiLock that waits for somebody who holds a lock for hours.
type stallTimeout struct {
	waiting time.Time // since when, on this connection
	yields  int       // to those
	last    time.Time // of them
}

const (
	leastStall = 20 * time.Millisecond
	stallShare = 10 // of the wait that part
	mostStall  = 10 * time.Second
	hasty      = 12 // yields
	// The look that comes when it ends is late by up to that part of it, so that
	// those who are stuck together do not all yield.
	stallJitter = 4
)

func (s *stallTimeout) time(now time.Time) time.Duration {
	return min(max(leastStall, now.Sub(s.waiting)/stallShare), mostStall)
}

func (s *stallTimeout) yielded(now time.Time) {
	s.last = now
	s.yields++
}

// rests is whether it is too early to yield to other MultiLocks once more. Those that wait
// for the same owner would pass their nodes round among themselves, and come to the end of
// their backoff with nobody else having moved.
func (s *stallTimeout) rests(now time.Time) bool {
	return s.yields > hasty && now.Sub(s.last) < s.time(now)/2
}
