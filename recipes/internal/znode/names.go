// Package znode reads the children of a lock's node. It says which nodes stand in a
// queue, in what order, and which node waits for which. It is pure.
package znode

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
)

// Kind is the kind of a node in a queue. The name of a node is a prefix that its owner
// chose (package nodename), the kind and ten digits. The server chooses the digits, except
// for the read node of a downgrade, which has the digits of its write node.
//
// Source: Curator's StandardLockInternalsDriver, InterProcessReadWriteLock,
// InterProcessSemaphoreV2 and LeaderLatch. The names are a promise: a change takes Go
// out of the queue that it shares with Java.
type Kind string

// The kinds of node.
const (
	Lock  Kind = "lock-"
	Write Kind = "__WRIT__"
	Read  Kind = "__READ__"
	Lease Kind = "lease-"
	Latch Kind = "latch-"
)

// A semaphore has two queues, which are children of its node.
const (
	Turns  = "locks"
	Leases = "leases"
)

// every has the kinds of all locks. A latch is no lock.
var every = []Kind{Lock, Write, Read, Lease}

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

// IsContender is whether a name is that of a node in some lock's queue.
func IsContender(name []byte) bool {
	_, ok := parseOtherKind(name, nil)
	return ok
}

// parseOtherKind reads a name that has none of the kinds given. ok is whether it is the
// name of a contender for another kind of lock. It ignores names of any other form.
func parseOtherKind(name []byte, kinds []Kind) (seq int32, ok bool) {
	at := len(name) - digits
	if at < 0 {
		return 0, false
	}
	if seq, ok = sequence(name); !ok {
		return 0, false
	}
	return seq, slices.ContainsFunc(every, func(kind Kind) bool {
		return !slices.Contains(kinds, kind) && bytes.HasSuffix(name[:at], []byte(kind))
	})
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
