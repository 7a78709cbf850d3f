package recipes

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-zk/paddock/framework"
)

// The names of nodes begin with a protection and go on with one of these and
// ten digits, except for the read node of a downgrade, which has the digits of
// its write node.
//
// Source: Curator's StandardLockInternalsDriver, InterProcessReadWriteLock and
// InterProcessSemaphoreV2. They are a promise: a change takes Go out of the
// queue that it shares with Java.
const (
	lockName  = "lock-"
	writeName = "__WRIT__"
	readName  = "__READ__"
	leaseName = "lease-"

	semaphoreLocks  = "locks"
	semaphoreLeases = "leases"
)

// contender is a node in a queue.
type contender struct {
	name string
	mark string // what kind of node it is: one of the names above
	seq  int32
}

// seqLimit is where the numbers count as exhausted, with room for those who
// are creating nodes at this moment.
const seqLimit = 1<<31 - 1<<16

// contenders picks from a list of children those that stand in a queue, in
// order. Children with other names are none of ours and are passed over.
func contenders(children []string, marks ...string) ([]contender, error) {
	const markAt, mostMarks = 28, 1 << 4      // no reply has room for 2^28 names
	order := make([]uint64, 0, len(children)) // number, mark, and where in children
	for i, name := range children {
		seq, mark, ok, err := parseContender(name, marks)
		if err != nil {
			return nil, err
		}
		if ok {
			order = append(order, uint64(seq)<<32|uint64(mark)<<markAt|uint64(i))
		}
	}
	slices.Sort(order)
	queue := make([]contender, len(order))
	for i, at := range order {
		queue[i] = contender{name: children[at&(1<<markAt-1)], mark: marks[at>>markAt%mostMarks], seq: int32(at >> 32)}
	}
	if err := separate(queue); err != nil {
		return nil, err
	}
	return queue, nil
}

// separate orders those that have the same number.
func separate(queue []contender) error {
	for from := 0; from < len(queue); {
		to := from + 1
		for to < len(queue) && queue[to].seq == queue[from].seq {
			to++
		}
		if to-from > 1 {
			// A downgraded reader comes behind the write node whose number it has.
			slices.SortFunc(queue[from:to], func(a, b contender) int {
				return cmp.Or(-cmp.Compare(a.mark, b.mark), cmp.Compare(a.name, b.name))
			})
		}
		for _, c := range queue[from+1 : to] {
			// Only a reader shares a number: with its own write node. Otherwise the
			// servers' counter has stuck at its end, and nobody knows who was first.
			if c.mark != readName {
				return ErrSequenceExhausted
			}
		}
		from = to
	}
	return nil
}

// parseContender reads one name. ok is false for what is none of ours.
func parseContender(name string, marks []string) (seq int32, mark int, ok bool, err error) {
	if seq, ok := framework.Sequence(name); ok && seq < seqLimit { // as most are
		for i, mark := range marks {
			if strings.HasSuffix(name[:len(name)-10], mark) {
				return seq, i, true, nil
			}
		}
	}
	for i, mark := range marks {
		at := strings.LastIndex(name, mark)
		if at < 0 {
			continue
		}
		digits := name[at+len(mark):]
		if seq, ok := framework.Sequence(digits); ok && len(digits) == 10 {
			if seq >= seqLimit {
				return 0, 0, false, ErrSequenceExhausted
			}
			return seq, i, true, nil
		}
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil && n < 0 {
			return 0, 0, false, ErrSequenceExhausted
		}
	}
	return 0, 0, false, nil
}

// position is where a name stands in a queue, -1 if it does not.
func position(queue []contender, name string) int {
	return slices.IndexFunc(queue, func(c contender) bool { return c.name == name })
}

// aheadExclusive is who a lock for one waits for: the one directly ahead.
func aheadExclusive(queue []contender, at int) (contender, bool) {
	if at == 0 {
		return contender{}, false
	}
	return queue[at-1], true
}

// aheadRead is who a reader waits for: the last writer ahead, other than the
// owner's own of the same number that it was downgraded from.
//
// Differs: Curator's readers wait for the first one, and so wake once for each.
func aheadRead(queue []contender, at int) (contender, bool) {
	for i := at - 1; i >= 0; i-- {
		own := at < len(queue) && queue[i].seq == queue[at].seq
		if queue[i].mark == writeName && !own {
			return queue[i], true
		}
	}
	return contender{}, false
}
