package faultnet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/sasl"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// within runs a test in virtual time, with a server and a network before it.
func within(t *testing.T, fn func(t *testing.T, srv *zktest.Server, n *Net)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		n := New(srv.DialContext)
		defer n.Close()
		fn(t, srv, n)
	})
}

// talker is a client that speaks the protocol and nothing more.
type talker struct {
	t       *testing.T
	nc      net.Conn
	session int64
	xid     int32
}

// connect opens a session through the network.
func connect(t *testing.T, srv *zktest.Server, n *Net) *talker {
	t.Helper()
	nc, err := n.DialContext(t.Context(), "tcp", srv.ConnectString())
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	c := &talker{t: t, nc: nc}
	_, err = nc.Write(wire.AppendFrame(nil, &wire.ConnectRequest{Timeout: 10_000, Password: make([]byte, 16), HasReadOnly: true}))
	require.NoError(t, err)
	frame, err := readFrame(nc)
	require.NoError(t, err)
	var r wire.ConnectResponse
	r.Decode(wire.NewDecoder(frame[4:]))
	require.NotZero(t, r.SessionID)
	c.session = r.SessionID
	return c
}

// send sends a request and returns its number.
func (c *talker) send(op wire.Op, body wire.Record) int32 {
	c.xid++
	_, _ = c.nc.Write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: c.xid, Op: op}, body))
	return c.xid
}

// reply reads the header of the next reply.
func (c *talker) reply() (wire.ReplyHeader, error) {
	var h wire.ReplyHeader
	frame, err := readFrame(c.nc)
	if err == nil {
		h.Decode(wire.NewDecoder(frame[4:]))
	}
	return h, err
}

// create makes a node; the error is that of the connection.
func (c *talker) create(path string) error {
	c.t.Helper()
	xid := c.send(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}})
	h, err := c.reply()
	if err == nil {
		assert.Equal(c.t, xid, h.Xid)
		assert.Equal(c.t, wire.CodeOK, h.Code)
	}
	return err
}

func (c *talker) exists(path string) bool {
	c.t.Helper()
	c.send(wire.OpExists, &wire.PathWatchRequest{Path: path})
	h, err := c.reply()
	require.NoError(c.t, err)
	return h.Code == wire.CodeOK
}

func fired(r *Rule) bool {
	select {
	case <-r.Fired:
		return true
	default:
		return false
	}
}

func TestWithoutFaultsEverythingPasses(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		c := connect(t, srv, n)
		require.NoError(t, c.create("/a"))
		assert.True(t, c.exists("/a"))
		assert.False(t, c.exists("/b"))
		assert.Equal(t, map[wire.Op]int{wire.OpCreate: 1, wire.OpExists: 2}, n.Requests(), "without the handshake")
	})
}

// What takes longer holds up what comes behind it, and requests that are on their
// way together are late together.
func TestDelay(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		const trip, write = 40 * time.Millisecond, 100 * time.Millisecond
		n.Delay(trip, write)
		began := time.Now()
		took := func() time.Duration { d := time.Since(began); began = time.Now(); return d }
		c := connect(t, srv, n)
		assert.Equal(t, trip+write, took(), "sessions are logged, too")
		assert.False(t, c.exists("/a"))
		assert.Equal(t, trip, took())
		require.NoError(t, c.create("/a"))
		assert.Equal(t, trip+write, took())
		for range 2 {
			c.send(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1})
		}
		c.send(wire.OpPing, &wire.PathRequest{})
		for range 3 {
			_, err := c.reply()
			require.NoError(t, err)
		}
		assert.Equal(t, trip+write, took())
		n.Delay(0, 0)
		assert.True(t, c.exists("/a"))
		assert.Zero(t, took())
	})
}

func TestCutBefore(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		c := connect(t, srv, n)
		r := n.CutBefore(wire.OpCreate, 2)
		assert.False(t, c.exists("/a"), "does not count")
		require.NoError(t, c.create("/a"))
		assert.False(t, fired(r))
		require.Error(t, c.create("/b"))
		assert.True(t, fired(r))
		again := connect(t, srv, n)
		assert.False(t, again.exists("/b"), "the request did not arrive")
		require.NoError(t, again.create("/c"), "once only")
	})
}

func TestLoseReply(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		c := connect(t, srv, n)
		r := n.LoseReply(wire.OpCreate, 1)
		require.Error(t, c.create("/a"))
		assert.True(t, fired(r))
		again := connect(t, srv, n)
		assert.True(t, again.exists("/a"), "the request did arrive")
		require.NoError(t, again.create("/b"))
	})
}

// What was sent before the request whose reply is lost is still answered.
func TestLoseReplyOfThisRequestOnly(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		c := connect(t, srv, n)
		n.LoseReply(wire.OpGetData, 1)
		first := c.send(wire.OpExists, &wire.PathWatchRequest{Path: "/"})
		c.send(wire.OpGetData, &wire.PathWatchRequest{Path: "/"})
		h, err := c.reply()
		require.NoError(t, err)
		assert.Equal(t, first, h.Xid)
		_, err = c.reply()
		require.Error(t, err)
	})
}

func TestRulesForEveryRequest(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		c := connect(t, srv, n)
		r := n.CutBefore(0, 1)
		c.send(wire.OpPing, wire.Empty{})
		_, err := c.reply()
		require.NoError(t, err, "pings pass")
		assert.False(t, fired(r))
		require.Error(t, c.create("/a"))
		assert.True(t, fired(r))
	})
}

func TestRuleTakenBack(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		c := connect(t, srv, n)
		r := n.CutBefore(wire.OpCreate, 1)
		r.Remove()
		require.NoError(t, c.create("/a"))
		assert.False(t, fired(r))
	})
}

func TestFreezeHoldsBothWays(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		c := connect(t, srv, n)
		n.Freeze()
		n.Freeze() // twice is once
		answered := make(chan wire.ReplyHeader, 3)
		go func() {
			for range 3 {
				c.send(wire.OpExists, &wire.PathWatchRequest{Path: "/"})
			}
			for range 3 {
				h, _ := c.reply()
				answered <- h
			}
		}()
		time.Sleep(time.Second)
		assert.Equal(t, 3, n.Held())
		assert.Zero(t, srv.Requests()["exists"])
		assert.Empty(t, answered)
		n.Thaw()
		n.Thaw()
		for xid := range int32(3) {
			assert.Equal(t, xid+1, (<-answered).Xid, "in order")
		}
		assert.Zero(t, n.Held())
	})
}

func TestFreezeHidesTheEndOfAConnection(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		c := connect(t, srv, n)
		n.Freeze()
		require.NoError(t, srv.Disconnect(c.session))
		ended := make(chan error, 1)
		go func() {
			_, err := c.reply()
			ended <- err
		}()
		time.Sleep(time.Second)
		assert.Empty(t, ended)
		n.Thaw()
		require.Error(t, <-ended)
	})
}

func TestCutAllAndRefuse(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		a, b := connect(t, srv, n), connect(t, srv, n)
		n.Refuse()
		assert.False(t, a.exists("/a"), "what there is goes on")
		n.CutAll()
		for _, c := range []*talker{a, b} {
			_, err := c.reply()
			require.ErrorIs(t, err, io.EOF)
		}
		_, err := n.DialContext(t.Context(), "tcp", srv.ConnectString())
		require.ErrorContains(t, err, "refused by faultnet")
		n.Accept()
		connect(t, srv, n)
	})
}

func TestExpire(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		c, other := connect(t, srv, n), connect(t, srv, n)
		require.NoError(t, n.Expire(t.Context(), c.session))
		_, err := c.reply()
		require.Error(t, err)
		for _, s := range srv.Sessions() {
			assert.Equal(t, other.session, s.ID)
		}
		assert.False(t, other.exists("/a"), "goes on")
		require.ErrorContains(t, n.Expire(t.Context(), 77), "was not seen")

		srv.Freeze()
		defer srv.Thaw()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.Error(t, n.Expire(ctx, other.session), "ends with its context")
		assert.Equal(t, time.Second, time.Since(began))
	})
}

// The network looks into TLS, and proves itself where it speaks for a session.
func TestSecure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority, err := realzk.NewAuthority()
		require.NoError(t, err)
		cert, err := authority.Issue()
		require.NoError(t, err)
		cfg := &tls.Config{ServerName: "127.0.0.1", RootCAs: authority.Pool(), Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
		srv := zktest.Start(t, zktest.InMemory(), zktest.TLS(cfg), zktest.SASLUsers(map[string]string{"bob": "secret"}), zktest.RequireSASL())
		bob := sasl.DigestMD5("bob", "secret")
		n := New(srv.DialContext)
		n.Secure(cfg, bob)
		defer n.Close()
		c, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString(), DialContext: n.DialContext, TLS: cfg, SASL: bob})
		require.NoError(t, err)
		r := n.LoseReply(wire.OpExists, 1)
		_, _, err = c.Exists(t.Context(), "/a")
		require.NoError(t, err)
		assert.True(t, fired(r))
		id := c.SessionID()
		require.NoError(t, n.Expire(t.Context(), id))
		require.NoError(t, c.Sync(t.Context(), "/"))
		assert.NotEqual(t, id, c.SessionID())
		require.NoError(t, c.Close())

		refused := New(srv.DialContext)
		refused.Secure(&tls.Config{ServerName: "elsewhere", RootCAs: authority.Pool(), MinVersion: tls.VersionTLS12}, nil)
		defer refused.Close()
		_, err = refused.DialContext(t.Context(), "tcp", srv.ConnectString())
		require.ErrorAs(t, err, new(x509.HostnameError))
	})
}

func TestClose(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		c := connect(t, srv, n)
		n.Freeze()
		go c.send(wire.OpExists, &wire.PathWatchRequest{Path: "/"})
		synctest.Wait()
		n.Close()
		n.Close()
		_, err := c.reply()
		require.Error(t, err)
		_, err = n.DialContext(t.Context(), "tcp", srv.ConnectString())
		require.Error(t, err)
	})
}

func TestFramesThatAreTooLong(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		c := connect(t, srv, n)
		_, err := c.nc.Write(binary.BigEndian.AppendUint32(nil, 16<<20+1))
		require.NoError(t, err)
		_, err = c.reply()
		require.Error(t, err)
	})
}

func TestDialersErrorsPass(t *testing.T) {
	within(t, func(t *testing.T, srv *zktest.Server, n *Net) {
		require.NoError(t, srv.Stop())
		_, err := n.DialContext(t.Context(), "tcp", srv.ConnectString())
		var op *net.OpError
		require.ErrorAs(t, err, &op)
	})
}
