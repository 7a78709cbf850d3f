package check

import "slices"

// Tokens finds tokens that are not the zxid of the node's creation, or that do not
// rise from owner to owner. A later token may be seen earlier only if another
// client had ended the hold by force before.
func Tokens(rec *Record) []Violation {
	v := verdict{checker: "tokens"}
	h := historyOf(rec)
	last := make(map[string]Hold)
	holds := slices.Clone(rec.Holds)
	slices.SortStableFunc(holds, func(a, b Hold) int { return int(a.Granted - b.Granted) })
	for _, hold := range holds {
		x := h.byPath[hold.Node]
		if hold.Mode != Alone || hold.Token == 0 || x == nil {
			continue
		}
		if hold.Token != x.zxid {
			v.add("%v: token %#x, and the node was made at %#x", hold, hold.Token, x.zxid)
		}
		if hold.Over || h.forcedAt(hold) <= hold.Granted {
			continue
		}
		if before, ok := last[hold.Lock]; ok && before.Token >= hold.Token {
			v.add("%v has token %#x, and before it %v had %#x", hold, hold.Token, before, before.Token)
		}
		last[hold.Lock] = hold
	}
	return v.found
}
