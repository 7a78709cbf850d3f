package check

import "path"

// Fence finds fenced writes that the servers accepted although a node of the hold
// was not there or did not have the lock. It also finds writes with another outcome
// than the caller was told.
func Fence(rec *Record) []Violation {
	v := verdict{checker: "fence"}
	h := historyOf(rec)
	applied := appliedWrites(rec)
	for _, w := range rec.Writes {
		at := applied[w.ID]
		switch {
		case len(at) > 1:
			v.add("%s: %s was applied %d times", w.Who, w.ID, len(at))
		case len(at) == 0 && w.Outcome == Done:
			v.add("%s: %s is said to be done, and is not", w.Who, w.ID)
		case len(at) == 1 && w.Outcome == NotDone:
			v.add("%s: %s is said not to be done, and is, at %#x", w.Who, w.ID, rec.Log[at[0]].Zxid)
		}
		if !w.Fenced {
			continue
		}
		for _, i := range at {
			for _, node := range w.Nodes {
				if !h.ownsNode(node, i) {
					v.add("%s: %s was taken at %#x, when %s did not have the lock", w.Who, w.ID, rec.Log[i].Zxid, node)
				}
			}
		}
	}
	return v.found
}

// StaleWrites counts the writes that were not fenced and reached the servers
// when their node had gone: what fences are for.
func StaleWrites(rec *Record) (n int) {
	h := historyOf(rec)
	applied := appliedWrites(rec)
	for _, w := range rec.Writes {
		if w.Fenced {
			continue
		}
		for _, i := range applied[w.ID] {
			for _, node := range w.Nodes {
				if !h.ownsNode(node, i) {
					n++
				}
			}
		}
	}
	return n
}

// appliedWrites says which transactions wrote what.
func appliedWrites(rec *Record) map[string][]int {
	applied := make(map[string][]int)
	for i, txn := range rec.Log {
		for _, c := range txn.Changes {
			if c.Kind == DataSet {
				applied[c.Data] = append(applied[c.Data], i)
			}
		}
	}
	return applied
}

// ownsNode is whether a node had its lock before the i-th transaction.
func (h *history) ownsNode(node string, i int) bool {
	x := h.byPath[node]
	if x == nil {
		return false
	}
	for _, l := range h.rec.Locks {
		if l.queue() != path.Dir(node) {
			continue
		}
		mode := Alone
		switch {
		case l.Kind == Semaphore:
			mode = Lease
		case !x.writes:
			mode = Shared
		}
		return h.owns(x, l, mode, i)
	}
	return false
}
