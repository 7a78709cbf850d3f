package check

import (
	"slices"
	"time"
)

// Leader finds elections in which nobody leads for longer than a session timeout and
// Grace after the last fault.
func Leader(rec *Record) []Violation {
	v := verdict{checker: "leader"}
	for _, l := range rec.Locks {
		if l.Kind != Election {
			continue
		}
		if from, to := leaderless(rec, l); to-from > rec.Timeout+Grace {
			v.add("%s: nobody leads from %v to %v, and the last fault was over at %v", l.Path, from, to, rec.Healed)
		}
	}
	return v.found
}

// Leaderless is the longest time after the last fault for which nobody led in an
// election.
func Leaderless(rec *Record) (longest time.Duration) {
	for _, l := range rec.Locks {
		if l.Kind == Election {
			from, to := leaderless(rec, l)
			longest = max(longest, to-from)
		}
	}
	return longest
}

func leaderless(rec *Record, l Lock) (from, to time.Duration) {
	var terms []Hold
	for _, hold := range rec.Holds {
		if hold.Lock == l.Path {
			terms = append(terms, hold)
		}
	}
	slices.SortStableFunc(terms, func(a, b Hold) int { return int(a.Granted - b.Granted) })
	led := rec.Healed // until then somebody has led
	gap := func(until time.Duration) {
		if until = min(until, rec.Over); until-led > to-from {
			from, to = led, until
		}
	}
	for _, term := range terms {
		gap(term.Granted)
		led = max(led, term.Ended)
	}
	gap(rec.Over)
	return from, to
}
