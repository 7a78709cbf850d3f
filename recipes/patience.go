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
	yields      int       // since it began
	paid        bool      // waiting has
	last        time.Time // that we yielded
}

const (
	firstSure    = time.Millisecond
	firstUnsure  = 2 * time.Millisecond
	firstStall   = 20 * time.Millisecond
	stallShare   = 12 // of the time that a party has waited, the part that is patience
	mostShare    = 250 * time.Millisecond
	mostPatience = 450 * time.Millisecond
	endless      = time.Hour
	hasty        = 12 // yields
)

// patiences are those of one party, and what shows whether they pay.
type patiences struct {
	sure     patience // with an owner that waits for us
	unsure   patience // with one that may
	stall    patience // with any other
	suspects []suspicion
	rounds   int // of lists
}

func newPatiences() patiences {
	return patiences{
		sure:   patience{first: firstSure, most: mostPatience},
		unsure: patience{first: firstUnsure, most: mostPatience},
		stall:  patience{first: firstStall, most: endless}, // nothing shows whether it paid
	}
}

func (p *patience) time() time.Duration {
	growth := 1.25
	if p.paid {
		growth = 2
	}
	return time.Duration(min(float64(p.first)*math.Pow(growth, float64(p.yields)), float64(p.most)))
}

func (p *patience) yielded(now time.Time) {
	p.last = now
	if p.time() >= p.most {
		p.yields = 0
		return
	}
	p.yields++
}

// rests is whether it is too early to yield to other parties once more. Those
// that wait for the same owner would pass their places round among themselves,
// and come to the end of their patience with nobody else having moved.
func (p *patience) rests(now time.Time) bool {
	return p.yields > hasty && now.Sub(p.last) < p.time()/2
}

// worth says that waiting has paid. While it has been short, that says nothing
// about a longer one.
func (p *patience) worth() {
	if p.time() >= p.most/4 {
		p.most, p.paid = min(2*p.most, endless), true
	}
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
