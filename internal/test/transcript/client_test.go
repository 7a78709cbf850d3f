package transcript

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
)

// client is one client and what its connections have written and read.
type client struct {
	*framework.Client
	name  string
	begun time.Time
	slow  time.Duration // it sees what arrives so much later
	conn  int           // of which the server's transcript speaks

	mu     sync.Mutex // guards the fields below
	frames []*frame
}

// frame is one request as it left the client, or a reply or an event as it came.
type frame struct {
	at       time.Duration
	conn     int // from 1
	received bool
	nth      int // of the client
	bytes    int // without the four of the length
	xid      int32
	op       int32 // of a request
	said     bool  // the server has put it into words
}

// ops are the operations that can be lost on their way to the server.
var ops = map[int32]string{
	2: "delete", 3: "exists", 4: "getData", 8: "getChildren", 11: "ping", 12: "getChildren2", 14: "multi", 15: "create2", 18: "removeWatches", 22: "multiRead",
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// recording is dial with connections that record what passes. opened numbers them.
func (c *client) recording(dial dialFunc, opened func() int) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		n := opened()
		return &conn{Conn: nc, client: c, out: stream{conn: n}, in: stream{conn: n, received: true}}, nil
	}
}

// conn records what passes. One goroutine at a time writes, and one reads.
type conn struct {
	net.Conn
	client  *client
	in, out stream
}

// stream is one way of a connection.
type stream struct {
	conn     int
	received bool
	greeted  bool   // the first frame, which has no header, has passed
	rest     []byte // a frame that is not whole yet
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	c.client.record(&c.out, p)
	return c.Conn.Write(p)
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.client.slow > 0 {
		<-time.After(c.client.slow)
	}
	c.client.record(&c.in, p[:n])
	return n, err
}

// record takes in what is written or read at once.
func (c *client) record(s *stream, p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.rest = append(s.rest, p...)
	const length, header = 4, 8
	for len(s.rest) >= length+header {
		size := int(binary.BigEndian.Uint32(s.rest))
		if len(s.rest) < length+size {
			return
		}
		f := &frame{at: time.Since(c.begun), conn: s.conn, received: s.received, nth: len(c.frames), bytes: size}
		if s.greeted {
			f.xid, f.op = int32(binary.BigEndian.Uint32(s.rest[4:])), int32(binary.BigEndian.Uint32(s.rest[8:]))
		}
		s.greeted = true
		c.frames = append(c.frames, f)
		s.rest = s.rest[length+size:]
	}
}

// find is the first frame that was not found before of a connection, a direction
// and an id, or nil.
func (c *client) find(conn int, received bool, xid int32) *frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.frames {
		if !f.said && f.conn == conn && f.received == received && f.xid == xid {
			f.said = true
			return f
		}
	}
	return nil
}

// unsaid are the requests that were not found.
func (c *client) unsaid() (all []*frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.frames {
		if !f.said && !f.received {
			all = append(all, f)
		}
	}
	return all
}
