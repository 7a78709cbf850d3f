package judge

import "time"

// Grace is how long after the session timeout everybody has to be served again.
const Grace = 2 * time.Second

// Progress finds calls that go on for longer than a session timeout and Grace
// after the last fault, though nobody ended them. Those who yield are judged if
// they waited then.
func Progress(rec *Record) []Violation {
	v := verdict{judge: "progress"}
	for _, w := range rec.Waits {
		if w.Yields && w.Began > rec.Healed {
			continue
		}
		if limit := max(w.Began, rec.Healed) + rec.Timeout + Grace; w.Limit > limit && w.Returned > limit {
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
