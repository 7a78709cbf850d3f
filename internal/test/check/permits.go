package check

import "slices"

// Permits finds moments at which more callers believed in leases than there are.
func Permits(rec *Record) []Violation {
	v := verdict{checker: "permits"}
	h := historyOf(rec)
	for _, l := range rec.Locks {
		if l.Kind != Semaphore {
			continue
		}
		var holds []Hold
		for _, hold := range rec.Holds {
			if hold.Ended = min(hold.Ended, h.forcedAt(hold)); hold.Lock == l.Path && hold.Ended > hold.Granted {
				holds = append(holds, hold)
			}
		}
		slices.SortStableFunc(holds, func(a, b Hold) int { return int(a.Granted - b.Granted) })
		var open []Hold
		for _, b := range holds {
			open = slices.DeleteFunc(open, func(a Hold) bool { return a.Ended <= b.Granted })
			if open = append(open, b); len(open) > l.Permits {
				v.add("%d leases of %s, which has %d: %v", len(open), l.Path, l.Permits, open)
			}
		}
	}
	return v.found
}
