package deadlock

import (
	"math"
	"time"
)

// backoff is for how long somebody has to have been in our way before we yield. It grows
// by a quarter with each yield, as that owner may be about to go: it may be innocent, or
// tired of waiting for us. When it has come to its most in vain, it begins anew: an owner
// that waits for us in truth does so for ever, and meanwhile nobody gets anything. Only
// if waiting has paid, it goes on to twice as much, in larger steps: there locks are held
// for longer than that.
type backoff struct {
	first, most time.Duration
	yields      int  // since it began
	paid        bool // waiting has
}

const (
	firstSure   = time.Millisecond     // with an owner that waits for us
	firstUnsure = 2 * time.Millisecond // with one that may
	mostBackoff = 450 * time.Millisecond
	endless     = time.Hour
)

// By how much a backoff grows with each yield.
const (
	slowly  = 1.25
	quickly = 2
)

// grown is what a backoff has become by yields.
func grown(first, most time.Duration, growth float64, yields int) time.Duration {
	return time.Duration(min(float64(first)*math.Pow(growth, float64(yields)), float64(most)))
}

func (b *backoff) time() time.Duration {
	growth := slowly
	if b.paid {
		growth = quickly
	}
	return grown(b.first, b.most, growth, b.yields)
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
		b.most, b.paid = min(2*b.most, endless), true
	}
}

// stallTimeout is the backoff with those of whom nothing shows. It grows with each time
// that we yield, and is a part of the time that we have waited at least. So of MultiLocks
// that are stuck together the one that came last yields first, and one that has waited for
// long does not begin anew with each of those that come. That time counts from the latest
// connection, since through a fault it says nothing of the others. It has a limit, as
// nobody else shall have to wait for longer because of a MultiLock that waits for somebody
// who holds a lock for hours.
type stallTimeout struct {
	waiting time.Time // since when, on this connection
	yields  int
	last    time.Time // that we yielded
}

const (
	leastStall = 20 * time.Millisecond
	mostGrown  = 500 * time.Millisecond // by yields, and
	grownShare = 4                      // of the wait at most that part
	stallShare = 10                     // of the wait at least that part
	mostStall  = 10 * time.Second
	hasty      = 12 // yields
	// The look that comes when it ends is late by up to that part of it, so that
	// those who are stuck together do not all yield.
	stallJitter = 4
)

func (s *stallTimeout) time(now time.Time) time.Duration {
	waited := now.Sub(s.waiting)
	byYields := grown(leastStall, mostGrown, slowly, s.yields)
	return max(leastStall, min(byYields, waited/grownShare), min(waited/stallShare, mostStall))
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
