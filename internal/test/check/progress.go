package check

import (
	"slices"
	"time"
)

// Grace is how long after the session timeout everybody has to be served again.
const Grace = 2 * time.Second

// YieldGrace is how much longer a caller may wait that yields to others, or that
// waits for such a caller.
const YieldGrace = 5 * time.Second

// limit is when a call has to be over, without YieldGrace.
func (w *Wait) limit(rec *Record) time.Duration {
	return max(w.Began, rec.Healed) + rec.Timeout + Grace
}

// Progress finds calls that go on for longer than a session timeout and Grace
// after the last fault, though nobody ended them. Those who let others pass may
// take longer, as long as others are served: each time within a session timeout
// and Grace.
func Progress(rec *Record) []Violation {
	v := verdict{checker: "progress"}
	served := passed(rec)
	for _, w := range rec.Waits {
		limit := w.limit(rec)
		if w.Yields {
			limit += YieldGrace
		}
		if w.Limit > limit && w.Returned > limit {
			v.add("%s on %s: from %v to %v, and the last fault was over at %v", w.Who, w.Lock, w.Began, w.Returned, rec.Healed)
		}
		if from, to := w.stalled(rec, served); w.Yields && to > from {
			v.add("%s on %s: waits from %v to %v, and nobody is served from %v to %v", w.Who, w.Lock, w.Began, w.Returned, from, to)
		}
	}
	return v.found
}

// passed are the times at which those were served who let others pass, or wait
// for some who do.
func passed(rec *Record) (served []time.Duration) {
	for _, w := range rec.Waits {
		if w.Yields && w.OK {
			served = append(served, w.Returned)
		}
	}
	slices.Sort(served)
	return served
}

// stalled is the first time for which a call waits and nobody is served for too
// long, empty if there is none.
func (w *Wait) stalled(rec *Record, served []time.Duration) (from, to time.Duration) {
	from, end := max(w.Began, rec.Healed), min(w.Returned, w.Limit)
	for i, _ := slices.BinarySearch(served, from); from < end; i++ {
		to = end
		if i < len(served) {
			to = min(served[i], end)
		}
		if to-from > rec.Timeout+Grace {
			return from, to
		}
		from = to
	}
	return 0, 0
}

// Recovery is how long after the last fault the last of the calls returned that
// waited then. It leaves out calls that reached their limit.
func Recovery(rec *Record) (longest time.Duration) {
	for _, w := range rec.Waits {
		if w.Began <= rec.Healed && w.Returned > rec.Healed && w.Returned < w.Limit {
			longest = max(longest, w.Returned-rec.Healed)
		}
	}
	return longest
}

// LongestYield is by how much the longest call went on beyond a session timeout and
// Grace because others were let pass, which Progress bounds.
func LongestYield(rec *Record) (longest time.Duration) {
	for _, w := range rec.Waits {
		if limit := w.limit(rec); w.Yields && w.Limit > limit {
			longest = max(longest, w.Returned-limit)
		}
	}
	return longest
}
