package znode

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Snapshot is a queue as a list showed it, in order. Names stay in the memory of the list
// until a caller needs one. Hundreds of contenders may wait, and each looks at all names
// before its turn, but needs only one.
type Snapshot struct {
	names   wire.Names
	kinds   []Kind // what kinds of node were picked
	entries []packedEntry
	other   otherEntry
}

// packedEntry is a contender without its name. Packed entries compare as their numbers do.
type packedEntry uint64

// A packed entry has the node's number, its kind, and the place in the list where its
// name begins.
const (
	numberAt  = 33
	kindAt    = 32
	mostKinds = 1 << (numberAt - kindAt)
)

func (s packedEntry) seq() int32 { return int32(s >> numberAt) }
func (s packedEntry) kind() int  { return int(s >> kindAt & (mostKinds - 1)) }
func (s packedEntry) where() int { return int(uint32(s)) }

// Entry is a node in a queue.
type Entry struct {
	Name string
	Kind Kind
}

var snapshots = sync.Pool{New: func() any { return new(Snapshot) }}

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

// Other is the node of another kind of lock that came before all nodes here, "" if there
// is none. The queue belongs to that lock. A node of another lock that came later is
// refused itself.
func (snap *Snapshot) Other() string {
	if o := snap.other; o.name != "" && (snap.Len() == 0 || o.seq < snap.Seq(0)) {
		return o.name
	}
	return ""
}

// Parse picks the contenders of a queue from a list of children, in order, and notes
// nodes of another kind of lock. It ignores children with any other names. With ownPath
// the children are those of the lock's own path, where the leases of a semaphore are of
// another kind as well. The snapshot shares the memory of names, until Free. The error is
// ErrSequenceExhausted.
func Parse(names wire.Names, kinds []Kind, ownPath bool) (*Snapshot, error) {
	snap := snapshots.Get().(*Snapshot)
	snap.names, snap.kinds, snap.entries, snap.other = names, kinds, snap.entries[:0], otherEntry{}
	for at, name := range names.All() {
		seq, kind, ok, err := parseName(name, kinds)
		if err != nil {
			snap.Free()
			return nil, err
		}
		if ok {
			snap.entries = append(snap.entries, packedEntry(seq)<<numberAt|packedEntry(kind)<<kindAt|packedEntry(at))
		} else if seq, ok := parseOtherKind(name, kinds); ok {
			snap.other.note(name, seq)
		} else if ownPath && string(name) == Leases {
			snap.other.note(name, -1) // it has no number
		}
	}
	slices.Sort(snap.entries)
	if err := snap.separate(); err != nil {
		snap.Free()
		return nil, err
	}
	return snap, nil
}

// separate orders those that have the same number.
func (snap *Snapshot) separate() error {
	for from := 0; from < len(snap.entries); {
		to := from + 1
		for to < len(snap.entries) && snap.entries[to].seq() == snap.entries[from].seq() {
			to++
		}
		if same := snap.entries[from:to]; len(same) > 1 {
			// A downgraded reader comes after the write node whose number it has.
			slices.SortFunc(same, func(a, b packedEntry) int {
				return cmp.Or(-cmp.Compare(snap.kinds[a.kind()], snap.kinds[b.kind()]), bytes.Compare(snap.names.At(a.where()), snap.names.At(b.where())))
			})
			for _, s := range same[1:] {
				// Only a reader shares a number: with its own write node. Otherwise the
				// servers' counter has stuck at its end, and nobody knows who was first.
				if snap.kinds[s.kind()] != Read {
					return ErrSequenceExhausted
				}
			}
		}
		from = to
	}
	return nil
}

// OtherAhead is whether a node of another kind of lock has a lower number than the one at
// a place.
func (snap *Snapshot) OtherAhead(at int) bool {
	return snap.other.name != "" && snap.other.seq < snap.Seq(at)
}

// FirstOther is the node of another kind of lock with the lowest number, "" if there is
// none.
func (snap *Snapshot) FirstOther() string { return snap.other.name }

// Free gives back the memory of a snapshot that nobody uses any more. That of its
// names belongs to the reply.
func (snap *Snapshot) Free() {
	snap.names, snap.kinds = wire.Names{}, nil
	snapshots.Put(snap)
}

// Len is how many nodes stand in it; 0 for a nil snapshot.
func (snap *Snapshot) Len() int {
	if snap == nil {
		return 0
	}
	return len(snap.entries)
}

// Seq is the number of a node, by its place.
func (snap *Snapshot) Seq(i int) int32 { return snap.entries[i].seq() }

// Kind is what kind of node it is.
func (snap *Snapshot) Kind(i int) Kind { return snap.kinds[snap.entries[i].kind()] }

// Name is its name.
func (snap *Snapshot) Name(i int) string { return string(snap.Bytes(i)) }

// Bytes is its name in the memory of the list.
func (snap *Snapshot) Bytes(i int) []byte { return snap.names.At(snap.entries[i].where()) }

// Entries are the nodes from one place up to another.
func (snap *Snapshot) Entries(from, to int) []Entry {
	all := make([]Entry, 0, to-from)
	for i := from; i < to; i++ {
		all = append(all, Entry{snap.Name(i), snap.Kind(i)})
	}
	return all
}

// Find is where a name stands, -1 if it does not.
func (snap *Snapshot) Find(name string) int {
	seq, ok := sequence(name[max(0, len(name)-digits):])
	if !ok || snap.Len() == 0 {
		return -1
	}
	i, _ := slices.BinarySearch(snap.entries, packedEntry(seq)<<numberAt)
	for ; i < snap.Len() && snap.Seq(i) == seq; i++ {
		if string(snap.names.At(snap.entries[i].where())) == name {
			return i
		}
	}
	return -1
}

// Ways is in which ways the owners of the nodes from a place on take their locks.
func (snap *Snapshot) Ways(from int) (ways nodename.Ways) {
	for _, s := range snap.entries[from:] {
		ways = ways.With(nodename.WayOf(snap.names.At(s.where())))
	}
	return ways
}

// HasYielding is whether a node of a MultiLock is among them.
func (snap *Snapshot) HasYielding() bool {
	return slices.ContainsFunc(snap.entries, func(s packedEntry) bool { return nodename.Yields(snap.names.At(s.where())) })
}
