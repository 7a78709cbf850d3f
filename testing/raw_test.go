package zktest_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// client speaks the protocol and nothing more.
type client struct {
	t        testing.TB
	nc       net.Conn
	r        *bufio.Reader
	xid      int32
	zxid     int64 // of the reply read last
	session  int64
	password []byte
	events   []wire.WatcherEvent
}

var open = []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}

// dial opens a connection without a session.
func dial(t testing.TB, srv *zktest.Server) *client {
	t.Helper()
	nc, err := srv.DialContext(context.Background(), "tcp", srv.ConnectString())
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	return &client{t: t, nc: nc, r: bufio.NewReader(nc)}
}

// begin opens a session.
func begin(t testing.TB, srv *zktest.Server, timeout time.Duration) *client {
	t.Helper()
	c := dial(t, srv)
	require.NoError(t, c.hello(timeout, 0, nil))
	return c
}

// again takes the session of c up on a new connection.
func (c *client) again(srv *zktest.Server) (*client, error) {
	c.t.Helper()
	next := dial(c.t, srv)
	return next, next.hello(10*time.Second, c.session, c.password)
}

// hello makes the handshake. The error is that of the connection; a session
// that is gone leaves session 0.
func (c *client) hello(timeout time.Duration, session int64, password []byte) error {
	c.t.Helper()
	if password == nil {
		password = make([]byte, 16)
	}
	c.write(&wire.ConnectRequest{Timeout: int32(timeout.Milliseconds()), SessionID: session, Password: password, HasReadOnly: true})
	frame, err := c.read()
	if err != nil {
		return err
	}
	var res wire.ConnectResponse
	d := wire.NewDecoder(frame)
	res.Decode(d)
	require.NoError(c.t, d.Err())
	c.session, c.password = res.SessionID, append([]byte(nil), res.Password...)
	return nil
}

func (c *client) write(records ...wire.Record) {
	_, _ = c.nc.Write(wire.AppendFrame(nil, records...)) // if it fails, so does the next read
}

func (c *client) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c.r, frame)
	return frame, err
}

// send sends a request and returns its xid.
func (c *client) send(op wire.Op, req wire.Record) int32 {
	c.xid++
	c.write(&wire.RequestHeader{Xid: c.xid, Op: op}, req)
	return c.xid
}

// receive waits for the reply to a request and keeps the events before it.
func (c *client) receive(xid int32, res wire.Record) (wire.Code, error) {
	c.t.Helper()
	for {
		frame, err := c.read()
		if err != nil {
			return 0, err
		}
		var h wire.ReplyHeader
		d := wire.NewDecoder(frame)
		h.Decode(d)
		switch {
		case h.Xid == wire.XidNotification:
			var ev wire.WatcherEvent
			ev.Decode(d)
			require.NoError(c.t, d.Err())
			c.events = append(c.events, ev)
			continue
		case h.Xid == wire.XidPing:
			continue
		case h.Xid != xid:
			require.Equal(c.t, xid, h.Xid)
		case h.Code == 0 && res != nil:
			res.Decode(d)
		}
		require.NoError(c.t, d.Err())
		c.zxid = h.Zxid
		return h.Code, nil
	}
}

// call is send and receive.
func (c *client) call(op wire.Op, req, res wire.Record) (wire.Code, error) {
	c.t.Helper()
	return c.receive(c.send(op, req), res)
}

// must is call with nothing going wrong.
func (c *client) must(op wire.Op, req, res wire.Record) {
	c.t.Helper()
	code, err := c.call(op, req, res)
	require.NoError(c.t, err)
	require.Equal(c.t, wire.CodeOK, code, "%v %+v", op, req)
}

// create makes a node and returns its path.
func (c *client) create(path string, flags wire.Flags) string {
	c.t.Helper()
	var res wire.CreateResponse
	c.must(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: open, Flags: flags}, &res)
	return res.Path
}

func (c *client) exists(path string) bool {
	c.t.Helper()
	code, err := c.call(wire.OpExists, &wire.PathWatchRequest{Path: path}, nil)
	require.NoError(c.t, err)
	return code == wire.CodeOK
}

func newReader(nc net.Conn) *bufio.Reader { return bufio.NewReader(nc) }

func watch(path string) *wire.PathWatchRequest {
	return &wire.PathWatchRequest{Path: path, Watch: true}
}

// fakeTB is a test that may fail.
type fakeTB struct {
	testing.TB
	errors   []string
	cleanups []func()
	fails    bool
	logs     []string
}
