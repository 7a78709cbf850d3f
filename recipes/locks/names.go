package locks

import (
	"bytes"
	"slices"
	"strconv"

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

// allMarks are those of every kind of lock.
var allMarks = []string{lockName, writeName, readName, leaseName}

// parseOtherKind reads a name that has none of the kinds given. ok is whether it is
// that of a contender for another kind of lock. Names of any other form say nothing.
func parseOtherKind(name []byte, marks []string) (seq int32, ok bool) {
	at := len(name) - sequenceDigits
	if at < 0 {
		return 0, false
	}
	if seq, ok = framework.Sequence(string(name[at:])); !ok {
		return 0, false
	}
	return seq, slices.ContainsFunc(allMarks, func(mark string) bool {
		return !slices.Contains(marks, mark) && bytes.HasSuffix(name[:at], []byte(mark))
	})
}

// sequenceDigits is how many digits a server puts behind a name.
const sequenceDigits = 10

// seqLimit is where the numbers count as exhausted, with room for those who
// are creating nodes at this moment.
const seqLimit = 1<<31 - 1<<16

// parseContender reads one name. kind is which of the kinds it has; ok is false for
// what is none of ours.
func parseContender(name []byte, marks []string) (seq int32, kind int, ok bool, err error) {
	if at := len(name) - sequenceDigits; at >= 0 {
		if seq, ok := framework.Sequence(string(name[at:])); ok && seq < seqLimit { // as most are
			for kind, mark := range marks {
				if from := at - len(mark); from >= 0 && string(name[from:at]) == mark {
					return seq, kind, true, nil
				}
			}
		}
	}
	for kind, mark := range marks {
		at := bytes.LastIndex(name, []byte(mark))
		if at < 0 {
			continue
		}
		digits := string(name[at+len(mark):])
		if seq, ok := framework.Sequence(digits); ok && len(digits) == sequenceDigits {
			if seq >= seqLimit {
				return 0, 0, false, ErrSequenceExhausted
			}
			return seq, kind, true, nil
		}
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil && n < 0 {
			return 0, 0, false, ErrSequenceExhausted
		}
	}
	return 0, 0, false, nil
}
