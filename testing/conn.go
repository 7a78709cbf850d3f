package zktest

import (
	"bufio"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/memnet"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// conn is one client's connection. A reading goroutine handles its requests in
// order; a writing goroutine sends what is in the queue.
//
// It ends in one of two ways. A connection that is finished sends what is
// queued and closes. One that is cut resets at once. Both are over before that:
// nothing more is handled or queued.
type conn struct {
	m     *member
	raw   net.Conn // what was accepted
	nc    net.Conn // raw, or TLS over it
	num   uint64   // connections are numbered as they come; events go out in this order
	queue queue
	cut   chan struct{} // closed when the connection is to be reset
	ended chan struct{} // closed when both goroutines have ended

	// guarded by ensemble.mu
	session      *session // nil before the handshake
	readOnlyByte bool     // the client knows the last byte of the connect response
	ids          []tree.ID
	sasl         saslExchange
	over         chan struct{} // closed when the connection is over
	mute         bool          // the answer being made is not sent: a fault wants the connection cut instead
	dropped      []int32       // the requests whose replies are left out
	part         int           // if not 0: so much of the next reply is sent, and nothing more
	claimed      int64         // the session that the client asks for, 0 if none or a new one
	calling      bool          // a function of the test's is running on the reading goroutine
	waiting      int           // proposals without an answer
	settled      chan struct{} // closed at the next answer; nil if nobody waits for it
	accepted     time.Time
	received     int64 // frames
	sent         int64
	lastOp       string // the request that came last, in four letters
	lastXid      int32
	lastZxid     int64
	lastSent     time.Time
}

// acceptLocked begins to serve a connection.
func (m *member) acceptLocked(raw, nc net.Conn) {
	m.e.conns++
	c := &conn{
		m:     m,
		raw:   raw,
		nc:    nc,
		num:   m.e.conns,
		queue: queue{wake: make(chan struct{}, 1)},
		cut:   make(chan struct{}),
		ended: make(chan struct{}),
		ids:   []tree.ID{{Scheme: "ip", ID: host(raw.RemoteAddr())}},
		over:  make(chan struct{}),

		accepted: time.Now(),
		lastOp:   "NA",
	}
	m.conns[c] = struct{}{}
	go c.serve()
}

func host(a net.Addr) string {
	h, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return h
}

// serve is the reading goroutine.
func (c *conn) serve() {
	var writing sync.WaitGroup
	writing.Go(c.write)
	c.read()
	c.m.e.mu.Lock()
	c.finishLocked()
	c.m.e.mu.Unlock()
	writing.Wait()

	c.m.e.mu.Lock()
	defer c.m.e.mu.Unlock()
	delete(c.m.conns, c)
	close(c.ended)
}

// read handles frames until there are no more.
func (c *conn) read() {
	r := frameReader{r: bufio.NewReader(c.nc), max: c.m.e.cfg.maxFrame}
	_ = c.nc.SetReadDeadline(time.Now().Add(c.m.e.cfg.limits.Handshake))
	if c.command(r.r) {
		return
	}
	frame, err := r.next()
	if err != nil || c.handshake(frame) != nil {
		return
	}
	_ = c.nc.SetReadDeadline(time.Time{})
	for {
		frame, err := r.next()
		if err != nil || c.handle(frame) != nil {
			return
		}
	}
}

// write is the writing goroutine.
func (c *conn) write() {
	var spare []byte
	for range c.queue.wake {
		if !c.thawed() {
			return
		}
		buf, last := c.queue.take(spare)
		if len(buf) > 0 {
			if _, err := c.nc.Write(buf); err != nil {
				last = true
			}
		}
		if last {
			_ = c.nc.Close()
			return
		}
		if spare = buf; cap(spare) > keepBuffer {
			spare = nil
		}
	}
}

// thawed waits until bytes may go to the client. It returns false if the
// connection was cut; who cuts it closes it.
func (c *conn) thawed() bool {
	for {
		select {
		case <-c.cut:
			return false
		default:
		}
		c.m.e.mu.Lock()
		held := c.heldLocked(ToClient)
		c.m.e.mu.Unlock()
		if held == nil {
			return true
		}
		select {
		case <-held:
		case <-c.cut:
			return false
		}
	}
}

// errOver ends a connection's reading goroutine.
var errOver = errors.New("connection is over")

// enter takes the ensemble's lock to handle a frame. With an error the
// connection is over and the lock is not held.
func (c *conn) enter() error {
	for {
		c.m.e.mu.Lock()
		held := c.heldLocked(FromClient)
		switch {
		case c.isOverLocked():
			c.m.e.mu.Unlock()
			return errOver
		case held == nil:
			return nil
		}
		c.m.e.mu.Unlock()
		select {
		case <-held:
			c.queueUp()
		case <-c.over:
		}
	}
}

// queueUp gives connections that go on at one instant an order that repeats.
// LatencyBy does this for everything else.
func (c *conn) queueUp() {
	if c.m.e.cfg.latencyBy != nil {
		<-time.After(time.Duration(c.num))
	}
}

func (c *conn) isOverLocked() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// finishLocked ends the connection once everything queued is sent.
func (c *conn) finishLocked() {
	c.endLocked()
	c.queue.finish()
}

// cutLocked ends the connection at once. The caller has to call reset after it
// has unlocked.
func (c *conn) cutLocked() {
	c.endLocked()
	select {
	case <-c.cut:
	default:
		close(c.cut)
	}
	c.queue.finish() // after cut, so that the writing goroutine sees it
}

// endLocked separates the connection from its session and watches.
func (c *conn) endLocked() {
	if c.isOverLocked() {
		return
	}
	close(c.over)
	c.sayLocked("# end")
	c.m.watches.dropLocked(c)
	if s := c.session; s != nil {
		if s.conn == c {
			s.conn = nil
		}
		if c.m.attached[s.id] == c {
			delete(c.m.attached, s.id)
		}
	}
	c.m.e.wakeWaitersLocked()
}

// reset closes the socket so that the client sees a reset.
func (c *conn) reset() {
	switch raw := c.raw.(type) {
	case *net.TCPConn:
		_ = raw.SetLinger(0)
		_ = raw.Close()
	case *memnet.Conn:
		_ = raw.Reset()
	}
}

func resetAll(conns []*conn) {
	for _, c := range conns {
		c.reset()
	}
}

// callerLocked is who the connection's client is.
func (c *conn) callerLocked() tree.Caller {
	return tree.Caller{Session: c.session.id, IDs: c.ids}
}

// replyLocked queues an answer.
func (c *conn) replyLocked(xid int32, code wire.Code, body wire.Record) {
	c.replyAtLocked(xid, c.m.applied, code, body)
}

// replyAtLocked is replyLocked with another zxid than that of the replica.
func (c *conn) replyAtLocked(xid int32, zxid int64, code wire.Code, body wire.Record) {
	if i := slices.Index(c.dropped, xid); i >= 0 {
		c.dropped = slices.Delete(c.dropped, i, i+1)
		return
	}
	if c.part > 0 && xid >= 0 {
		c.queue.addPart(c.part, &wire.ReplyHeader{Xid: xid, Zxid: zxid, Code: code}, body)
		c.finishLocked()
		return
	}
	if !c.mute {
		c.lastXid, c.lastZxid = xid, zxid
		c.sendLocked(&wire.ReplyHeader{Xid: xid, Zxid: zxid, Code: code}, body)
	}
}

// sendLocked queues a frame. A client that leaves too much unread is cut off.
func (c *conn) sendLocked(records ...wire.Record) {
	if c.isOverLocked() {
		return
	}
	c.sayFrameLocked(records)
	n, waiting := c.queue.add(records...)
	c.sent++
	c.m.sent++
	c.m.bytesSent += int64(n)
	c.lastSent = time.Now()
	if waiting <= c.m.e.cfg.limits.Unsent {
		return
	}
	c.finishLocked()
	_ = c.nc.SetWriteDeadline(time.Unix(1, 0)) // the write that hangs fails now
}
