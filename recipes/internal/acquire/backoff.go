package acquire

import (
	"math"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/internal/transport"
)

// backoff is for how long somebody has to have been in our way before a MultiLock
// yields. It grows by a quarter with each time, as who is in our way may be
// about to go: innocent, or tired of waiting for us. When it has come to its
// most in vain, it begins anew, since who waits for us in truth does so for
// ever, and meanwhile nobody gets anything. Only if waiting has paid, it goes on
// to twice as much, in larger steps: there locks are held for longer than that.
type backoff struct {
	first, most time.Duration
	yields      int  // since it began
	paid        bool // waiting has
}

const (
	firstSure    = time.Millisecond
	firstUnsure  = 2 * time.Millisecond
	mostPatience = 450 * time.Millisecond
	endless      = time.Hour
)

// backoffs are those of one MultiLock, and what shows whether they pay.
type backoffs struct {
	sure     backoff      // with an owner that waits for us
	unsure   backoff      // with one that may
	stall    stallTimeout // with any other
	suspects []suspectedCycle
	rounds   int // of lists
}

func newBackoffs(now time.Time) backoffs {
	return backoffs{
		sure:   backoff{first: firstSure, most: mostPatience},
		unsure: backoff{first: firstUnsure, most: mostPatience},
		stall:  stallTimeout{waiting: now},
	}
}

// grown is what a backoff has become by yields.
func grown(first, most time.Duration, growth float64, yields int) time.Duration {
	return time.Duration(min(float64(first)*math.Pow(growth, float64(yields)), float64(most)))
}

// By how much a backoff grows with each yield.
const (
	slowly  = 1.25
	quickly = 2
)

func (p *backoff) time() time.Duration {
	growth := slowly
	if p.paid {
		growth = quickly
	}
	return grown(p.first, p.most, growth, p.yields)
}

func (p *backoff) yielded() {
	if p.time() >= p.most {
		p.yields = 0
		return
	}
	p.yields++
}

// worth says that waiting has paid. While it has been short, that says nothing
// about a longer one.
func (p *backoff) worth() {
	if p.time() >= p.most/4 {
		p.most, p.paid = min(2*p.most, endless), true
	}
}

// stallTimeout is the backoff with those of whom nothing shows. It grows with each time
// that we yield, and is a part of the time that we have waited at least: of MultiLocks
// that are stuck together the one that came last yields first, and who has waited
// for long does not begin anew with each of those who come. That time counts from
// the latest connection, since through a fault it says nothing of the others. It
// has a limit, as nobody else shall have to wait for longer because of a MultiLock
// that waits for somebody who holds a lock for hours.
type stallTimeout struct {
	waiting time.Time // since when, on this connection
	conn    *transport.Conn
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

// rests is whether it is too early to yield to other MultiLocks once more. Those
// that wait for the same owner would pass their contenders round among themselves,
// and come to the end of their backoff with nobody else having moved.
func (s *stallTimeout) rests(now time.Time) bool {
	return s.yields > hasty && now.Sub(s.last) < s.time(now)/2
}

// suspectedCycle is that who has what we wait for waits behind us.
type suspectedCycle struct {
	*backoff
	at    *member // where we were first
	own   string  // our node there
	waits string
	of    *member // that we wait in
	has   string
}

// remember keeps a suspected cycle until it has turned out right or wrong. Other
// MultiLocks are none of it: their nodes go when they yield as well.
func (g *backoffs) remember(s suspectedCycle, multi bool) {
	if !multi && !slices.Contains(g.suspects, s) {
		g.suspects = append(g.suspects, s)
	}
}

// learn looks what has come of suspicions. Who gave back what we wait for while
// still waiting had not waited for us, and who no longer waits although we never
// let it pass was tired of it: with either, backoff has paid or would have.
func (g *backoffs) learn() {
	g.suspects = slices.DeleteFunc(g.suspects, func(s suspectedCycle) bool {
		if s.at.seen != g.rounds || s.of.seen != g.rounds {
			return false
		}
		waits, has := s.at.snapshot.Find(s.waits) >= 0, s.of.snapshot.Find(s.has) >= 0
		switch {
		case waits && has:
			return false
		case waits, has && s.at.isFirst() && s.at.name() == s.own:
			s.worth()
		}
		return true
	})
}
