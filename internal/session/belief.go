package session

import (
	"time"

	"github.com/paddock-zk/paddock/internal/link"
)

// Proof says what may extend the belief that the servers keep the session.
type Proof int

// The grades of belief.
const (
	// ProofServer trusts each reply. Exact if there is one server.
	ProofServer Proof = iota
	// ProofLeader trusts what a later committed write confirms.
	ProofLeader
)

// belief knows until when the servers cannot have ended the session, as far as
// the rates of clocks differ by no more than one percent.
//
// The servers end a session one timeout after they last heard of it, which is
// after the request they heard of was sent. So with one server the deadline is
// the sending of the last request that was answered, plus the timeout, less an
// allowance for clocks.
//
// In an ensemble it is the leader that counts, while the server we talk to
// answers pings and reads by itself, and goes on doing so for syncLimit ticks
// after it has lost the leader. It reports our touches to the leader with its
// answers to the leader's pings, every half tick, which is at most a quarter of
// the timeout unless minSessionTimeout was lowered. A write that was committed
// proves that the server had its leader: its commit came over the same ordered
// connection as the leader's pings. So a write that came back quickly confirms
// every request of the same connection whose reply had come one relay period
// before it was sent: in between the leader pinged at least once, the answer to
// which carried our touch. A deposed leader commits nothing, and a new one
// gives each session a full timeout.
//
// The connect request is relayed to the leader by itself and needs only the
// write.
type belief struct {
	timeout time.Duration
	acked   time.Time // sending of the latest request that was answered
	proved  time.Time // sending of the latest request that the leader knows of
	connect time.Time // sending of this connection's connect request
	waiting []link.Ack
}

// span is for how long a proof is good: the timeout, less what a clock may be
// slower than the servers' by. The rate of a quartz is off by a hundredth of a
// percent at most; one percent leaves room for virtual machines, and for clocks
// that are being corrected.
func (b *belief) span() time.Duration { return b.timeout - b.timeout/64 }

func (b *belief) relay() time.Duration { return b.timeout / 3 }
func (b *belief) quick() time.Duration { return b.timeout / 6 }

// spacing thins out the requests that are remembered: which of them a write
// confirms matters to a small part of the timeout only.
func (b *belief) spacing() time.Duration { return b.timeout / 48 }

// begin starts a connection. A session that is continued keeps what was proved.
func (b *belief) begin(c *link.Conn, fresh bool) {
	if fresh {
		*b = belief{}
	}
	b.timeout = c.Timeout()
	b.connect = c.CreatedAt()
	b.waiting = b.waiting[:0]
	b.raise(&b.acked, b.connect)
}

func (b *belief) raise(t *time.Time, to time.Time) {
	if to.After(*t) {
		*t = to
	}
}

// hear takes in a reply. It reports whether there is something to confirm that
// was not there before.
func (b *belief) hear(a link.Ack) (news bool) {
	b.raise(&b.acked, a.Sent)
	if a.Write && a.Replied.Sub(a.Sent) <= b.quick() {
		b.confirm(a.Sent.Add(-b.relay()))
	}
	n := len(b.waiting)
	if n == 0 || a.Sent.Sub(b.waiting[n-1].Sent) >= b.spacing() {
		b.waiting = append(b.waiting, a)
	}
	return n == 0
}

// confirm proves the connect request, and what was answered by the time given.
func (b *belief) confirm(by time.Time) {
	b.raise(&b.proved, b.connect)
	n := 0
	for n < len(b.waiting) && !b.waiting[n].Replied.After(by) {
		b.raise(&b.proved, b.waiting[n].Sent)
		n++
	}
	b.waiting = append(b.waiting[:0], b.waiting[n:]...)
}

// deadline is when the belief ends.
func (b *belief) deadline(p Proof) time.Time {
	if p == ProofServer {
		return b.acked.Add(b.span())
	}
	if b.proved.IsZero() {
		return time.Time{}
	}
	return b.proved.Add(b.span())
}

// due is when a write is wanted that confirms something new: at once for the
// connect request, which was relayed by itself; else when the oldest request can
// be confirmed, and not before half of the timeout has gone since what is proved,
// as other writes may come meanwhile.
func (b *belief) due() (at time.Time, ok bool) {
	if b.connect.After(b.proved) {
		return b.connect, true
	}
	if len(b.waiting) == 0 {
		return time.Time{}, false
	}
	at = b.waiting[0].Replied.Add(b.relay())
	b.raise(&at, b.proved.Add(b.timeout/2))
	return at, true
}
