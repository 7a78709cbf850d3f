package locks

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
)

// snapshot is a queue as a list showed it, in order. Names stay where they lie in
// the list until one is asked for: hundreds may wait, each looks at all of them
// before its turn, and needs one.
type snapshot struct {
	names   wire.Names
	kinds   []string // what kinds of node were picked
	entries []packedEntry
	other   otherEntry
}

// packedEntry is a contender without its name. Packed entries compare as their numbers do.
type packedEntry uint64

// A packed entry is made of a number, of which of the kinds its node has, and of where in
// the list its name begins.
const (
	numberAt  = 33
	kindAt    = 32
	mostKinds = 1 << (numberAt - kindAt)
)

func (s packedEntry) seq() int32 { return int32(s >> numberAt) }
func (s packedEntry) kind() int  { return int(s >> kindAt & (mostKinds - 1)) }
func (s packedEntry) where() int { return int(uint32(s)) }

// entry is a node in a queue.
type entry struct {
	name string
	kind string // what kind of node it is
}

var snapshots = sync.Pool{New: func() any { return new(snapshot) }}

// readSnapshot is a queue of this kind as a list of its children shows it.
func (q *queue) readSnapshot(names wire.Names) (*snapshot, error) {
	return readSnapshot(names, q.kinds, !q.isPart())
}

// otherKind refuses a path where another kind of lock was seen.
func otherKind(path, child string) error {
	return fmt.Errorf("%w: %s is used by a lock of another kind, which has the node %s there: give each lock a path of its own, "+
		"or delete that node if its lock is no longer in use", ErrInvalidLock, path, child)
}

// otherEntry is the first contender for another kind of lock in a list.
type otherEntry struct {
	name string // "" for none
	seq  int32
}

func (o *otherEntry) note(name []byte, seq int32) {
	if o.name == "" || seq < o.seq {
		*o = otherEntry{string(name), seq}
	}
}

// refuse refuses to go on in a queue that belongs to another kind of lock: to that
// of the first of all contenders. One that came later is refused itself.
func (q *queue) refuse(snap *snapshot) error {
	if o := snap.other; o.name != "" && (snap.len() == 0 || o.seq < snap.seq(0)) {
		return otherKind(q.path, o.name)
	}
	return nil
}

// readSnapshot picks from a list of children those that stand in a queue, in order, and
// notes contenders for another kind of lock. Children with any other names are
// none of ours and are passed over. With ownPath the children are those of the
// lock's own path, where the leases of a semaphore are of another kind as well.
func readSnapshot(names wire.Names, marks []string, ownPath bool) (*snapshot, error) {
	snap := snapshots.Get().(*snapshot)
	snap.names, snap.kinds, snap.entries, snap.other = names, marks, snap.entries[:0], otherEntry{}
	for at, name := range names.All() {
		seq, kind, ok, err := parseContender(name, marks)
		if err != nil {
			snap.free()
			return nil, err
		}
		if ok {
			snap.entries = append(snap.entries, packedEntry(seq)<<numberAt|packedEntry(kind)<<kindAt|packedEntry(at))
		} else if seq, ok := parseOtherKind(name, marks); ok {
			snap.other.note(name, seq)
		} else if ownPath && string(name) == semaphoreLeases {
			snap.other.note(name, -1) // it has no number
		}
	}
	slices.Sort(snap.entries)
	if err := snap.separate(); err != nil {
		snap.free()
		return nil, err
	}
	return snap, nil
}

// separate orders those that have the same number.
func (snap *snapshot) separate() error {
	for from := 0; from < len(snap.entries); {
		to := from + 1
		for to < len(snap.entries) && snap.entries[to].seq() == snap.entries[from].seq() {
			to++
		}
		if same := snap.entries[from:to]; len(same) > 1 {
			// A downgraded reader comes behind the write node whose number it has.
			slices.SortFunc(same, func(a, b packedEntry) int {
				return cmp.Or(-cmp.Compare(snap.kinds[a.kind()], snap.kinds[b.kind()]), bytes.Compare(snap.names.At(a.where()), snap.names.At(b.where())))
			})
			for _, s := range same[1:] {
				// Only a reader shares a number: with its own write node. Otherwise the
				// servers' counter has stuck at its end, and nobody knows who was first.
				if snap.kinds[s.kind()] != readName {
					return ErrSequenceExhausted
				}
			}
		}
		from = to
	}
	return nil
}

// free gives back the memory of a snapshot that nobody uses any more. That of its
// names belongs to the reply.
func (snap *snapshot) free() {
	snap.names, snap.kinds = wire.Names{}, nil
	snapshots.Put(snap)
}

// len is how many stand in it; of no snapshot, nobody.
func (snap *snapshot) len() int {
	if snap == nil {
		return 0
	}
	return len(snap.entries)
}

func (snap *snapshot) seq(i int) int32   { return snap.entries[i].seq() }
func (snap *snapshot) kind(i int) string { return snap.kinds[snap.entries[i].kind()] }
func (snap *snapshot) name(i int) string { return string(snap.bytes(i)) }

// bytes are a name as it lies in the list.
func (snap *snapshot) bytes(i int) []byte { return snap.names.At(snap.entries[i].where()) }

// span are those from one up to another.
func (snap *snapshot) span(from, to int) []entry {
	all := make([]entry, 0, to-from)
	for i := from; i < to; i++ {
		all = append(all, entry{snap.name(i), snap.kind(i)})
	}
	return all
}

// find is where a contender's name stands, -1 if it does not.
func (snap *snapshot) find(name string) int {
	seq, ok := framework.Sequence(name[max(0, len(name)-sequenceDigits):])
	if !ok || snap.len() == 0 {
		return -1
	}
	i, _ := slices.BinarySearch(snap.entries, packedEntry(seq)<<numberAt)
	for ; i < snap.len() && snap.seq(i) == seq; i++ {
		if string(snap.names.At(snap.entries[i].where())) == name {
			return i
		}
	}
	return -1
}

// hasMultiLock is whether a node of a MultiLock is among them.
func (snap *snapshot) hasMultiLock() bool {
	return slices.ContainsFunc(snap.entries, func(s packedEntry) bool { return session.Yields(snap.names.At(s.where())) })
}
