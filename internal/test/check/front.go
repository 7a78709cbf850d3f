package check

import "slices"

// Front finds holds whose node did not have the lock when they were granted, or
// last when the node was there, and nodes that had a lock together.
func Front(rec *Record) []Violation {
	v := verdict{checker: "front"}
	h := historyOf(rec)
	for _, hold := range rec.Holds {
		x := h.byPath[hold.Node]
		if x == nil {
			v.add("%v: no such node was ever made", hold)
			continue
		}
		if hold.Session != 0 && x.owner != hold.Session {
			v.add("%v: the node belongs to session %#x, and the caller to %#x", hold, x.owner, hold.Session)
		}
		at := h.had(hold)
		if !h.owns(x, rec.lock(hold.Lock), hold.Mode, at) {
			v.add("%v: stood behind others: %v", hold, paths(h.aheadAt(x, at)))
		}
	}
	for _, l := range rec.Locks {
		for q, i := h.queues[l.queue()], 1; i < len(q); i++ {
			for _, o := range q[:i] {
				if o.seq == q[i].seq && o.died > q[i].born && o.writes == q[i].writes {
					v.add("%s and %s have one number", o.path, q[i].path)
				}
			}
		}
	}
	h.together(&v)
	return v.found
}

// had is after how many transactions a hold had the lock at the latest: when it
// was granted or, as news may come late, last when the node was there.
func (h *history) had(hold Hold) int {
	return min(h.by(hold.Granted), h.byPath[hold.Node].died)
}

// together finds granted nodes that were there at one time and exclude each other.
func (h *history) together(v *verdict) {
	for _, l := range h.rec.Locks {
		if l.Kind == Semaphore {
			continue // counted by Permits
		}
		var granted []Hold
		for _, hold := range h.rec.Holds {
			if hold.Lock == l.Path && h.byPath[hold.Node] != nil {
				granted = append(granted, hold)
			}
		}
		slices.SortStableFunc(granted, func(a, b Hold) int { return int(a.Granted - b.Granted) })
		for i, b := range granted {
			for _, a := range granted[:i] {
				if a.Owner == b.Owner || a.Mode == Shared && b.Mode == Shared {
					continue
				}
				if (b.Over || h.forcedAt(b) < b.Granted) && h.had(b) < h.had(a) {
					continue // it had it first and was told when it was gone
				}
				if h.byPath[a.Node].died >= h.had(b) {
					v.add("two owners' nodes at once: %v; %v", a, b)
				}
			}
		}
	}
}

func paths(all []*contender) (list []string) {
	for _, x := range all {
		list = append(list, x.path)
	}
	return list
}
