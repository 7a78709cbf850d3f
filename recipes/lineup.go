package recipes

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

// lineup is a queue as a list showed it, in order. Names stay where they lie in
// the list until one is asked for: hundreds may wait, each looks at all of them
// before its turn, and needs one.
type lineup struct {
	names wire.Names
	marks []string // what kinds of node were picked
	spots []spot
	other otherContender
}

// spot is a contender without its name. Spots compare as their numbers do.
type spot uint64

// A spot is made of a number, of which of the marks its node has, and of where in
// the list its name begins.
const (
	numberAt  = 33
	kindAt    = 32
	mostKinds = 1 << (numberAt - kindAt)
)

func (s spot) seq() int32 { return int32(s >> numberAt) }
func (s spot) kind() int  { return int(s >> kindAt & (mostKinds - 1)) }
func (s spot) where() int { return int(uint32(s)) }

// contender is a node in a queue.
type contender struct {
	name string
	mark string // what kind of node it is
}

var lineups = sync.Pool{New: func() any { return new(lineup) }}

// lineUp is a queue of this kind as a list of its children shows it.
func (q *queue) lineUp(names wire.Names) (*lineup, error) {
	return lineUp(names, q.marks, !q.isPart())
}

// otherKind refuses a path where another kind of lock was seen.
func otherKind(path, child string) error {
	return fmt.Errorf("%w: %s is used by a lock of another kind, which has the node %s there: give each lock a path of its own, "+
		"or delete that node if its lock is no longer in use", ErrInvalidLock, path, child)
}

// otherContender is the first contender for another kind of lock in a list.
type otherContender struct {
	name string // "" for none
	seq  int32
}

func (o *otherContender) see(name []byte, seq int32) {
	if o.name == "" || seq < o.seq {
		*o = otherContender{string(name), seq}
	}
}

// refuse refuses to go on in a queue that belongs to another kind of lock: to that
// of the first of all contenders. One that came later is refused itself.
func (q *queue) refuse(l *lineup) error {
	if o := l.other; o.name != "" && (l.len() == 0 || o.seq < l.seq(0)) {
		return otherKind(q.path, o.name)
	}
	return nil
}

// lineUp picks from a list of children those that stand in a queue, in order, and
// notes contenders for another kind of lock. Children with any other names are
// none of ours and are passed over. With ownPath the children are those of the
// lock's own path, where the leases of a semaphore are of another kind as well.
func lineUp(names wire.Names, marks []string, ownPath bool) (*lineup, error) {
	l := lineups.Get().(*lineup)
	l.names, l.marks, l.spots, l.other = names, marks, l.spots[:0], otherContender{}
	for at, name := range names.All() {
		seq, kind, ok, err := parseContender(name, marks)
		if err != nil {
			l.free()
			return nil, err
		}
		if ok {
			l.spots = append(l.spots, spot(seq)<<numberAt|spot(kind)<<kindAt|spot(at))
		} else if seq, ok := parseOtherKind(name, marks); ok {
			l.other.see(name, seq)
		} else if ownPath && string(name) == semaphoreLeases {
			l.other.see(name, -1) // it has no number
		}
	}
	slices.Sort(l.spots)
	if err := l.separate(); err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

// separate orders those that have the same number.
func (l *lineup) separate() error {
	for from := 0; from < len(l.spots); {
		to := from + 1
		for to < len(l.spots) && l.spots[to].seq() == l.spots[from].seq() {
			to++
		}
		if same := l.spots[from:to]; len(same) > 1 {
			// A downgraded reader comes behind the write node whose number it has.
			slices.SortFunc(same, func(a, b spot) int {
				return cmp.Or(-cmp.Compare(l.marks[a.kind()], l.marks[b.kind()]), bytes.Compare(l.names.At(a.where()), l.names.At(b.where())))
			})
			for _, s := range same[1:] {
				// Only a reader shares a number: with its own write node. Otherwise the
				// servers' counter has stuck at its end, and nobody knows who was first.
				if l.marks[s.kind()] != readName {
					return ErrSequenceExhausted
				}
			}
		}
		from = to
	}
	return nil
}

// free gives back the memory of a lineup that nobody uses any more. That of its
// names belongs to the reply.
func (l *lineup) free() {
	l.names, l.marks = wire.Names{}, nil
	lineups.Put(l)
}

// len is how many stand in it; of no lineup, nobody.
func (l *lineup) len() int {
	if l == nil {
		return 0
	}
	return len(l.spots)
}

func (l *lineup) seq(i int) int32   { return l.spots[i].seq() }
func (l *lineup) mark(i int) string { return l.marks[l.spots[i].kind()] }
func (l *lineup) name(i int) string { return string(l.bytes(i)) }

// bytes are a name as it lies in the list.
func (l *lineup) bytes(i int) []byte { return l.names.At(l.spots[i].where()) }

// span are those from one up to another.
func (l *lineup) span(from, to int) []contender {
	all := make([]contender, 0, to-from)
	for i := from; i < to; i++ {
		all = append(all, contender{l.name(i), l.mark(i)})
	}
	return all
}

// find is where a contender's name stands, -1 if it does not.
func (l *lineup) find(name string) int {
	seq, ok := framework.Sequence(name[max(0, len(name)-sequenceDigits):])
	if !ok || l.len() == 0 {
		return -1
	}
	i, _ := slices.BinarySearch(l.spots, spot(seq)<<numberAt)
	for ; i < l.len() && l.seq(i) == seq; i++ {
		if string(l.names.At(l.spots[i].where())) == name {
			return i
		}
	}
	return -1
}

// hasParty is whether a node of a MultiLock is among them.
func (l *lineup) hasParty() bool {
	return slices.ContainsFunc(l.spots, func(s spot) bool { return session.Yields(l.names.At(s.where())) })
}

// aheadExclusive is who a lock for one waits for: the one directly ahead.
func aheadExclusive(_ *lineup, at int) (i int, waits bool) {
	return at - 1, at > 0
}

// aheadRead is who a reader waits for: the last writer ahead, other than the
// owner's own of the same number that it was downgraded from.
//
// Differs: Curator's readers wait for the first one, and so wake once for each.
func aheadRead(line *lineup, at int) (i int, waits bool) {
	for i := at - 1; i >= 0; i-- {
		own := at < line.len() && line.seq(i) == line.seq(at)
		if line.mark(i) == writeName && !own {
			return i, true
		}
	}
	return 0, false
}
