package check

import "time"

// atOnce is the time that a call may take to return without waiting for anybody.
const atOnce = time.Millisecond

// Cancelled finds calls that did not return at once when their caller wanted
// them to.
func Cancelled(rec *Record) []Violation {
	v := verdict{checker: "cancelled"}
	for _, w := range rec.Waits {
		if w.Limit != Never && w.Returned > max(w.Limit, w.Began)+atOnce {
			v.add("%s on %s: was to end at %v, and returned at %v", w.Who, w.Lock, w.Limit, w.Returned)
		}
	}
	return v.found
}
