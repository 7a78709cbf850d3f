package transport

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// Conn is one connection to one server, in one session. It is the guard
// connection: to go-zookeeper it is the net.Conn that the dialer returned, and
// it carries our own requests beside those of go-zookeeper on the same socket.
//
// Ours have transaction ids with ownXid set; go-zookeeper counts from 1 and would need
// 2^30 requests to reach them. Replies to ours never reach go-zookeeper. The connection
// checks whatever reaches go-zookeeper, which panics on frames that are too short and
// trusts their lengths.
//
// go-zookeeper's receive loop drives the reading: its calls of Read hand out
// our replies and the events on the way. Writing is done by one goroutine of
// the connection, which puts everything that waits into one write.
//
// go-zookeeper pings through it, and connects again when it ends: see transport.go, and
// hosts.go for the order of servers.
//
// mu is a leaf: nothing else is locked and nothing is called under it.
type Conn struct {
	transport *Transport
	nc        net.Conn
	in        *bufio.Reader
	source    Source // of what leaves with others; nil for none
	target    target
	local     []byte // see LocalIP

	// The fields below are set by the handshake, before Handler.Up.
	session   int64
	timeout   time.Duration
	readOnly  bool
	forgets   bool      // the server takes no session up again, so it gives no password
	createdAt time.Time // when the connect request was about to be written

	// The fields below are used by the reading goroutine, and after it.
	shake  handshake
	unused bool   // nobody has used the session before, and no request of this connection was taken
	step   Step   // of the exchange of SASL that is to come, nil for none
	libIn  []byte // what go-zookeeper has still to read

	silence atomic.Int64    // how long the server may say nothing, in nanoseconds
	wake    chan struct{}   // holds a token while there may be something to write
	life    context.Context // ends when the connection has ended
	endLife context.CancelFunc

	mu      sync.Mutex // guards the fields below
	first   []outgoing // what leaves first
	out     []outgoing
	sent    unanswered
	reading bool  // go-zookeeper is inside Read: where its goroutine is, in any state of the connection
	up      bool  // Handler.Up was called, which is told of the end: err says nothing of it
	err     error // why the connection ended, once it has
	over    bool  // finish has run, or is running. It follows err, as replies that have come are handed out first
	// unwritten is why nothing can be written any more.
	unwritten error
}

// Source has requests of ours that may leave with others. Its mutex comes before the
// connection's.
type Source interface {
	// Fill sends what is to leave now. The goroutine that writes calls it each time it wakes.
	// It returns after what time it is to be called again, 0 for not before the next Wake.
	Fill() time.Duration
	// Cancel takes back a call that it has not sent, and reports whether it did.
	Cancel(call *Call) bool
	// End says that the connection has ended, with all calls that were sent.
	End(cause error)
}

// outgoing is a call of ours, or a frame of go-zookeeper's.
type outgoing struct {
	call  *Call
	frame []byte
	ping  bool
	xid   int32 // of a frame that is answered in the order of sending, else 0
	more  bool  // the next one must follow at once
}

// ownXid marks the transaction ids of our requests.
const ownXid = 1 << 30

// nextXid is that of the next request. Ids go on from one connection to the next: a server
// takes a write of the session that comes through another server for the one with this id
// that it has been sent itself, and answers that with what the other has done.
//
// Source: ZooKeeper's CommitProcessor, which compares the cxids of a session.
func (l *Transport) nextXid() int32 { return ownXid | l.xids.Add(1)&(ownXid-1) }

// newConn makes the connection of nc, with the patience that is left for its handshake.
func newConn(l *Transport, nc net.Conn, t target, p *patience) *Conn {
	c := &Conn{
		transport: l,
		nc:        nc,
		in:        bufio.NewReaderSize(nc, 8<<10),
		target:    t,
		local:     []byte("127.0.0.1"),
		wake:      make(chan struct{}, 1),
	}
	if tcp, ok := nc.LocalAddr().(*net.TCPAddr); ok {
		c.local = []byte(tcp.IP.String())
	}
	c.life, c.endLife = context.WithCancel(context.Background())
	c.shake.patience = p
	if l.cfg.Source != nil {
		c.source = l.cfg.Source(c)
	}
	c.silence.Store(int64(l.cfg.ConnectTimeout))
	return c
}

// SessionID is the id of the session.
func (c *Conn) SessionID() int64 { return c.session }

// Timeout is the session's timeout as the server granted it.
func (c *Conn) Timeout() time.Duration { return c.timeout }

// ReadOnly is whether the server is cut off from the majority.
func (c *Conn) ReadOnly() bool { return c.readOnly }

// CreatedAt is when the connect request was about to be sent. It went to the
// leader, so it counts as a touch of the session.
func (c *Conn) CreatedAt() time.Time { return c.createdAt }

// Addr is the server as it is written in the connection string, with its address
// in parentheses if that was looked up.
func (c *Conn) Addr() string { return c.target.String() }

// LocalIP is the address that we have towards the server, as text. It must not be changed.
func (c *Conn) LocalIP() []byte { return c.local }

// Down is closed when the connection has ended and every call on it as well.
func (c *Conn) Down() <-chan struct{} { return c.life.Done() }

// Send queues calls, to leave in this order, nothing between them, on this
// connection or not at all. It does not block. After an error, a *LostError,
// nothing was queued and the calls do not end.
func (c *Conn) Send(calls ...*Call) error { return c.send(&c.out, calls) }

// SendFirst is Send, ahead of what Send has queued and what go-zookeeper has sent
// besides pings.
func (c *Conn) SendFirst(calls ...*Call) error { return c.send(&c.first, calls) }

func (c *Conn) send(queue *[]outgoing, calls []*Call) error {
	if len(calls) == 0 {
		return nil
	}
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return &LostError{Cause: err}
	}
	for i, call := range calls {
		call.setXid(c.transport.nextXid())
		call.phase = queued
		*queue = append(*queue, outgoing{call: call, more: i < len(calls)-1})
	}
	c.mu.Unlock()
	c.Wake()
	return nil
}

// Cancel takes back a call that has not been sent, which then ends with a
// *LostError, and reports whether it did.
func (c *Conn) Cancel(call *Call) bool {
	call.unwanted.Store(true)
	if c.source != nil && c.source.Cancel(call) {
		return true
	}
	c.mu.Lock()
	unsent := call.phase == queued
	if unsent {
		call.phase = ended
	}
	c.mu.Unlock()
	if unsent {
		call.err = &LostError{Cause: errCancelled}
		call.end()
	}
	return unsent
}

var errCancelled = errors.New("cancelled")

// Limit is how large a request of an operation should be for which several will do.
func (c *Conn) Limit(op wire.Op, most int) int {
	return c.transport.Suspects.Limit(op, min(most, c.transport.cfg.MaxRequest))
}

// Doubts is that of Suspects.
func (c *Conn) Doubts(op wire.Op) bool { return c.transport.Suspects.Doubts(op) }

// Source is where more calls come from, nil without one.
func (c *Conn) Source() Source { return c.source }

// Wake has the goroutine that writes look what there is.
func (c *Conn) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// writeLoop runs until the connection ends.
func (c *Conn) writeLoop() {
	var buf []byte
	alarm := time.NewTimer(time.Hour) // for the source
	alarm.Stop()
	defer alarm.Stop()
	for {
		select {
		case <-c.wake:
		case <-alarm.C:
		case <-c.life.Done():
			return
		}
		alarm.Stop()
		if c.source != nil {
			if again := c.source.Fill(); again > 0 {
				alarm.Reset(again)
			}
		}
		buf = c.takeOut(buf[:0])
		if len(buf) == 0 {
			continue
		}
		err := c.nc.SetWriteDeadline(time.Now().Add(time.Duration(c.silence.Load())))
		if err == nil {
			err = c.failure()
		}
		if err == nil {
			_, err = c.nc.Write(buf)
		}
		if err != nil {
			c.cannotWrite(fmt.Errorf("write: %w", networkError{err}))
			return
		}
		if cap(buf) > 64<<10 {
			buf = nil // one large request must not keep its memory
		}
	}
}

// cannotWrite ends a connection that is up. One that is not yet is about to be
// read from, and what the server said last tells why it has turned us away. So it is where
// the session is being closed: the server ends the connection behind its answer.
func (c *Conn) cannotWrite(err error) {
	c.mu.Lock()
	c.unwritten = err
	ends := c.up && !slices.ContainsFunc(c.sent.all(), func(r request) bool { return r.call != nil && r.call.op == wire.OpCloseSession })
	c.mu.Unlock()
	if ends {
		c.Kill(err)
	}
}

// mostWritten is about how much is written at a time, so that what leaves first
// need not wait for all that was queued before.
const mostWritten = 64 << 10

// takeOut appends what waits to buf, as far as it is written at a time, and marks
// it as sent.
//
// The time of sending is taken before the write, so that a deadline counted
// from it is early rather than late.
func (c *Conn) takeOut(buf []byte) []byte {
	now := c.transport.cfg.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	buf, c.first = c.takeLocked(buf, c.first, now)
	buf, c.out = c.takeLocked(buf, c.out, now)
	if len(c.first)+len(c.out) > 0 {
		c.Wake()
	}
	return buf
}

// takeLocked appends a queue to buf and returns both, with what is left of the queue.
func (c *Conn) takeLocked(buf []byte, queue []outgoing, now time.Time) ([]byte, []outgoing) {
	n, more := 0, false
	for n < len(queue) && (more || len(buf) < mostWritten) {
		o := queue[n]
		n, more = n+1, o.more
		switch {
		case o.call == nil:
			buf = append(buf, o.frame...)
			if o.xid != 0 {
				c.sent.add(request{xid: o.xid, sentAt: now})
			}
		case o.call.phase == queued:
			o.call.phase = sent
			o.call.sentAt = now
			c.sent.add(request{xid: o.call.xid, call: o.call, sentAt: now})
			buf = append(buf, o.call.frame...)
		}
	}
	left := copy(queue, queue[n:])
	clear(queue[left:])
	return buf, queue[:left]
}

// Read is go-zookeeper's. It returns bytes of frames meant for it, and deals
// with all others on the way.
func (c *Conn) Read(p []byte) (n int, err error) {
	c.mu.Lock()
	c.reading = true
	err = c.err
	c.mu.Unlock()

	for err == nil && len(c.libIn) == 0 {
		c.libIn, err = c.next()
	}
	if err != nil {
		c.Kill(err)
	}

	c.mu.Lock()
	c.reading = false
	err = c.err
	c.mu.Unlock()
	if err != nil {
		// go-zookeeper may connect again as soon as it has the error, so the end
		// of this connection must have been told by then.
		c.finish()
		<-c.life.Done()
	}
	// A connection that failed while its last frame was read still hands out
	// that frame: go-zookeeper must learn of the session, or of its end.
	if len(c.libIn) == 0 {
		return 0, err
	}
	n = copy(p, c.libIn)
	c.libIn = c.libIn[n:]
	return n, nil
}

// next reads one frame and returns it if it is for go-zookeeper.
func (c *Conn) next() ([]byte, error) {
	if !c.shake.done {
		return c.shakeHands()
	}
	n, err := c.readLength()
	if err != nil {
		return nil, err
	}
	if n > c.transport.cfg.MaxReply && n <= mostPassedOver {
		return nil, c.passOver(n)
	}
	var into *[]byte
	if n >= long {
		into = replies.Get().(*[]byte)
	}
	frame, err := c.readBody(into, n, wire.ReplyHeaderLen, c.transport.cfg.MaxReply)
	if err != nil {
		return nil, err
	}
	return c.dispatch(frame, into, c.transport.cfg.Now())
}

// mostPassedOver is how long a reply may be for the connection to survive it: a
// list of some million nodes.
const mostPassedOver = 256 << 20

// passOver reads a reply to a request of ours that is too long, without keeping it. If it
// ended the connection, the same would be asked for again on the next one.
func (c *Conn) passOver(n int) error {
	head, err := c.readBody(nil, wire.ReplyHeaderLen, wire.ReplyHeaderLen, wire.ReplyHeaderLen)
	if err != nil {
		return err
	}
	var h wire.ReplyHeader
	h.Decode(wire.NewDecoder(head))
	c.mu.Lock()
	r := c.sent.find(h.Xid)
	asked := r != nil && r.call != nil
	c.mu.Unlock()
	tooLong := fmt.Errorf("%w: %d bytes, %d are allowed", ErrTooLong, n, c.transport.cfg.MaxReply)
	if !asked {
		return fmt.Errorf("%w: %w", ErrProtocol, tooLong)
	}
	for left := n - wire.ReplyHeaderLen; left > 0; left -= min(left, readStep) {
		if err := c.expect(min(left, readStep)); err != nil {
			return err
		}
		if _, err := c.in.Discard(min(left, readStep)); err != nil {
			return fmt.Errorf("read: %w", networkError{err})
		}
	}
	return c.reply(h, nil, n, nil, tooLong, c.transport.cfg.Now())
}

// readFrame reads one frame, without its length.
func (c *Conn) readFrame(least, most int) ([]byte, error) {
	n, err := c.readLength()
	if err != nil {
		return nil, err
	}
	return c.readBody(nil, n, least, most)
}

func (c *Conn) readLength() (int, error) {
	if err := c.expect(4); err != nil {
		return 0, err
	}
	prefix, err := c.in.Peek(4)
	if err != nil {
		return 0, fmt.Errorf("read: %w", networkError{err})
	}
	n := int(int32(binary.BigEndian.Uint32(prefix)))
	_, _ = c.in.Discard(4) // cannot fail after Peek
	if !c.shake.done {
		c.shake.patience.heard()
	}
	return n, nil
}

// readBody reads into the memory given, if any, which it enlarges.
func (c *Conn) readBody(into *[]byte, n, least, most int) ([]byte, error) {
	if n < least || n > most {
		return nil, fmt.Errorf("%w: frame of %d bytes, not between %d and %d", ErrProtocol, n, least, most)
	}
	if err := c.expect(n); err != nil {
		return nil, err
	}
	if into == nil {
		into = new([]byte)
	}
	frame := (*into)[:0]
	if have := cap(frame); have < n {
		frame = make([]byte, 0, min(max(n, 2*have), readStep))
	}
	for len(frame) < n {
		if len(frame) == cap(frame) {
			frame = append(make([]byte, 0, min(n, 2*cap(frame))), frame...)
		}
		upto := min(n, cap(frame))
		if _, err := io.ReadFull(c.in, frame[len(frame):upto]); err != nil {
			return nil, fmt.Errorf("read: %w", networkError{err})
		}
		frame = frame[:upto]
	}
	*into = frame
	return frame, nil
}

// readStep is how much is read at a time of what is long: memory is not asked for
// on the server's word alone.
const readStep = 64 << 10

// expect sets the deadline for n more bytes. What has arrived needs none, and is
// read although the connection may have ended since.
func (c *Conn) expect(n int) error {
	if c.in.Buffered() >= n {
		return nil
	}
	deadline := c.shake.patience.ends
	if c.shake.done {
		deadline = time.Now().Add(time.Duration(c.silence.Load()))
	}
	if err := c.nc.SetReadDeadline(deadline); err != nil {
		return networkError{err}
	}
	return c.failure()
}

// failure is why the connection has ended, nil if it has not. It is looked at
// after a deadline was set, which may have replaced the one that shut sets.
func (c *Conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// dispatch hands a frame, and the memory it lies in if that is used again, to whom
// it belongs. It returns it, with its length, if that is go-zookeeper.
func (c *Conn) dispatch(frame []byte, in *[]byte, now time.Time) ([]byte, error) {
	var h wire.ReplyHeader
	d := wire.NewDecoder(frame)
	h.Decode(d)
	switch {
	case h.Xid == wire.XidNotification:
		var ev wire.WatcherEvent
		if ev.Decode(d); d.Err() != nil {
			return nil, fmt.Errorf("%w: notification: %w", ErrProtocol, d.Err())
		}
		c.transport.handler.Event(c, ev, max(h.Zxid, 0))
		if !c.transport.hosts.rawUsed.Load() {
			return nil, nil
		}
	case h.Xid == wire.XidPing:
		r, ok, err := c.take(h)
		if err == nil && h.Code == wire.CodeSessionClosedNeedsSASL {
			return nil, ErrNeedsIdentity
		}
		if ok && err == nil {
			c.transport.handler.Acked(c, Ack{Sent: r.sentAt, Replied: now, Op: wire.OpPing})
		}
		return nil, err
	case h.Xid&ownXid != 0 && h.Xid > 0:
		return nil, c.reply(h, frame[wire.ReplyHeaderLen:], len(frame), in, nil, now)
	default:
		if _, _, err := c.take(h); err != nil {
			return nil, err
		}
		c.sawZxid(h)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...), nil
}

func (c *Conn) take(h wire.ReplyHeader) (r request, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent.take(h)
}

// reply ends a call, with an error if the body could not be kept.
func (c *Conn) reply(h wire.ReplyHeader, body []byte, size int, in *[]byte, failure error, now time.Time) error {
	c.mu.Lock()
	r, _, err := c.sent.take(h)
	call := r.call
	if call != nil && err == nil {
		call.phase, call.took = ended, now.Sub(call.sentAt)
	}
	c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case call == nil:
		return fmt.Errorf("%w: reply to request %#x, which was not asked", ErrProtocol, h.Xid)
	}
	c.sawZxid(h)
	c.transport.Suspects.answered(call, h.Code)
	call.header, call.body, call.memory, call.err = h, body, in, failure
	write := committed(call.op, h)
	c.transport.handler.Acked(c, Ack{Sent: call.sentAt, Replied: now, Led: write || call.op == wire.OpSync && h.Code == wire.CodeOK, Write: write, Op: call.op, Size: size})
	call.end()
	if h.Code == wire.CodeSessionClosedNeedsSASL { // the server ends the connection, which says less
		return ErrNeedsIdentity
	}
	return nil
}

// sawZxid remembers how far we have seen the state. A request was taken that has a zxid.
func (c *Conn) sawZxid(h wire.ReplyHeader) {
	if h.Zxid > 0 {
		c.unused = false
		c.transport.lastZxid.raise(h.Zxid)
	}
}

// committed is whether a reply proves that the leader and a majority have
// logged something for this session. A write that was refused counts, if the
// refusal is one that the leader gives: it logs an error transaction.
func committed(op wire.Op, h wire.ReplyHeader) bool {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpDelete,
		wire.OpSetData, wire.OpSetACL, wire.OpMulti, wire.OpCloseSession:
	default:
		return false
	}
	switch h.Code {
	case wire.CodeOK, wire.CodeNoNode, wire.CodeNodeExists, wire.CodeBadVersion, wire.CodeNotEmpty,
		wire.CodeNoChildrenForEphemerals, wire.CodeNoAuth:
		return h.Zxid > 0
	}
	return false
}

// Write is go-zookeeper's. It takes one whole frame, and always succeeds. A write error
// would make go-zookeeper answer one request twice, or hang in handing out credentials. It
// deals rightly with an end of the connection that it hears of by reading.
func (c *Conn) Write(p []byte) (int, error) {
	o, err := c.checkFrame(p)
	if err != nil {
		c.Kill(err)
		return len(p), nil
	}
	c.mu.Lock()
	if c.err == nil {
		queue := &c.out
		if o.ping {
			queue = &c.first
		}
		*queue = append(*queue, o)
	}
	c.mu.Unlock()
	c.Wake()
	return len(p), nil
}

// checkFrame takes a copy of a frame of go-zookeeper's.
func (c *Conn) checkFrame(p []byte) (outgoing, error) {
	if len(p) < 12 || int(binary.BigEndian.Uint32(p)) != len(p)-4 {
		return outgoing{}, fmt.Errorf("%w: go-zookeeper wrote %d bytes that are not one frame", ErrProtocol, len(p))
	}
	if !c.shake.asked {
		frame, err := c.connectRequest(p[4:])
		return outgoing{frame: frame}, err
	}
	var h wire.RequestHeader
	h.Decode(wire.NewDecoder(p[4:]))
	o := outgoing{frame: append([]byte(nil), p...), ping: h.Op == wire.OpPing, xid: h.Xid}
	if h.Op == wire.OpAuth { // servers answer it at once
		o.xid = 0
	}
	return o, nil
}

// Close is go-zookeeper's.
func (c *Conn) Close() error {
	c.Kill(net.ErrClosed)
	return nil
}

// Kill ends the connection for the reason given, unless it has one already.
// What follows from it, such as Handler.Down, is done by finish: in the goroutine
// that reads, after what it is dealing with, if there is one.
func (c *Conn) Kill(cause error) { c.end(cause, false) }

// end is Kill, if asked only while no request waits or is on its way. It returns whether it
// was so.
func (c *Conn) end(err error, idle bool) bool {
	c.mu.Lock()
	if idle && len(c.first)+len(c.out)+len(c.sent.all()) > 0 {
		c.mu.Unlock()
		return false
	}
	first := c.err == nil
	if first {
		c.err = err
	}
	reading := c.reading
	c.mu.Unlock()
	if first {
		c.transport.wg.Go(c.shut)
	}
	if !reading {
		c.finish()
	}
	return true
}

// shut closes the socket. That has a goroutine of its own, as Close of a
// connection that a user has made may block, and that of TLS writes. A deadline
// that has passed ends reading and writing meanwhile. The errors of a socket that is
// given up tell nothing new.
func (c *Conn) shut() {
	_ = c.nc.SetDeadline(time.Unix(1, 0))
	_ = c.nc.Close()
}

// finish ends every call and says that the connection is down, once.
func (c *Conn) finish() {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.over = true
	lost := make([]*Call, 0, len(c.sent.all())+len(c.out))
	for _, r := range c.sent.all() { // as they were sent
		if r.call != nil {
			r.call.err = &LostError{Sent: true, Cause: c.err}
			lost = append(lost, r.call)
		}
	}
	for _, o := range append(c.first, c.out...) {
		if o.call != nil && o.call.phase == queued {
			o.call.err = &LostError{Cause: c.err}
			lost = append(lost, o.call)
		}
	}
	for _, call := range lost {
		call.phase = ended
	}
	c.sent, c.first, c.out = unanswered{}, nil, nil
	wasUp, err := c.up, c.err
	c.mu.Unlock()

	ours := wasUp && c.transport.Suspects.ended(lost, c.forgets, err)
	// The end of the connection is told before the ends of its calls, so that
	// who hears of the one does not take the other for a live connection.
	c.transport.connDown(c, wasUp, ours, err)
	for _, call := range lost {
		call.end()
	}
	if c.source != nil {
		c.source.End(err)
	}
	c.endLife()
}

// LocalAddr is go-zookeeper's, as are the methods below. It sets deadlines
// that fit its own frames only; ours are set around each read and write.
func (c *Conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }
