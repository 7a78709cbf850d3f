package framework_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/sasl"
	"github.com/paddock-zk/paddock/internal/dns"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// noDNS makes every query of package net fail, or wait if it is to be silent.
func noDNS(t *testing.T, silent bool) {
	t.Helper()
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		if silent {
			return silence(), nil
		}
		return nil, io.EOF
	}}
}

// silence is a connection to somebody who takes no bytes and sends none.
func silence() net.Conn {
	near, _ := net.Pipe()
	return near
}

func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// unanswered are the ways in which a client waits for an answer before it is let in, or is
// refused.
var unanswered = map[string]func(t *testing.T, cfg *framework.Config){
	"DNS": func(t *testing.T, cfg *framework.Config) {
		noDNS(t, true)
		cfg.ConnectString, cfg.DialContext = "zk.example:2181", nil
	},
	"SRV records": func(t *testing.T, cfg *framework.Config) {
		noDNS(t, true)
		cfg.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }
		cfg.ServerList = framework.ServersBySRV("_client._tcp.zk.example")
	},
	"a look-up": func(_ *testing.T, cfg *framework.Config) {
		cfg.ConnectString = "zk.example:2181"
		cfg.LookupHost = func(ctx context.Context, _ string) ([]string, error) { return nil, untilDone(ctx) }
	},
	"a list": func(_ *testing.T, cfg *framework.Config) {
		cfg.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }
		cfg.ServerList = func(ctx context.Context) ([]string, error) { return nil, untilDone(ctx) }
	},
	"dialing": func(_ *testing.T, cfg *framework.Config) {
		cfg.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, untilDone(ctx) }
	},
	"TLS": func(_ *testing.T, cfg *framework.Config) {
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		cfg.DialContext = func(context.Context, string, string) (net.Conn, error) { return silence(), nil }
	},
	"a mechanism": func(_ *testing.T, cfg *framework.Config) {
		cfg.SASL = &mechanism{begin: func(ctx context.Context, _ sasl.Server) (sasl.Exchange, error) { return nil, untilDone(ctx) }}
	},
	"the handshake": func(_ *testing.T, cfg *framework.Config) {
		cfg.DialContext = func(context.Context, string, string) (net.Conn, error) { return silence(), nil }
	},
	letIn: func(t *testing.T, cfg *framework.Config) {
		srv := zktest.Start(t, zktest.InMemory(), users, zktest.RequireSASL())
		cfg.ConnectString, cfg.DialContext = srv.ConnectString(), srv.DialContext
	},
	"the grant":                   served("connect", zktest.Delay(time.Hour)),
	"the grant for a moment":      served("connect", zktest.Delay(250*time.Millisecond)),
	"the lost grant":              served("connect", zktest.DropReply()),
	"the cut grant":               served("connect", zktest.CutAfter()),
	"the proof":                   served("sasl", zktest.Delay(time.Hour), users),
	"the proof for a moment":      served("sasl", zktest.Delay(250*time.Millisecond), users),
	"the lost proof":              served("sasl", zktest.DropReply(), users),
	"the cut proof":               served("sasl", zktest.CutAfter(), users),
	"the refused proof":           served("sasl", zktest.Fail(-115), users),
	"the refused proof, required": served("sasl", zktest.Fail(-115), users, zktest.RequireSASL()),
	"the proof, with no SASL":     served("sasl", zktest.Delay(0)),
	"the credentials":             served("auth", zktest.Delay(time.Hour)),
	"the lost credentials":        served("auth", zktest.DropReply()),
	"the cut credentials":         served("auth", zktest.CutAfter()),
	"the refused credentials":     served("auth", zktest.Fail(-115)),
}

// letIn is the way that begins with a session, in which every request is refused.
const letIn = "a proof, required"

// served is a server that answers one kind of requests otherwise.
func served(op string, f zktest.Fault, opts ...zktest.Option) func(t *testing.T, cfg *framework.Config) {
	return func(t *testing.T, cfg *framework.Config) {
		srv := zktest.Start(t, append(opts, zktest.InMemory())...)
		srv.On(zktest.Match{Op: op}, f)
		cfg.ConnectString, cfg.DialContext = srv.ConnectString(), srv.DialContext
		switch op {
		case "sasl":
			cfg.SASL = sasl.DigestMD5("bob", "secret")
		case "auth":
			cfg.Auth = []framework.Auth{framework.DigestAuth("bob", "secret")}
		}
	}
}

func TestBounds(t *testing.T) {
	const (
		patience = 200 * time.Millisecond // of contexts
		asking   = 500 * time.Millisecond // for the end of a session that nobody has used
	)
	firstLookup(t)
	for name, way := range unanswered {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := framework.Config{ConnectString: "127.0.0.1:1"}
				way(t, &cfg)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				began := time.Now()
				c, err := framework.Connect(ctx, cfg)
				if require.Equal(t, name == letIn, err == nil); err == nil {
					require.NoError(t, c.Close())
				}
				assert.LessOrEqual(t, time.Since(began), patience+asking, "Connect")

				for _, after := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond, 3 * time.Second, 20 * time.Second} {
					c, err := framework.Start(cfg)
					require.NoError(t, err)
					time.Sleep(after)
					began = time.Now()
					require.NoError(t, c.Close())
					assert.LessOrEqual(t, time.Since(began), asking, "Close after %v", after)
				}

				c, err = framework.Start(cfg)
				require.NoError(t, err)
				ctx, cancel = context.WithTimeout(t.Context(), patience)
				defer cancel()
				began = time.Now()
				_, _, err = c.Get(ctx, "/")
				require.Error(t, err)
				require.True(t, c.BlockUntilConnected(ctx) != nil || name == letIn)
				assert.LessOrEqual(t, time.Since(began), patience, "Get, BlockUntilConnected")
				require.NoError(t, c.Close())
			})
		})
	}
}

// A client that is in asks DNS and lists as well.
func TestBoundsBesideAConnection(t *testing.T) {
	firstLookup(t)
	for name, change := range map[string]func(cfg *framework.Config){
		"a look-up":   func(cfg *framework.Config) { cfg.ConnectString += ",zk.example:1" },
		"SRV records": func(cfg *framework.Config) { cfg.ServerList = framework.ServersBySRV("_client._tcp.zk.example") },
		"home": func(cfg *framework.Config) {
			cfg.ConnectString, cfg.Prefer = cfg.ConnectString+",zk.example:1", []string{"zk.*"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				noDNS(t, true)
				srv := zktest.Start(t, zktest.InMemory())
				for after := range 40 {
					cfg := kit.Config(srv, change)
					cfg.LookupHost, cfg.CloseTimeout = dns.Resolver().LookupHost, 100*time.Millisecond
					c := kit.Dial(t, cfg)
					time.Sleep(time.Duration(after)*time.Second + 50*time.Millisecond) // beside the pings
					began := time.Now()
					require.NoError(t, c.Close())
					assert.Zero(t, time.Since(began))
				}
			})
		})
	}
}

// firstLookup has package net make a channel, which must belong to no bubble.
func firstLookup(t *testing.T) {
	t.Helper()
	noDNS(t, false)
	_, _ = net.DefaultResolver.LookupHost(t.Context(), "zk.example")
}

// The server ends the connection behind its answer to Close, and a ping that leaves at the same
// moment cannot be written any more.
func TestCloseBesideAPing(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory())
			c := kit.Dial(t, kit.Config(srv, kit.Within(30*time.Second, 0)))
			time.Sleep(10 * time.Second)
			began := time.Now()
			require.NoError(t, c.Close())
			require.Zero(t, time.Since(began))
		})
	}
}
