package retry

import "time"

// Decision is a classifier's answer. Decisions can be compared with ==.
type Decision struct {
	kind  kind
	after time.Duration
}

type kind uint8

const (
	kindPass kind = iota
	kindAgain
	kindStop
	kindUnsure
)

// Pass says that the classifier has no opinion: the next one decides. If no
// classifier has an opinion, the error is Again. There is one exception: for the *Error
// of a loop inside op, the judgement of that loop counts.
var Pass = Decision{kind: kindPass}

// Again says that the failure may pass, and that nothing has happened.
var Again = Decision{kind: kindAgain}

// Stop says that trying again cannot help.
var Stop = Decision{kind: kindStop}

// Unsure says that the attempt may have taken effect: Again if the call is
// Idempotent, Stop if not.
var Unsure = Decision{kind: kindUnsure}

// AgainAfter is Again with the delay the other side asked for. The wait is d
// or the policy's delay, whichever is longer. A d of 0 or less is Again.
func AgainAfter(d time.Duration) Decision {
	return Decision{kind: kindAgain, after: max(0, d)}
}

// String returns the decision's name, such as "again after 1s".
func (d Decision) String() string {
	switch d.kind {
	case kindAgain:
		if d.after > 0 {
			return "again after " + d.after.String()
		}
		return "again"
	case kindStop:
		return "stop"
	case kindUnsure:
		return "unsure"
	}
	return "pass"
}
