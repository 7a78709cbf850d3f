// Package memnet makes connections in memory that behave like TCP: bytes are
// buffered, arrive in order, and may take a while on their way.
//
// Its methods wait on channels and timers only, so the connections work inside
// a testing/synctest bubble. A wait on a mutex or on a socket would stop the
// bubble's clock. Both ends must stay in the bubble that made them.
package memnet

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Addr is the name of one end.
type Addr string

// Network returns "mem".
func (Addr) Network() string { return "mem" }

func (a Addr) String() string { return string(a) }

// Conn is one end of a connection. It implements net.Conn.
type Conn struct {
	in, out       *stream
	local, remote Addr

	readBy, writeBy *deadline
	closed          chan struct{}
	closing         sync.Once
}

// Pipe returns the two ends of a new connection. Bytes that one end writes, and
// its Close, reach the other end after a latency. For each write from a to b
// Pipe calls to for the latency, and for the other way back. A nil function
// means no latency.
func Pipe(a, b Addr, to, back func() time.Duration) (*Conn, *Conn) {
	ab, ba := newStream(to), newStream(back)
	return newConn(ba, ab, a, b), newConn(ab, ba, b, a)
}

func newConn(in, out *stream, local, remote Addr) *Conn {
	return &Conn{
		in: in, out: out, local: local, remote: remote,
		readBy: newDeadline(), writeBy: newDeadline(), closed: make(chan struct{}),
	}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	for {
		if err := c.over(c.readBy); err != nil {
			return 0, c.fail("read", err)
		}
		n, arrival, err := c.in.read(p)
		if err != nil {
			return 0, err // io.EOF goes out bare, as from TCP
		}
		if n > 0 || len(p) == 0 {
			return n, nil
		}
		c.wait(c.in.readable, c.readBy, arrival)
	}
}

// Write implements net.Conn. It waits while the other end leaves too much unread.
func (c *Conn) Write(p []byte) (int, error) {
	written := 0
	for {
		if err := c.over(c.writeBy); err != nil {
			return written, c.fail("write", err)
		}
		n, err := c.out.write(p[written:])
		if err != nil {
			return written, c.fail("write", err)
		}
		if written += n; written == len(p) {
			return written, nil
		}
		c.wait(c.out.writable, c.writeBy, time.Time{})
	}
}

// over says why a call may not go on.
func (c *Conn) over(d *deadline) error {
	select {
	case <-c.closed:
		return net.ErrClosed
	case <-d.passed():
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}

// wait returns when a call should look again: it was woken, the connection was
// closed, the deadline has passed, or bytes arrive.
func (c *Conn) wait(woken <-chan struct{}, d *deadline, arrival time.Time) {
	var timeup <-chan time.Time
	if !arrival.IsZero() {
		timer := time.NewTimer(time.Until(arrival))
		defer timer.Stop()
		timeup = timer.C
	}
	select {
	case <-woken:
	case <-timeup:
	case <-c.closed:
	case <-d.passed():
	}
}

func (c *Conn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// Close implements net.Conn: what was written still arrives, then io.EOF.
func (c *Conn) Close() error { return c.close(nil) }

// Reset closes the connection so that the other end's reads fail with
// syscall.ECONNRESET after what was written.
func (c *Conn) Reset() error { return c.close(os.NewSyscallError("read", syscall.ECONNRESET)) }

func (c *Conn) close(reason error) error {
	err := net.ErrClosed
	c.closing.Do(func() {
		err = nil
		close(c.closed)
		c.readBy.stop()
		c.writeBy.stop()
		if reason != nil {
			reason = &net.OpError{Op: "read", Net: c.local.Network(), Source: c.remote, Addr: c.local, Err: reason}
		}
		c.out.finish(reason)
		c.in.abandon()
	})
	return err
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	c.readBy.set(t)
	c.writeBy.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.readBy.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writeBy.set(t)
	return nil
}
