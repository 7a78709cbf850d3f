package judge

import "time"

// Grace is how long after the session timeout everybody has to be served again.
const Grace = 2 * time.Second

// patience is how much longer somebody may wait who yields to all others, or waits
// for one who does.
const patience = 10 * time.Second

// Progress finds calls that go on for longer than a session timeout and Grace
// after the last fault, though nobody ended them. Those who let others pass may
// take longer.
func Progress(rec *Record) []Violation {
	v := verdict{judge: "progress"}
	for _, w := range rec.Waits {
		limit := max(w.Began, rec.Healed) + rec.Timeout + Grace
		if w.Yields {
			limit += patience
		}
		if w.Limit > limit && w.Returned > limit {
			v.add("%s on %s: from %v to %v, and the last fault was over at %v", w.Who, w.Lock, w.Began, w.Returned, rec.Healed)
		}
	}
	return v.found
}

// Recovery is how long after the last fault the last of those who waited then
// was served, or was told that it is not.
func Recovery(rec *Record) (longest time.Duration) {
	for _, w := range rec.Waits {
		if w.Began <= rec.Healed && w.Returned > rec.Healed && w.Returned < w.Limit {
			longest = max(longest, w.Returned-rec.Healed)
		}
	}
	return longest
}
