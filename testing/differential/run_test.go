package differential

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// superDigest belongs to the password "secret".
const superDigest = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="

// run is one script on one server.
type run struct {
	t     *testing.T
	addr  string
	root  string // a node of this script's own; "$" in the transcript
	out   strings.Builder
	base  int64 // the zxid when the script began
	names map[int64]string
	// ending is set while a session ends: a real server deletes its nodes in
	// the order of a hash table, so the events of one client are sorted.
	ending   bool
	unsorted bool  // lists are shown as they came
	timeout  int32 // of sessions, in milliseconds
	conns    []*conn
	sessions map[int64][]byte    // with their passwords
	expire   func(session int64) // ends a session as its timeout would; nil where one has to wait
}

// transcript runs a script and returns what was said.
func transcript(t *testing.T, addr, root string, expire func(session int64), script func(*run)) string {
	t.Helper()
	r := &run{t: t, addr: addr, root: root, expire: expire, timeout: 10000, names: make(map[int64]string), sessions: make(map[int64][]byte)}
	setup := r.connect("setup")
	setup.exchange(wire.OpCreate, &wire.CreateRequest{Path: root, ACL: open})
	r.base = setup.zxid
	setup.close()
	r.base++ // the end of the session
	r.out.Reset()
	r.conns = nil
	script(r)
	out := strings.ReplaceAll(r.out.String(), root, "$")
	for id, password := range r.sessions { // all of them, or they would expire in another script's time
		c := r.dial("end")
		c.hello(wire.ConnectRequest{Timeout: 10000, SessionID: id, Password: password})
		c.close()
	}
	return out
}

// onZktest runs a script on a fresh server of ours.
func onZktest(t *testing.T, version string, v variant, script func(*run)) string {
	t.Helper()
	srv := zktest.Start(t, append(v.options(), zktest.Version(version))...)
	expire := func(session int64) { require.NoError(t, srv.ExpireSession(session)) }
	return transcript(t, srv.ConnectString(), "/case", expire, script)
}

func (r *run) printf(format string, args ...any) { fmt.Fprintf(&r.out, format+"\n", args...) }

// at is a path of the script's own.
func (r *run) at(path string) string { return r.root + path }

// note puts a comment into the transcript.
func (r *run) note(text string) { r.printf("# %s", text) }

// conn is one raw connection.
type conn struct {
	r        *run
	name     string
	nc       net.Conn
	br       *bufio.Reader
	xid      int32
	zxid     int64 // in the header read last
	session  int64
	password []byte
	over     bool
	held     []string // events to be sorted
	events   int
	ending   bool // the answer read last ends the connection
}

var open = []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}

// dial opens a connection without a session.
func (r *run) dial(name string) *conn {
	r.t.Helper()
	nc, err := new(net.Dialer).DialContext(r.t.Context(), "tcp", r.addr)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { nc.Close() })
	require.NoError(r.t, nc.SetDeadline(time.Now().Add(20*time.Second)))
	c := &conn{r: r, name: name, nc: nc, br: bufio.NewReader(nc)}
	r.conns = append(r.conns, c)
	return c
}

// connect opens a session, of ten seconds unless the script says otherwise.
func (r *run) connect(name string) *conn {
	r.t.Helper()
	c := r.dial(name)
	c.hello(wire.ConnectRequest{Timeout: r.timeout, Password: make([]byte, 16), HasReadOnly: true})
	return c
}

// hello sends a connect request and shows the answer.
func (c *conn) hello(req wire.ConnectRequest) {
	c.r.t.Helper()
	c.r.printf("%s> connect timeout=%d session=%s%s", c.name, req.Timeout, c.r.owner(req.SessionID), ahead(req.LastZxidSeen))
	c.write(wire.AppendFrame(nil, &req))
	frame, err := c.read()
	if err != nil {
		c.closed()
		return
	}
	var res wire.ConnectResponse
	d := wire.NewDecoder(frame)
	res.Decode(d)
	require.NoError(c.r.t, d.Err())
	c.session, c.password = res.SessionID, slices.Clone(res.Password)
	if res.SessionID != 0 {
		c.r.sessions[res.SessionID] = c.password
	}
	if res.SessionID != 0 && c.r.names[res.SessionID] == "" {
		c.r.names[res.SessionID] = fmt.Sprintf("s%d", len(c.r.names)+1)
	}
	c.r.printf("%s< timeout=%d session=%s password=%d bytes, zero %t, readOnly=%t/%t left=%d", c.name, res.Timeout,
		c.r.owner(res.SessionID), len(res.Password), !slices.ContainsFunc(res.Password, func(b byte) bool { return b != 0 }),
		res.ReadOnly, res.HasReadOnly, d.Len())
	if res.SessionID == 0 {
		if _, err := c.read(); err != nil {
			c.closed()
		}
	}
}

func ahead(zxid int64) string {
	if zxid == 0 {
		return ""
	}
	return " lastZxid=set"
}

// again opens another connection for c's session.
func (c *conn) again(name string) *conn {
	c.r.t.Helper()
	next := c.r.dial(name)
	next.hello(wire.ConnectRequest{Timeout: c.r.timeout, SessionID: c.session, Password: c.password, HasReadOnly: true})
	return next
}

// do sends a request and shows everything that comes back, here and then on
// the other connections.
func (c *conn) do(op wire.Op, req wire.Record) {
	c.r.t.Helper()
	c.r.printf("%s> %v %s", c.name, op, c.r.text(req))
	var e wire.Encoder
	req.Encode(&e)
	c.exchangeRaw(op, e.B)
	c.others()
}

// doRaw is do with a body of any bytes.
func (c *conn) doRaw(op wire.Op, what string, body []byte) {
	c.r.t.Helper()
	c.r.printf("%s> %v %s", c.name, op, what)
	c.exchangeRaw(op, body)
	c.others()
}

// last sends a request without a body, after which the server is to close the connection.
func (c *conn) last(op wire.Op) {
	c.r.t.Helper()
	c.r.printf("%s> %v", c.name, op)
	c.xid++
	c.r.ending = op == wire.OpCloseSession
	c.write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: c.xid, Op: op}))
	for {
		frame, err := c.read()
		if err != nil {
			break
		}
		c.show(frame, c.xid, op)
	}
	c.closed()
	c.others()
	c.r.ending = false
}

func (c *conn) others() {
	for _, o := range c.r.conns {
		if o != c && !o.over && o.session != 0 {
			o.exchangeRaw(wire.OpPing, nil)
		}
	}
}

// exchange is do without showing the request.
func (c *conn) exchange(op wire.Op, req wire.Record) {
	var e wire.Encoder
	req.Encode(&e)
	c.exchangeRaw(op, e.B)
}

// exchangeRaw sends a request with a ping behind it, so that the end of the
// answer is known even where there is none.
func (c *conn) exchangeRaw(op wire.Op, body []byte) {
	c.r.t.Helper()
	c.xid++
	h := wire.RequestHeader{Xid: c.xid, Op: op}
	switch op {
	case wire.OpAuth:
		h.Xid = wire.XidAuth
	case wire.OpSetWatches, wire.OpSetWatches2:
		h.Xid = wire.XidSetWatches
	}
	var b []byte
	if op != wire.OpPing {
		b = wire.AppendFrame(nil, &h, raw(body))
	}
	ping := wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing}
	c.write(wire.AppendFrame(b, &ping))
	for {
		frame, err := c.read()
		if err != nil {
			c.closed()
			return
		}
		if c.show(frame, h.Xid, op) == wire.XidPing && !c.ending {
			return
		}
	}
}

// show prints a reply or an event and returns its xid.
func (c *conn) show(frame []byte, xid int32, op wire.Op) int32 {
	c.r.t.Helper()
	d := wire.NewDecoder(frame)
	var h wire.ReplyHeader
	h.Decode(d)
	require.NoError(c.r.t, d.Err())
	if h.Xid != wire.XidNotification {
		c.release()
	}
	switch h.Xid {
	case wire.XidPing:
		if !c.ending { // or it depends on chance whether it is answered
			c.zxid = h.Zxid
		}
	case wire.XidNotification:
		var ev wire.WatcherEvent
		ev.Decode(d)
		require.NoError(c.r.t, d.Err())
		c.events++
		line := fmt.Sprintf("%s! %v state=%d %s zxid=%s code=%d left=%d", c.name, ev.Type, ev.State, quoteOdd(ev.Path), c.r.zxid(h.Zxid), h.Code, d.Len())
		if c.r.ending {
			c.held = append(c.held, line)
		} else {
			c.r.printf("%s", line)
		}
	default:
		c.zxid = h.Zxid
		c.ending = h.Zxid == -1
		other := ""
		if h.Xid != xid {
			other = fmt.Sprintf(" xid=%d", h.Xid)
		}
		c.r.printf("%s<%s %s %v %s", c.name, other, c.r.zxid(h.Zxid), h.Code, c.r.reply(op, d))
	}
	return h.Xid
}

// quoteOdd quotes a path that is not printed as it is.
func quoteOdd(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}

// hear waits until the connection has had so many events in all, and shows them.
func (c *conn) hear(events int) {
	c.r.t.Helper()
	for c.events < events {
		frame, err := c.read()
		require.NoError(c.r.t, err)
		require.Equal(c.r.t, wire.XidNotification, c.show(frame, 0, 0))
	}
}

// raw is a body that is encoded already.
type raw []byte

func (r raw) Encode(e *wire.Encoder) { e.B = append(e.B, r...) }
func (r raw) Decode(*wire.Decoder)   {}

// send writes bytes that need not be a frame, and shows what comes back.
func (c *conn) send(what string, b []byte) {
	c.r.t.Helper()
	c.r.printf("%s> %s", c.name, what)
	c.write(b)
	if c.session != 0 {
		c.exchangeRaw(wire.OpPing, nil)
		c.others()
		return
	}
	if _, err := c.read(); err != nil {
		c.closed()
		return
	}
	c.r.printf("%s< something", c.name)
}

func (c *conn) write(b []byte) {
	_, _ = c.nc.Write(b) // if that fails, so does the read
}

func (c *conn) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.br, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c.br, b)
	return b, err
}

// release prints the events that were held back, sorted.
func (c *conn) release() {
	slices.Sort(c.held)
	for _, line := range c.held {
		c.r.printf("%s", line)
	}
	c.held = nil
}

func (c *conn) closed() {
	c.over = true
	c.release()
	c.r.printf("%s: closed", c.name)
}

// lapse lets the session expire: the client stays silent until the server closes the connection. A
// real server has a clock for silent connections (each ten seconds) and one for sessions (each tick).
// Where both come at once, the connection may end shortly before the session does.
func (c *conn) lapse() {
	c.r.t.Helper()
	if c.r.expire != nil {
		c.r.expire(c.session)
	}
	for {
		frame, err := c.read()
		if err != nil {
			break
		}
		c.show(frame, 0, 0)
	}
	c.closed()
	if c.r.expire == nil {
		time.Sleep(time.Second) //nolint:forbidigo // nothing tells when a real server ends a session
	}
	c.others()
}

// close ends the session.
func (c *conn) close() {
	if c.over {
		return
	}
	c.over = true
	if c.session != 0 {
		c.write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: 1 << 20, Op: wire.OpCloseSession}))
		for {
			if _, err := c.read(); err != nil {
				if errors.Is(err, net.ErrClosed) || !errors.Is(err, io.EOF) {
					c.r.t.Logf("close %s: %v", c.name, err)
				}
				break
			}
		}
	}
	c.nc.Close()
}

// drop closes the connection, leaves the session and waits until the server has
// noticed. A real server that is about to forget a connection when the session
// comes back forgets the new connection in its place. It would then not close the
// new one when the session moves on (NIOServerCnxnFactory.removeCnxn goes by the
// session).
func (c *conn) drop() {
	c.r.t.Helper()
	c.over = true
	require.NoError(c.r.t, c.nc.(*net.TCPConn).CloseWrite())
	for {
		if _, err := c.read(); err != nil {
			break
		}
	}
	c.nc.Close()
}

// replies has the body of each successful reply that has one.
var replies = map[wire.Op]wire.Record{
	wire.OpCreate:               &wire.CreateResponse{},
	wire.OpCreate2:              &wire.Create2Response{},
	wire.OpCreateContainer:      &wire.Create2Response{},
	wire.OpCreateTTL:            &wire.Create2Response{},
	wire.OpExists:               &wire.StatResponse{},
	wire.OpGetData:              &wire.GetDataResponse{},
	wire.OpSetData:              &wire.StatResponse{},
	wire.OpGetACL:               &wire.GetACLResponse{},
	wire.OpSetACL:               &wire.StatResponse{},
	wire.OpGetChildren:          &wire.GetChildrenResponse{},
	wire.OpGetChildren2:         &wire.GetChildren2Response{},
	wire.OpSync:                 &wire.PathResponse{},
	wire.OpCheck:                &wire.StatResponse{},
	wire.OpMulti:                &wire.MultiResponse{},
	wire.OpMultiRead:            &wire.MultiResponse{},
	wire.OpGetEphemerals:        &wire.GetEphemeralsResponse{},
	wire.OpGetAllChildrenNumber: &wire.GetAllChildrenNumberResponse{},
	wire.OpWhoAmI:               &wire.WhoAmIResponse{},
	wire.OpAddWatch:             &wire.ErrorResponse{},
	wire.OpSASL:                 &wire.SASLResponse{},
}

// reply shows what is behind a header.
func (r *run) reply(op wire.Op, d *wire.Decoder) string {
	if d.Len() == 0 {
		return "-"
	}
	rec, ok := replies[op]
	if !ok {
		return fmt.Sprintf("%d bytes", d.Len())
	}
	rec = reflect.New(reflect.TypeOf(rec).Elem()).Interface().(wire.Record)
	rec.Decode(d)
	if d.Err() != nil {
		return d.Err().Error()
	}
	text := r.text(rec)
	if d.Len() > 0 {
		text += fmt.Sprintf(" left=%d", d.Len())
	}
	return text
}
