package check

import "slices"

// Order finds owners who were served before others whose node is older.
func Order(rec *Record) []Violation {
	v := verdict{checker: "order"}
	h := historyOf(rec)
	for _, l := range rec.Locks {
		var granted []Hold
		for _, hold := range rec.Holds {
			if hold.Lock == l.Path && hold.Mode == Alone && h.byPath[hold.Node] != nil && !hold.Over && h.forcedAt(hold) > hold.Granted {
				granted = append(granted, hold)
			}
		}
		slices.SortStableFunc(granted, func(a, b Hold) int { return int(a.Granted - b.Granted) })
		for i := 1; i < len(granted); i++ {
			if a, b := granted[i-1], granted[i]; h.byPath[a.Node].zxid >= h.byPath[b.Node].zxid {
				v.add("%v before %v", a, b)
			}
		}
	}
	return v.found
}
