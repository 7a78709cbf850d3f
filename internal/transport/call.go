package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// ErrLost reports that the connection ended before the reply came. It is
// wrapped in a *LostError.
var ErrLost = errors.New("connection lost")

// ErrTooLong reports a reply that is longer than Config.MaxReply. The request
// was executed.
var ErrTooLong = errors.New("reply too long")

// LostError says how a call ended that got no reply.
type LostError struct {
	Sent  bool  // whether it may have reached the server
	Cause error // why the connection ended
}

// Error implements error.
func (e *LostError) Error() string {
	if e.Sent {
		return fmt.Sprintf("%v before the reply: %v", ErrLost, e.Cause)
	}
	return fmt.Sprintf("%v before the request was sent: %v", ErrLost, e.Cause)
}

// Unwrap gives ErrLost and the cause.
func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Cause} }

// Call is one request and its reply. Make it with NewCall, send it once, and
// read the results after Done.
type Call struct {
	// OnReply, if set before sending, runs when the call ends, before Done. With
	// a reply it runs in the goroutine that reads the connection, so that replies
	// and events are seen in the order of the wire. It must not block.
	OnReply func(*Call)

	op       wire.Op
	carries  wire.Op // an operation within it that servers may lack, 0 for none
	xid      int32
	unwanted atomic.Bool // its caller has given it up
	phase    phase       // guarded by the connection's mu. It stays fresh if another call carries this one
	last     bool        // see Tell; written before it is sent, as the next two are
	alone    bool        // it was sent by itself, see Suspects
	told     Landing     // is told of its end; nil for nobody
	slots    Slots       // gives back so much when the call ends
	taken    [2]int
	frame    []byte
	turn     chan struct{} // whose token it gives back at its end, nil for none
	done     chan struct{}

	// The fields below are written once, before done is closed.
	sentAt time.Time
	took   time.Duration // until the reply, 0 without one
	header wire.ReplyHeader
	body   []byte
	memory *[]byte // that body lies in, if it is used again
	path   string  // that the request was about, of one that was refused access
	err    error

	decoder wire.Decoder // used by Decode
}

type phase int8

const (
	fresh phase = iota
	queued
	sent
	ended
)

// NewCall encodes a request.
func NewCall(op wire.Op, req wire.Record) *Call {
	return &Call{op: op, frame: wire.NewFrame(op, req), done: make(chan struct{})}
}

// Unwatched takes the wish for a watch out of a read that has one, before it is sent.
func (c *Call) Unwatched() { c.frame[len(c.frame)-1] = 0 }

// Op is the operation that it asks for.
func (c *Call) Op() wire.Op { return c.op }

// Size is the length of the request's frame, without the four bytes of the length itself.
func (c *Call) Size() int { return len(c.frame) - 4 }

// Frame is the request as it is sent, save for its id.
func (c *Call) Frame() []byte { return c.frame }

// Path is what the request is about, if it begins with a path.
func (c *Call) Path() []byte {
	const header = 12 // length, id and operation
	return wire.NewDecoder(c.frame[header:]).Bytes()
}

// Carry says which operation within a transaction servers may lack.
func (c *Call) Carry(op wire.Op) { c.carries = op }

// Landing is told of the end of a call.
type Landing interface{ Landed(call *Call, last bool) }

// Tell has somebody told of the call's end, before OnReply runs, and whether it was the last
// of those that were sent with it. Say so before it is sent.
func (c *Call) Tell(whom Landing, last bool) { c.told, c.last = whom, last }

// Unwanted is whether Conn.Cancel was called for it.
func (c *Call) Unwanted() bool { return c.unwanted.Load() }

// Took is how long the reply took, 0 without one.
func (c *Call) Took() time.Duration { return c.took }

// SendAlone says that calls are sent by themselves, as Suspects asks. The last of them gives
// the turn back when it ends.
func SendAlone(turn chan struct{}, calls ...*Call) {
	for _, call := range calls {
		call.alone = true
	}
	calls[len(calls)-1].turn = turn
}

// Done is closed when the call has ended.
func (c *Call) Done() <-chan struct{} { return c.done }

// Err is nil if there was a reply, whatever its code, a *LostError if the
// connection ended before, and ErrTooLong if the reply was too long to be kept.
func (c *Call) Err() error { return c.err }

// Replied is whether there was a reply, be it too long.
func (c *Call) Replied() bool { return c.err == nil || errors.Is(c.err, ErrTooLong) }

// Code is the reply's.
func (c *Call) Code() wire.Code { return c.header.Code }

// Refused is which operation on which path was refused. It is for calls that were
// refused access, or found no node, and not for an exists.
func (c *Call) Refused() (op wire.Op, path string) { return c.op, c.path }

// Body is the reply's.
func (c *Call) Body() []byte { return c.body }

// ReplySize is the length of the reply's body.
func (c *Call) ReplySize() int { return len(c.body) }

// Order is the number of a call that was sent, among those of its connection.
func (c *Call) Order() int32 { return c.xid &^ ownXid }

// Zxid is the reply's.
func (c *Call) Zxid() int64 { return c.header.Zxid }

// Committed is whether the reply says that the leader and a majority have logged
// something for the session, be it a refusal.
func (c *Call) Committed() bool { return c.err == nil && committed(c.op, c.header) }

// Decode reads the reply's body, which r may share. One goroutine may decode.
func (c *Call) Decode(r wire.Record) error {
	c.decoder.Reset(c.body)
	r.Decode(&c.decoder)
	return c.decoder.Err()
}

// long is from which length on replies lie in memory that is used again, and
// mostKept how much of it is kept.
const (
	long     = 1 << 10
	mostKept = readStep
)

// replies is memory for long replies. What nobody frees is left to the collector.
var replies = sync.Pool{New: func() any { return new([]byte) }}

// Free gives back the memory of the reply, which nothing that shares it may be
// used after. It may be called only after Done.
func (c *Call) Free() {
	if c.memory != nil && cap(*c.memory) <= mostKept {
		replies.Put(c.memory)
	}
	c.body, c.memory = nil, nil
	c.decoder.Reset(nil)
}

// Slots are what calls take while they are on their way: places for requests, and for the
// bytes of replies.
type Slots interface{ Release(requests, bytes int) }

// Occupy says what was taken for the call, and those sent with it, which it gives back when
// it ends.
func (c *Call) Occupy(places Slots, requests, bytes int) {
	c.slots, c.taken = places, [2]int{requests, bytes}
}

// Discard gives back the places and the turn of a call that was not sent.
func (c *Call) Discard() {
	if c.turn != nil {
		<-c.turn
		c.turn = nil
	}
	if c.slots != nil {
		c.slots.Release(c.taken[0], c.taken[1])
		c.slots = nil
	}
}

// Abandon ends a call that was never sent, for the reason given if there is one.
func (c *Call) Abandon(cause error) {
	if cause == nil {
		cause = errCancelled
	}
	c.Fail(&LostError{Cause: cause})
}

// Fail ends a call without an answer that no connection has, for the reason given.
func (c *Call) Fail(err error) {
	c.err = err
	c.end()
}

// EndAs ends a call as the one ends that has carried it, but for the code and the body.
func (c *Call) EndAs(carrier *Call, code wire.Code, body []byte) {
	c.err, c.header, c.body = carrier.err, carrier.header, body
	c.header.Code = code
	c.end()
}

func (c *Call) setXid(xid int32) {
	c.xid = xid
	binary.BigEndian.PutUint32(c.frame[4:], uint32(xid))
}

// end closes the call; the caller has seen to it that nobody else does.
func (c *Call) end() {
	if code := c.header.Code; code == wire.CodeNoAuth || code == wire.CodeNoNode && c.op != wire.OpExists { // first, as OnReply may tell of it
		c.path = string(c.Path())
	}
	if c.told != nil {
		c.told.Landed(c, c.last)
	}
	if c.OnReply != nil {
		c.OnReply(c)
	}
	c.frame = nil
	c.Discard()
	close(c.done)
}
