package zktest

import (
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// Fault is what happens to a request.
type Fault struct {
	kind    faultKind
	delay   time.Duration
	code    wire.Code
	fn      func(Request)
	seed    uint64
	choices []Fault
	by      Distribution
	bytes   int
	choose  func(Request) Fault
}

type faultKind int

const (
	faultNone faultKind = iota
	faultCutBefore
	faultCutAfter
	faultDelay
	faultFail
	faultCall
	faultRandom
	faultDelayBy
	faultCutReply
	faultChoose
	faultDropReply
)

// CutBefore closes the connection; the request is not applied.
func CutBefore() Fault { return Fault{kind: faultCutBefore} }

// CutAfter applies the request and closes the connection in place of the
// reply. Replies to earlier requests and events still go out.
func CutAfter() Fault { return Fault{kind: faultCutAfter} }

// Delay lets d pass before the server handles the request. All later requests
// of its connection wait as well.
func Delay(d time.Duration) Fault { return Fault{kind: faultDelay, delay: d} }

// CutReply applies the request, sends the first n bytes of the reply, at least
// one and not all, and closes the connection. A frame begins with four bytes of
// length. A request without a reply, or one whose reply is outside the order of
// requests, such as a ping, is answered in full.
func CutReply(n int) Fault { return Fault{kind: faultCutReply, bytes: max(n, 1)} }

// DropReply applies the request and never sends the reply. The connection stays, and
// later requests are answered.
func DropReply() Fault { return Fault{kind: faultDropReply} }

// DelayBy is Delay with a time drawn anew for each request. The same seed draws
// the same times, in the order in which requests match. It panics if d is nil.
func DelayBy(seed uint64, d Distribution) Fault {
	if d == nil {
		panic("zktest: DelayBy without a distribution")
	}
	return Fault{kind: faultDelayBy, seed: seed, by: d}
}

// Choose applies the fault that fn returns; the zero Fault does nothing. fn is
// called in the same way as Match.Func. Choose panics if fn is nil.
func Choose(fn func(Request) Fault) Fault {
	if fn == nil {
		panic("zktest: Choose without a function")
	}
	return Fault{kind: faultChoose, choose: fn}
}

// String names what happens.
func (f Fault) String() string {
	switch f.kind {
	case faultCutBefore:
		return "cut before"
	case faultCutAfter:
		return "cut after"
	case faultDelay:
		return "delay " + f.delay.String()
	case faultFail:
		return "fail " + f.code.String()
	case faultCall:
		return "call"
	case faultRandom:
		return "random"
	case faultDelayBy:
		return "delay by distribution"
	case faultCutReply:
		return fmt.Sprintf("cut reply after %d bytes", f.bytes)
	case faultChoose:
		return "choose"
	case faultDropReply:
		return "drop the reply"
	}
	return "nothing"
}

// Fail answers with a ZooKeeper code, such as -101 for no node, and does not
// apply the request. It answers a connect as if its session were gone. An auth
// that fails also ends the connection, as on a real server. Fail panics on a code that is
// not negative, since no server has one.
func Fail(code int32) Fault {
	if code >= 0 {
		panic(fmt.Sprintf("zktest: Fail(%d): ZooKeeper's codes are negative, such as -101", code))
	}
	return Fault{kind: faultFail, code: wire.Code(code)}
}

// Call runs fn and then goes on with the request. fn may call the server's
// methods; the connection's later requests wait for it. Call panics if fn is nil.
func Call(fn func(Request)) Fault {
	if fn == nil {
		panic("zktest: Call without a function")
	}
	return Fault{kind: faultCall, fn: fn}
}

// Random picks one of the faults, or none, each with the same probability. The
// same seed makes the same choices, in the order in which requests match.
func Random(seed uint64, f ...Fault) Fault { return Fault{kind: faultRandom, seed: seed, choices: f} }
