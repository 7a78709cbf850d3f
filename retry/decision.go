package retry

import "time"

// Decision is a classifier's answer. Decisions can be compared with ==.
type Decision struct {
	kind  kind
	after time.Duration
}

type kind uint8

// The stricter kind comes later.
const (
	kindPass kind = iota
	kindAgain
	kindUnsure
	kindStop
)

// stricter is the one of two decisions that forbids more.
func stricter(a, b Decision) Decision {
	if b.kind > a.kind || b.kind == a.kind && b.after > a.after {
		return b
	}
	return a
}

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
// or the policy's delay, whichever is longer; WithMaxAfter bounds d. A d of 0 or
// less is Again. A loop around this one waits by its own policy alone.
func AgainAfter(d time.Duration) Decision {
	return Decision{kind: kindAgain, after: max(0, d)}
}

// UnsureAfter is Unsure with the delay the other side asked for, as for AgainAfter.
func UnsureAfter(d time.Duration) Decision {
	return Decision{kind: kindUnsure, after: max(0, d)}
}

// String returns the decision's name, such as "again after 1s".
func (d Decision) String() string {
	text := [...]string{kindPass: "pass", kindAgain: "again", kindUnsure: "unsure", kindStop: "stop"}[d.kind]
	if d.after > 0 {
		text += " after " + d.after.String()
	}
	return text
}
