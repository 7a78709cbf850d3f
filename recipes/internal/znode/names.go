// Package znode reads the children of a lock's node. It says which nodes stand in a
// queue, in what order, and which node waits for which. It is pure.
package znode

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"github.com/paddock-zk/paddock/internal/session/nodename"
)

// Kind is the kind of a node in a queue. Package nodename has all of them.
type Kind = nodename.Kind

// The kinds of node that this module makes.
const (
	Lock  = nodename.Lock
	Write = nodename.Write
	Read  = nodename.Read
	Lease = nodename.Lease
	Latch = nodename.Latch
)

// A semaphore has two queues, which are children of its node.
const (
	Turns  = nodename.Turns
	Leases = nodename.Leases
)

// ErrSequenceExhausted reports a queue whose sequence numbers are near their end, or have
// passed it, so that their order means nothing. The numbers begin again when the lock's
// node is deleted. The servers delete an idle container.
var ErrSequenceExhausted = errors.New("sequence numbers exhausted")

const (
	// digits is how many of them a server puts behind a name.
	digits = 10
	// seqLimit is where the numbers count as exhausted. It leaves room for nodes that are
	// being created at this moment.
	seqLimit = 1<<31 - 1<<16
)

// sequence is the number at the end of a name; ok is false if there is none.
func sequence[N string | []byte](name N) (n int32, ok bool) {
	if len(name) < digits {
		return 0, false
	}
	var v int64
	for i := len(name) - digits; i < len(name); i++ {
		c := name[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		v = 10*v + int64(c-'0')
	}
	if v > 1<<31-1 {
		return 0, false
	}
	return int32(v), true
}

// Digits is the number at the end of a name of that kind, as text.
func Digits(name string, kind Kind) string {
	return name[bytes.LastIndex([]byte(name), []byte(kind))+len(kind):]
}

// Contender is the number of a node in some lock's queue. ok is false for all other names.
func Contender(name []byte) (seq int32, ok bool) { return parseOtherKind(name, nil) }

// parseOtherKind reads a name that has none of the kinds given. ok is whether it is the
// name of a contender for another kind of lock. It ignores names of any other form.
func parseOtherKind(name []byte, kinds []Kind) (seq int32, ok bool) {
	kind, _ := nodename.KindOf(name)
	if kind == "" || slices.Contains(kinds, kind) {
		return 0, false
	}
	return sequence(name)
}

// parseName reads one name. kind is which of the kinds it has; ok is false for a
// name that stands in no queue of these kinds.
func parseName(name []byte, kinds []Kind) (seq int32, kind int, ok bool, err error) {
	if at := len(name) - digits; at >= 0 {
		if seq, ok := sequence(name); ok && seq < seqLimit { // as most are
			for kind, text := range kinds {
				if from := at - len(text); from >= 0 && string(name[from:at]) == string(text) {
					return seq, kind, true, nil
				}
			}
		}
	}
	for kind, text := range kinds {
		at := bytes.LastIndex(name, []byte(text))
		if at < 0 {
			continue
		}
		number := string(name[at+len(text):])
		if seq, ok := sequence(number); ok && len(number) == digits {
			if seq >= seqLimit {
				return 0, 0, false, ErrSequenceExhausted
			}
			return seq, kind, true, nil
		}
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && n < 0 {
			return 0, 0, false, ErrSequenceExhausted
		}
	}
	return 0, 0, false, nil
}
