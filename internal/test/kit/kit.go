// Package kit has what tests of several packages begin and end with: clients of a
// server, acquisitions in the background, waits, and a look at what is left.
//
// Only tests import it.
package kit

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/listeners"
	zktest "github.com/paddock-zk/paddock/testing"
)

// SessionTimeout is that of Config.
const SessionTimeout = 30 * time.Second

// Server is one server or several: of package zktest or real.
type Server interface{ ConnectString() string }

// Config is for a client of a server.
func Config(srv Server, change ...func(*framework.Config)) framework.Config {
	cfg := framework.Config{ConnectString: srv.ConnectString(), SessionTimeout: SessionTimeout}
	if memory, ok := srv.(interface {
		DialContext(ctx context.Context, network, addr string) (net.Conn, error)
	}); ok {
		cfg.DialContext = memory.DialContext
	}
	for _, fn := range change {
		fn(&cfg)
	}
	return cfg
}

// Connect makes a client of a server, which is closed with the test.
func Connect(t testing.TB, srv Server, change ...func(*framework.Config)) *framework.Client {
	t.Helper()
	return Dial(t, Config(srv, change...))
}

// Dial makes a client, which is closed with the test.
func Dial(t testing.TB, cfg framework.Config) *framework.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := framework.Connect(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Within is the change of a configuration that sets the session timeout, and states the
// servers' tick if it is not 0.
func Within(timeout, tick time.Duration) func(*framework.Config) {
	return func(cfg *framework.Config) { cfg.SessionTimeout, cfg.ServerTick = timeout, tick }
}

// ByServer is the change of a configuration that has the server prove the session.
func ByServer(cfg *framework.Config) { cfg.SessionLease = framework.LeaseByServer }

// CountStates counts the states of a client from now on, the present one included. It is
// read in a bubble in which nothing else goes on.
func CountStates(c *framework.Client) *int {
	n := new(int)
	c.States().Listen(func(listeners.State) { *n++ })
	return n
}

// Logged is the change of a configuration that has a client log from a level on, and
// what it has logged.
func Logged(level zapcore.Level) (change func(*framework.Config), logs *observer.ObservedLogs) {
	core, logs := observer.New(level)
	return func(cfg *framework.Config) { cfg.Logger = zap.New(core) }, logs
}

// NothingLeft says that no client has ephemeral nodes or watches on a server. What
// follows is printed if one has, as package assert does.
func NothingLeft(t testing.TB, srv *zktest.Server, msgAndArgs ...any) {
	t.Helper()
	assert.Empty(t, srv.Ephemerals(0), msgAndArgs...)
	assert.Empty(t, srv.Watches(), msgAndArgs...)
}

// SmallBuffers is the change for clients that are made by the thousand: each connection has
// buffers for the largest reply and the largest request.
func SmallBuffers(cfg *framework.Config) { cfg.MaxReply, cfg.MaxRequest = 128<<10, 128<<10 }
