package zktest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// both runs a test over TCP and in memory.
func both(t *testing.T, test func(t *testing.T, opts ...zktest.Option)) {
	t.Run("tcp", func(t *testing.T) { test(t) })
	t.Run("memory", func(t *testing.T) { test(t, zktest.InMemory()) })
}

func TestRestartKeepsPortDataAndSessions(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		addr := srv.ConnectString()
		c := begin(t, srv, 10*time.Second)
		c.create("/e", wire.FlagEphemeral)
		c.must(wire.OpExists, watch("/e"), nil)

		require.NoError(t, srv.Stop())
		require.NoError(t, srv.Stop(), "twice")
		_, err := c.read()
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = srv.DialContext(context.Background(), "tcp", addr)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		assert.Equal(t, []string{"/e"}, srv.Ephemerals(c.session), "a stopped server can be asked")

		require.NoError(t, srv.Restart())
		assert.Equal(t, addr, srv.ConnectString())
		again, err := c.again(srv)
		require.NoError(t, err)
		assert.Equal(t, c.session, again.session)
		assert.True(t, again.exists("/e"))
		assert.Empty(t, srv.Watches())

		require.NoError(t, srv.Restart(), "without Stop")
		_, err = again.read()
		require.Error(t, err)

		require.NoError(t, srv.Close())
		require.NoError(t, srv.Close(), "twice")
		require.ErrorIs(t, srv.Restart(), zktest.ErrClosed)
		require.ErrorIs(t, srv.Stop(), zktest.ErrClosed)
	})
}

func TestRestartWhenThePortIsTaken(t *testing.T) {
	srv := zktest.Start(t)
	require.NoError(t, srv.Stop())
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", srv.ConnectString())
	require.NoError(t, err)
	require.ErrorIs(t, srv.Restart(), syscall.EADDRINUSE)
	time.AfterFunc(50*time.Millisecond, func() { assert.NoError(t, l.Close()) })
	require.NoError(t, srv.Restart(), "the port was taken for a short time")
}

func TestExpireSession(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		a, b := begin(t, srv, 10*time.Second), begin(t, srv, 10*time.Second)
		a.create("/a", wire.FlagEphemeral)
		b.must(wire.OpExists, watch("/a"), nil)

		require.NoError(t, srv.ExpireSession(a.session))
		assert.Empty(t, srv.Ephemerals(0))
		_, err := a.read()
		assert.Equal(t, io.EOF, err)
		assert.False(t, b.exists("/a"))
		assert.Equal(t, []wire.WatcherEvent{{Type: wire.EventNodeDeleted, State: wire.StateSyncConnected, Path: "/a"}}, b.events)
		again, err := a.again(srv)
		require.NoError(t, err)
		assert.Zero(t, again.session, "the session is gone")
	})
}

func TestDisconnectLeavesTheSession(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		a, b := begin(t, srv, 10*time.Second), begin(t, srv, 10*time.Second)
		a.create("/a", wire.FlagEphemeral)

		require.NoError(t, srv.Disconnect(a.session))
		_, err := a.read()
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.NoError(t, srv.Disconnect(a.session), "there is no connection, and that is as asked")
		assert.True(t, b.exists("/a"))
		again, err := a.again(srv)
		require.NoError(t, err)
		assert.Equal(t, a.session, again.session)

		srv.DisconnectAll()
		for _, c := range []*client{again, b} {
			_, err := c.read()
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
		assert.Len(t, srv.Sessions(), 2)
	})
}

func TestRefuse(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		a := begin(t, srv, 10*time.Second)
		srv.Refuse()
		nc, err := srv.DialContext(context.Background(), "tcp", srv.ConnectString())
		if err == nil { // over TCP the kernel may have accepted
			_, err = nc.Read(make([]byte, 1))
			nc.Close()
		}
		require.Error(t, err)
		assert.True(t, a.exists("/"), "who is connected stays")
		srv.Accept()
		begin(t, srv, 10*time.Second)
	})
}

func TestVerbsThatHitNothingFailTheTest(t *testing.T) {
	tb := &fakeTB{TB: t}
	srv := zktest.Start(tb, zktest.InMemory())
	require.ErrorIs(t, srv.ExpireSession(99), zktest.ErrNoSession)
	require.ErrorIs(t, srv.Disconnect(98), zktest.ErrNoSession)
	require.ErrorContains(t, srv.SetSequence("/none", 3), "no node")
	assert.Equal(t, []string{
		"zktest: expire session 0x63: no such session",
		"zktest: disconnect session 0x62: no such session",
		"zktest: set sequence of /none: no node",
	}, tb.errors)
	require.Len(t, tb.cleanups, 1)
	tb.cleanups[0]()
	_, err := srv.DialContext(context.Background(), "tcp", srv.ConnectString())
	require.Error(t, err)

	quiet, err := zktest.New(zktest.InMemory())
	require.NoError(t, err)
	defer quiet.Close()
	require.ErrorIs(t, quiet.ExpireSession(99), zktest.ErrNoSession)
}

// A failure names the line of the test, not one of ours.
func TestVerbsNameTheLineOfTheTest(t *testing.T) {
	if os.Getenv("ZKTEST_MISS") != "" {
		srv, c := zktest.Start(t, zktest.InMemory()), zktest.StartCluster(t, 1, zktest.InMemory())
		_ = srv.ExpireSession(1)
		_ = srv.Disconnect(2)
		_ = srv.SetSequence("/none", 3)
		_ = c.ExpireSession(4)
		_ = c.Member(0).Disconnect(5)
		return
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVerbsNameTheLineOfTheTest$")
	again.Env = append(os.Environ(), "ZKTEST_MISS=1")
	out, err := again.CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, 5, strings.Count(string(out), " verbs_test.go:"), "%s", out)
	assert.NotContains(t, string(out), " verbs.go:")
}

func (tb *fakeTB) Helper()           {}
func (tb *fakeTB) Cleanup(fn func()) { tb.cleanups = append(tb.cleanups, fn) }
func (tb *fakeTB) Errorf(format string, args ...any) {
	tb.errors = append(tb.errors, fmt.Sprintf(format, args...))
}
func (tb *fakeTB) Fatalf(format string, args ...any) { tb.Errorf(format, args...) }

func TestOptionsThatMakeNoSense(t *testing.T) {
	for want, opt := range map[string]zktest.Option{
		"zktest: option is nil":                                            nil,
		"zktest: tick of 0s: it must be 1ms at least":                      zktest.Tick(0),
		"zktest: tick of 500ns":                                            zktest.Tick(500),
		"zktest: TLS: the server has no certificate: set Certificates":     zktest.TLS(nil),
		"zktest: session timeouts from 2s to 1s":                           zktest.SessionTimeouts(2*time.Second, time.Second),
		"zktest: session timeouts from -1s to 1s":                          zktest.SessionTimeouts(-time.Second, time.Second),
		"zktest: frames of at most -1 bytes":                               zktest.MaxFrame(-1),
		"zktest: sweep interval of -1s":                                    zktest.SweepInterval(-time.Second),
		"zktest: latency of -1s":                                           zktest.Latency(-time.Second),
		"zktest: Superuser: want a digest":                                 zktest.Superuser("super:secret"),
		"zktest: latency needs InMemory":                                   zktest.Latency(time.Second),
		"zktest: listen tcp: address x: missing port":                      zktest.Listen("x"),
		`version "3.7", want one of ["3.8.0" "3.9.3" "3.9.6"] or a series`: zktest.Version("3.7"),
	} {
		_, err := zktest.New(opt)
		require.ErrorContains(t, err, want)
	}
	tb := &fakeTB{TB: t}
	assert.Nil(t, zktest.Start(tb, zktest.Tick(-1)))
	assert.Len(t, tb.errors, 1)
}

func TestSetSequence(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory())
	c := begin(t, srv, 10*time.Second)
	c.create("/q", 0)
	require.NoError(t, srv.SetSequence("/q", 41))
	assert.Equal(t, "/q/n-0000000041", c.create("/q/n-", wire.FlagSequence))
	assert.Equal(t, "/q/n-0000000042", c.create("/q/n-", wire.FlagSequence))
}

func TestChroot(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory())
	t.Run("a/b c", func(t *testing.T) {
		assert.Equal(t, srv.ConnectString()+"/TestChroot-a-b_c-1", srv.Chroot(t))
		assert.Equal(t, srv.ConnectString()+"/TestChroot-a-b_c-2", srv.Chroot(t))
	})
	c := begin(t, srv, 10*time.Second)
	assert.True(t, c.exists("/TestChroot-a-b_c-1"))
	c.create("/TestChroot-3", 0)
	tb := &fakeTB{TB: t}
	assert.Equal(t, srv.ConnectString()+"/TestChroot-3", srv.Chroot(tb))
	assert.Equal(t, []string{"zktest: create /TestChroot-3: node exists"}, tb.errors)
}

func TestDialInMemory(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory())
	_, err := srv.DialContext(context.Background(), "tcp", "zookeeper:2181")
	require.ErrorContains(t, err, "no server at zookeeper:2181 in memory")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = srv.DialContext(ctx, "tcp", srv.ConnectString())
	require.ErrorIs(t, err, context.Canceled)
	var op *net.OpError
	require.True(t, errors.As(err, &op))
}

func TestInspect(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory())
	a, b := begin(t, srv, 5*time.Second), begin(t, srv, 10*time.Second)
	a.must(wire.OpCreateContainer, &wire.CreateRequest{Path: "/c", ACL: open, Flags: wire.FlagContainer}, nil)
	a.must(wire.OpCreateTTL, &wire.CreateTTLRequest{
		CreateRequest: wire.CreateRequest{Path: "/t", Data: []byte("x\n"), ACL: open, Flags: wire.FlagPersistentTTL}, TTL: 90_000,
	}, nil)
	a.create("/c/a", wire.FlagEphemeral)
	b.create("/b", wire.FlagEphemeral)
	a.must(wire.OpGetData, watch("/c"), nil)
	a.must(wire.OpGetChildren, watch("/c"), nil)
	b.must(wire.OpGetData, watch("/c"), nil)
	call(b, wire.OpExists, watch("/none"))
	b.must(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/p", Mode: wire.AddWatchPersistent}, &wire.ErrorResponse{})
	b.must(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/r", Mode: wire.AddWatchPersistentRecursive}, &wire.ErrorResponse{})

	assert.Equal(t, []zktest.WatchInfo{
		{"/c", "child", a.session}, {"/c", "data", a.session}, {"/c", "data", b.session},
		{"/none", "exist", b.session}, {"/p", "persistent", b.session}, {"/r", "persistentRecursive", b.session},
	}, srv.Watches())
	assert.Equal(t, []string{"/b", "/c/a"}, srv.Ephemerals(0))
	assert.Equal(t, []string{"/c/a"}, srv.Ephemerals(a.session))
	require.NoError(t, srv.Disconnect(b.session))
	assert.Equal(t, []zktest.Session{
		{ID: a.session, Timeout: 5 * time.Second, Remote: a.nc.LocalAddr().String()},
		{ID: b.session, Timeout: 10 * time.Second},
	}, srv.Sessions())
	assert.Equal(t, map[string]int{
		"connect": 2, "createContainer": 1, "createTTL": 1, "create": 2, "getData": 2, "getChildren": 1, "exists": 1, "addWatch": 2,
	}, srv.Requests())

	var out bytes.Buffer
	require.NoError(t, srv.Dump(&out))
	assert.Equal(t, fmt.Sprintf(`/ "" version 0
/b "" version 0 ephemeral of %#x
/c "" version 0 container
/c/a "" version 0 ephemeral of %#x
/t "x\n" version 0 ttl 1m30s
/zookeeper "" version 0
/zookeeper/config "" version 0
/zookeeper/quota "" version 0
`, b.session, a.session), out.String())
}

func call(c *client, op wire.Op, req wire.Record) {
	_, err := c.call(op, req, nil)
	require.NoError(c.t, err)
}
