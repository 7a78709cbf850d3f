package check

// Contexts finds holds whose contexts went on when the servers had deleted the
// node, so that another owner could have the lock. It leaves out nodes that others
// deleted by force, since no client can know that beforehand.
func Contexts(rec *Record) []Violation {
	v := verdict{checker: "contexts"}
	h := historyOf(rec)
	for _, hold := range rec.Holds {
		x := h.byPath[hold.Node]
		if hold.ContextsEnded == 0 || x == nil || x.died == len(rec.Log) {
			continue
		}
		// A hold can be granted when it is over already, as news may come late.
		at := max(rec.Log[x.died].At, hold.Granted)
		if h.forcedAt(hold) > at && hold.ContextsEnded > at {
			v.add("%v: the node went at %v, and the contexts ended at %v", hold, at, hold.ContextsEnded)
		}
	}
	return v.found
}
