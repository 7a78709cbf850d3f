package judge

import "time"

// Grace is how long after the session timeout everybody has to be served again.
const Grace = 2 * time.Second

// patience is how much longer somebody may wait who yields to others, or waits for
// one who does. The most that 1,000 seeds have shown is 1.9 s.
const patience = 5 * time.Second

// limit is when a call has to be over, without the patience for others.
func (w *Wait) limit(rec *Record) time.Duration {
	return max(w.Began, rec.Healed) + rec.Timeout + Grace
}

// Progress finds calls that go on for longer than a session timeout and Grace
// after the last fault, though nobody ended them. Those who let others pass may
// take longer.
func Progress(rec *Record) []Violation {
	v := verdict{judge: "progress"}
	for _, w := range rec.Waits {
		limit := w.limit(rec)
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

// Patience is by how much the longest call went on beyond a session timeout and
// Grace because others were let pass, which Progress bounds.
func Patience(rec *Record) (longest time.Duration) {
	for _, w := range rec.Waits {
		if limit := w.limit(rec); w.Yields && w.Limit > limit {
			longest = max(longest, w.Returned-limit)
		}
	}
	return longest
}
