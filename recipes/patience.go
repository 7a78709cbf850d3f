package recipes

import (
	"math"
	"slices"
	"time"
)

// patience is for how long somebody has to have been in our way before a party
// yields. It grows by a quarter with each time, as who is in our way may be
// about to go: innocent, or tired of waiting for us. When it has come to its
// most in vain, it begins anew, since who waits for us in truth does so for
// ever, and meanwhile nobody gets anything. Only if waiting has paid, it goes on
// to twice as much, in larger steps: there locks are held for longer than that.
type patience struct {
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

// patiences are those of one party, and what shows whether they pay.
type patiences struct {
	sure     patience // with an owner that waits for us
	unsure   patience // with one that may
	stall    stall    // with any other
	suspects []suspicion
	rounds   int // of lists
}

func newPatiences(now time.Time) patiences {
	return patiences{
		sure:   patience{first: firstSure, most: mostPatience},
		unsure: patience{first: firstUnsure, most: mostPatience},
		stall:  stall{waiting: now},
	}
}

// grown is what a patience has become by yields.
func grown(first, most time.Duration, growth float64, yields int) time.Duration {
	return time.Duration(min(float64(first)*math.Pow(growth, float64(yields)), float64(most)))
}

// By how much a patience grows with each yield.
const (
	slowly  = 1.25
	quickly = 2
)

func (p *patience) time() time.Duration {
	growth := slowly
	if p.paid {
		growth = quickly
	}
	return grown(p.first, p.most, growth, p.yields)
}

func (p *patience) yielded() {
	if p.time() >= p.most {
		p.yields = 0
		return
	}
	p.yields++
}

// worth says that waiting has paid. While it has been short, that says nothing
// about a longer one.
func (p *patience) worth() {
	if p.time() >= p.most/4 {
		p.most, p.paid = min(2*p.most, endless), true
	}
}

// stall is the patience with those of whom nothing shows. It grows with each time
// that we yield, and is a part of the time that we have waited at least: of parties
// that are stuck together the one that came last yields first, and who has waited
// for long does not begin anew with each of those who come. That time counts from
// the latest connection, since through a fault it says nothing of the others. It
// has a limit, as nobody else shall have to wait for longer because of a party
// that waits for somebody who holds a lock for hours.
type stall struct {
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

func (s *stall) time(now time.Time) time.Duration {
	waited := now.Sub(s.waiting)
	byYields := grown(leastStall, mostGrown, slowly, s.yields)
	return max(leastStall, min(byYields, waited/grownShare), min(waited/stallShare, mostStall))
}

func (s *stall) yielded(now time.Time) {
	s.last = now
	s.yields++
}

// rests is whether it is too early to yield to other parties once more. Those
// that wait for the same owner would pass their places round among themselves,
// and come to the end of their patience with nobody else having moved.
func (s *stall) rests(now time.Time) bool {
	return s.yields > hasty && now.Sub(s.last) < s.time(now)/2
}

// suspicion is that who has what we wait for waits behind us.
type suspicion struct {
	*patience
	at    *stand // where we were first
	own   string // our node there
	waits string
	of    *stand // that we wait in
	has   string
}

// remember keeps a suspicion until it has turned out right or wrong. Other
// parties are none of it: their nodes go when they yield as well.
func (g *patiences) remember(s suspicion, party bool) {
	if !party && !slices.Contains(g.suspects, s) {
		g.suspects = append(g.suspects, s)
	}
}

// learn looks what has come of suspicions. Who gave back what we wait for while
// still waiting had not waited for us, and who no longer waits although we never
// let it pass was tired of it: with either, patience has paid or would have.
func (g *patiences) learn() {
	g.suspects = slices.DeleteFunc(g.suspects, func(s suspicion) bool {
		if s.at.seen != g.rounds || s.of.seen != g.rounds {
			return false
		}
		waits, has := s.at.line.find(s.waits) >= 0, s.of.line.find(s.has) >= 0
		switch {
		case waits && has:
			return false
		case waits, has && s.at.first() && s.at.name == s.own:
			s.worth()
		}
		return true
	})
}
