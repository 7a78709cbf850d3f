package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// ReadOp is the read of one node: its data, or the names of its children.
type ReadOp struct {
	Path     string
	Children bool
}

func (op ReadOp) op() wire.Op {
	if op.Children {
		return wire.OpGetChildren
	}
	return wire.OpGetData
}

// Answer is what has become of some of the reads that a Reader was asked for.
type Answer struct {
	Ops     []ReadOp
	Results []wire.MultiResult // as many as Ops, unless Err is set
	Zxid    int64              // the state that the results show
	Err     error
	call    *transport.Call
}

// Free gives the memory of the results back.
func (a *Answer) Free() {
	a.Results = nil
	a.call.Free()
}

// Reader reads many nodes on one connection, in batches.
//
// A server does nothing else while it reads a batch, and builds the reply in its memory. The
// requests of the same client wait behind it, those that renew a session lease too. So a
// batch has few operations, and few where the nodes are large. Batches take their slots in
// the window like all requests, so what waits there has its turn between them. What was sent
// is not overtaken. So as many batches are on their way as the connection takes, and no more
// once they wait for each other. There are fewest while there are other requests.
type Reader struct {
	session *Session
	conn    *transport.Conn
	answer  func(*Answer)

	mu      sync.Mutex // guards the fields below
	waiting []ReadOp
	flying  int // batches on their way
	stopped bool
	most    int           // operations in the next batch
	first   int           // and in the first ones
	data    sizes         // of data in replies
	lists   sizes         // of lists of children
	last    int32         // the number of the last batch that was answered
	alone   int           // batches since there was another request
	allowed int           // batches that may be on their way, up to mostFlying
	quick   int           // batches that have not waited, since that was enlarged last
	late    int           // batches in a row that have
	fastest time.Duration // that a batch has taken
}

const (
	mostReads    = 128       // in a batch
	firstReads   = 64        // in batches before the first reply, at most
	largestNode  = 1 << 20   // bytes, as servers bound them by default
	fewReads     = 8         // in a batch after a reply that was too long
	aimedReply   = 256 << 10 // bytes
	longReply    = 1 << 20
	mostFlying   = 32                   // batches
	fewestFlying = 2                    // that wait for each other for long, while there are other requests
	staysShared  = 32                   // batches for which that is remembered
	fewestAlone  = 4                    // the same, while there are none
	bytesFlying  = 2 << 20              // of replies
	calmFlying   = 2                    // batches, unless as much waits as fills one: so that reads gather
	mostDelay    = 2 * time.Millisecond // that batches may wait for each other
	sharedDelay  = mostDelay / 2        // the same, while there are other requests
)

// NewReader makes one. answer runs in the goroutine that reads the connection, in the order
// of the wire, or in one that ends the connection. It must not block. Each read is answered
// once, unless the reader is stopped.
func NewReader(s *Session, c *transport.Conn, answer func(*Answer)) *Reader {
	r := &Reader{session: s, conn: c, answer: answer, first: first(c.Timeout()), allowed: fewestAlone}
	r.most = r.first
	return r
}

// first is how many operations a batch has before the first reply. All nodes may be as
// large as nodes can be: the replies then take a link of a hundred megabits per second a
// quarter of the session timeout.
func first(timeout time.Duration) int {
	const link = 100e6 / 8 // bytes a second
	return max(1, min(firstReads, int(timeout.Seconds()/4*link/(calmFlying*largestNode))))
}

// Ask asks for nodes. It does not block.
func (r *Reader) Ask(ops []ReadOp) {
	r.mu.Lock()
	if !r.stopped {
		r.waiting = append(r.waiting, ops...)
	}
	r.mu.Unlock()
	r.fill()
}

// Stop gives up what is not answered yet. An answer may be about to come.
func (r *Reader) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped, r.waiting = true, nil
}

// fill sends what may be sent now.
func (r *Reader) fill() {
	for {
		ops := r.next()
		if ops == nil {
			return
		}
		r.send(ops)
	}
}

// next takes out the next batch, nil if it has to wait.
func (r *Reader) next() []ReadOp {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.fittingLocked()
	bytes, known := r.expectedLocked(r.waiting[:n])
	switch {
	case n == 0,
		(n == len(r.waiting) && n < r.most || !known) && r.flying >= calmFlying,
		r.flying >= r.allowed,
		r.flying > 0 && r.data.flying()+r.lists.flying()+bytes > bytesFlying:
		return nil
	}
	n = fitting(r.session, r.waiting[:n])
	ops := r.waiting[:n:n]
	if r.waiting = r.waiting[n:]; len(r.waiting) == 0 {
		r.waiting = nil
	}
	r.tellLocked(ops, 1)
	return ops
}

// fittingLocked is how many of the reads that wait go into one batch, by the bytes of the reply.
func (r *Reader) fittingLocked() int {
	most := min(r.most, len(r.waiting))
	for n, bytes := 0, 0.0; n < most; n++ {
		if bytes += r.sizesLocked(r.waiting[n]).mean; n > 0 && bytes > aimedReply {
			return n
		}
	}
	return most
}

// expectedLocked is how long the reply to some reads will be, and whether that is known. The
// size of one node says nothing of the others.
func (r *Reader) expectedLocked(ops []ReadOp) (bytes float64, known bool) {
	known = true
	for _, op := range ops {
		s := r.sizesLocked(op)
		bytes += s.mean
		known = known && (s.seen >= r.first || op.Children && s.seen > 0)
	}
	return bytes, known
}

func (r *Reader) sizesLocked(op ReadOp) *sizes {
	if op.Children {
		return &r.lists
	}
	return &r.data
}

// tellLocked says that a batch leaves, or that one is back.
func (r *Reader) tellLocked(ops []ReadOp, sign int) {
	r.flying += sign
	for _, op := range ops {
		r.sizesLocked(op).asked += sign
	}
}

// sizes are those of one kind of results.
type sizes struct {
	seen  int     // results
	asked int     // results that are on their way
	mean  float64 // bytes
}

// flying is how many bytes are on their way.
func (s *sizes) flying() float64 { return float64(s.asked) * s.mean }

// note takes in some more results. Longer ones count at once.
func (s *sizes) note(results, bytes int) {
	if results > 0 {
		const slowly = 4
		mean := float64(bytes) / float64(results)
		s.seen, s.mean = s.seen+results, max(mean, s.mean+(mean-s.mean)/slowly)
	}
}

func (r *Reader) send(ops []ReadOp) {
	s := r.session
	call := newReads(ops)
	sent := s.clock.Now()
	call.OnReply = func(call *transport.Call) { r.answered(&Answer{Ops: ops, call: call}, s.clock.Since(sent)) }
	err := SendInTurn(s, r.conn, call, "")
	var lost *transport.LostError
	switch {
	case err == nil:
	case !errors.As(err, &lost) && s.Go(func(ctx context.Context) {
		// Only suspected of ending connections: it has to be sent by itself.
		if err := s.Send(ctx, r.conn, call); err != nil {
			r.failed(ops, call, err)
		}
	}):
	default:
		r.failed(ops, call, err)
	}
}

// failed is answered for a batch that was not sent.
func (r *Reader) failed(ops []ReadOp, call *transport.Call, err error) {
	r.mu.Lock()
	r.tellLocked(ops, -1)
	r.mu.Unlock()
	r.answer(&Answer{Ops: ops, Err: err, call: call})
}

// answered takes in the end of a batch, and how long it took.
func (r *Reader) answered(a *Answer, took time.Duration) {
	s, size := r.session, 0
	a.Err = s.Ended(a.call, false)
	if a.Err == nil {
		a.Zxid, size = a.call.Zxid(), a.call.ReplySize()
		a.Results, a.Err = Results(a.call, len(a.Ops))
	} else if errors.Is(a.Err, ErrReplyTooLarge) {
		a.Zxid = a.call.Zxid() // that it is too long is what it shows
	}
	again := len(a.Ops) > 1 && errors.Is(a.Err, ErrReplyTooLarge)
	r.mu.Lock()
	r.tellLocked(a.Ops, -1)
	switch {
	case again && !r.stopped:
		r.most = max(1, len(a.Ops)/2)
		r.waiting = append(a.Ops, r.waiting...)
	case a.Results != nil:
		r.paceLocked(a, size, took)
	}
	r.mu.Unlock()
	if !again {
		r.answer(a)
	}
	r.fill()
}

// paceLocked takes in how long a reply is, and how long it took.
func (r *Reader) paceLocked(a *Answer, size int, took time.Duration) {
	lists, names := 0, 0
	for i := range a.Results {
		if a.Ops[i].Children {
			lists, names = lists+1, names+a.Results[i].Children.Size()
		}
	}
	r.lists.note(lists, names)
	r.data.note(len(a.Ops)-lists, size-names)
	if size-names > longReply {
		r.most = min(r.most, fewReads)
		return
	}
	if len(a.Ops) >= r.most {
		r.most = min(mostReads, 2*r.most)
	}
	if size > longReply {
		return
	}
	if r.fastest == 0 || took < r.fastest {
		r.fastest = took
	}
	if r.alone++; a.call.Order() != r.last+1 {
		r.alone = 0
	}
	r.last = a.call.Order()
	fewest, delay, shared := fewestAlone, mostDelay, r.alone <= staysShared
	if shared {
		fewest, delay = fewestFlying, sharedDelay
	}
	if took > r.fastest+delay {
		// One may be late by chance, on a busy machine most are. All of a round trip are late if
		// they wait for each other. Where others wait too, that they may is enough.
		switch r.late++; {
		case shared:
			r.allowed, r.late = max(fewest, r.allowed-1), 0
		case r.late >= r.allowed:
			r.allowed, r.late = max(fewest, r.allowed*3/4), 0
		}
		return
	}
	r.late = 0
	// Whether one more has to wait shows after a round trip. Meanwhile others would wait behind
	// all that are added.
	if r.quick++; !shared || r.quick >= r.allowed {
		r.allowed, r.quick = min(mostFlying, r.allowed+1), 0
	}
}

// readSize is what one of several reads takes in their request, without its path.
const readSize = 9 + 4 + 1

// fitting is how many of the first reads fit into one request: one at least. There are fewer
// where connections have ended at large ones.
func fitting(s *Session, ops []ReadOp) int {
	room := s.transport.Suspects.Limit(wire.OpMultiRead, MostInTransaction(s)) - transactionSize
	for i, op := range ops {
		if room -= readSize + len(op.Path); room < 0 && i > 0 {
			return i
		}
	}
	return len(ops)
}

// newReads is the request for several nodes.
func newReads(ops []ReadOp) *transport.Call {
	req, paths := &wire.MultiRequest{Ops: make([]wire.MultiOp, len(ops))}, make([]wire.PathWatchRequest, len(ops))
	for i, op := range ops {
		paths[i].Path = op.Path
		req.Ops[i] = wire.MultiOp{Op: op.op(), Request: &paths[i]}
	}
	return transport.NewCall(wire.OpMultiRead, req)
}

// Results are those of a request of n operations, in their order. They share the call's
// memory.
func Results(call *transport.Call, n int) ([]wire.MultiResult, error) {
	resp := wire.MultiResponse{Results: make([]wire.MultiResult, 0, n)}
	if err := call.Decode(&resp); err != nil {
		return nil, err
	}
	if len(resp.Results) != n {
		return nil, fmt.Errorf("%w: %d results instead of %d", transport.ErrProtocol, len(resp.Results), n)
	}
	return resp.Results, nil
}
