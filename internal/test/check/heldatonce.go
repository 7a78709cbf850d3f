package check

import (
	"slices"
	"time"
)

// HeldAtOnce finds callers who believed in one lock at the same time.
//
// Nobody can know beforehand that an operator deletes a node or ends a session:
// such a hold counts until then, and has to be over one session timeout later.
func HeldAtOnce(rec *Record) []Violation {
	v := verdict{checker: "held at once"}
	overlaps(rec, func(a, b Hold) bool { return a.Mode == Alone && b.Mode == Alone }, &v)
	h := historyOf(rec)
	for _, hold := range rec.Holds {
		if at := h.forcedAt(hold); at != Never && hold.Ended > max(at, hold.Granted)+rec.Timeout+time.Second {
			v.add("%v: it was over at %v, by force", hold, at)
		}
	}
	return v.found
}

// overlaps finds holds of different owners that exclude each other and overlap.
func overlaps(rec *Record, exclude func(a, b Hold) bool, v *verdict) {
	h := historyOf(rec)
	byLock := make(map[string][]Hold)
	for _, hold := range rec.Holds {
		hold.Ended = min(hold.Ended, h.forcedAt(hold))
		if hold.Ended > hold.Granted {
			byLock[hold.Lock] = append(byLock[hold.Lock], hold)
		}
	}
	for _, l := range rec.Locks {
		holds := byLock[l.Path]
		slices.SortStableFunc(holds, func(a, b Hold) int { return int(a.Granted - b.Granted) })
		var open []Hold
		for _, b := range holds {
			open = slices.DeleteFunc(open, func(a Hold) bool { return a.Ended <= b.Granted })
			for _, a := range open {
				if a.Owner != b.Owner && exclude(a, b) {
					v.add("%v; %v", a, b)
				}
			}
			open = append(open, b)
		}
	}
}
