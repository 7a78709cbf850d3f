package znode

// Rule says which node a node waits for in a queue. If waits is true, that is the node at
// the place ahead. at may be the end of the queue, for a node that is not there yet.
type Rule func(snap *Snapshot, at int) (ahead int, waits bool)

// Exclusive is the rule of a lock for one owner: wait for the node directly ahead.
func Exclusive(_ *Snapshot, at int) (ahead int, waits bool) { return at - 1, at > 0 }

// Readers is the rule of a read node: wait for the last writer ahead. It does not wait
// for its owner's write node of the same number, from which it was downgraded.
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

// FirstN is the rule of leases: the first n wait for nobody. All others wait until any of
// these goes; ahead is the oldest lease.
//
// Differs: Curator counts the leases. Their order gives the same result. Two owners may
// wait at once, after a node in the queue of turns was deleted. By their order they do
// not wait for each other.
func FirstN(n int) Rule {
	return func(_ *Snapshot, at int) (ahead int, waits bool) { return 0, at >= n }
}
