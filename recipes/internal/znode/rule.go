package znode

// Rule is whom a node waits for in a queue: the node at another place, if waits is
// true. at may be the end of the queue, for a node that is not there yet.
type Rule func(snap *Snapshot, at int) (ahead int, waits bool)

// Exclusive is the rule of a lock for one owner: wait for the node directly ahead.
func Exclusive(_ *Snapshot, at int) (ahead int, waits bool) { return at - 1, at > 0 }

// Readers is the rule of a read node: wait for the last writer ahead, other than the
// owner's own write node of the same number that it was downgraded from.
//
// Differs: Curator's readers wait for the first writer, and so wake once for each.
func Readers(snap *Snapshot, at int) (ahead int, waits bool) {
	for i := at - 1; i >= 0; i-- {
		own := at < snap.Len() && snap.Seq(i) == snap.Seq(at)
		if snap.Kind(i) == Write && !own {
			return i, true
		}
	}
	return 0, false
}

// FirstN is the rule of leases: the first n wait for nobody, all others for the
// oldest lease, whichever of the first goes.
//
// Differs: Curator counts the leases. Their order gives the same result, and two
// owners that wait at once, after somebody deleted a node in the other queue, do not
// wait for each other.
func FirstN(n int) Rule {
	return func(_ *Snapshot, at int) (ahead int, waits bool) { return 0, at >= n }
}
