package framework_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A server that is no ZooKeeper is told by what it says.
func TestServersThatAreNoZooKeeper(t *testing.T) {
	for name, tc := range map[string]struct {
		says string
		tls  bool
		want string
	}{
		"HTTP":          {"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", false, `handshake: not ZooKeeper's protocol: the server answered "HTTP/1.1 400 Bad Request"`},
		"Redis":         {"-ERR unknown command\r\n", false, `handshake: not ZooKeeper's protocol: the server answered "-ERR unknown command"`},
		"SSH":           {"SSH-2.0-OpenSSH_9.2\r\n", false, `handshake: not ZooKeeper's protocol: the server answered "SSH-2.0-OpenSSH_9.2"`},
		"TLS":           {"\x15\x03\x03\x00\x02\x02\x46", false, "handshake: not ZooKeeper's protocol: the server speaks TLS, and Config.TLS is nil"},
		"TLS, to HTTP":  {"HTTP/1.1 400 Bad Request\r\n\r\n", true, "TLS: tls: first record does not look like a TLS handshake"},
		"a database":    {"J\x00\x00\x00\x0a8.0.36\x00", false, "handshake: not ZooKeeper's protocol: frame of 1241513984 bytes, not between 20 and 256"},
		"hangs up":      {"", false, "handshake: ended by the server before an answer (it speaks TLS, does not serve yet, or has too many connections): read: EOF"},
		"hangs up, TLS": {"", true, "TLS: ended by the server, as by one without TLS: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := framework.Config{ConnectString: "zk:2181", DialContext: func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					go func() {
						_, _ = far.Read(make([]byte, 4<<10))
						_, _ = far.Write([]byte(tc.says))
						_ = far.Close()
					}()
					return near, nil
				}}
				if tc.tls {
					cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := framework.Connect(ctx, cfg)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.EqualError(t, err, "connect zk:2181: context deadline exceeded: not connected: zk:2181: "+tc.want)
			})
		})
	}
}

// A server ends the connection after the handshake of TLS: what it has against the client's
// certificate comes only then, or it says nothing.
func TestServersThatEndAConnectionWithTLS(t *testing.T) {
	for name, tc := range map[string]struct {
		asks   tls.ClientAuthType
		newest uint16
		want   string
	}{
		"it mistrusts a certificate, TLS 1.2": {tls.RequireAndVerifyClientCert, tls.VersionTLS12, "TLS: the server refuses the certificate of Config.TLS or TLSFiles " +
			`(CN=client,O=Example\, Inc., valid from 1999-12-31T23:00:00Z to 2000-01-01T01:00:00Z): remote error: tls: unknown certificate authority`},
		"it asks for a certificate": {tls.RequireAnyClientCert, 0, "handshake: the server wants a certificate, and Config.TLS or TLSFiles has none of an authority that it trusts: read: remote error: tls: certificate required"},
		"it says nothing": {tls.NoClientCert, 0, "handshake: ended by the server before an answer (it asks clients for certificates and lacks authProvider.x509, does not serve yet, " +
			"or has too many connections): read: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca := newAuthority(t)
				server := serving(ca.issue("zk", time.Hour))
				server.ClientAuth, server.MaxVersion = tc.asks, tc.newest
				cfg := framework.Config{ConnectString: "zk:2181", TLS: &tls.Config{RootCAs: ca.Pool()}, DialContext: func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					go func() {
						secure := tls.Server(far, server)
						if secure.Handshake() == nil { //nolint:noctx // the client ends it
							_, _ = secure.Read(make([]byte, 4<<10))
						}
						_ = secure.Close()
					}()
					return near, nil
				}}
				if tc.asks == tls.RequireAndVerifyClientCert {
					cfg.TLS.Certificates = []tls.Certificate{ca.issue("client", time.Hour)}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := framework.Connect(ctx, cfg)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.EqualError(t, err, "connect zk:2181: context deadline exceeded: not connected: zk:2181: "+tc.want)
			})
		})
	}
}

// A server answers what it does not know with a code. That is told until it has answered
// otherwise, and is logged once.
func TestServerThatLacksAnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		lacks := srv.On(zktest.Match{Op: "createTTL"}, zktest.Fail(-6))
		log, logs := observer.New(zapcore.WarnLevel)
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Logger = zap.New(log) })
		assert.Nil(t, c.Stats().Unsupported)
		create := func() error {
			_, err := c.Create(t.Context(), "/a", nil, framework.Persistent, framework.TTL(time.Minute))
			return err
		}
		for range 3 {
			err := create()
			require.ErrorIs(t, err, framework.ErrUnsupported)
			require.ErrorContains(t, err, "server answered code -6 (unimplemented): it is older than ZooKeeper 3.6, or leaves this operation out")
		}
		assert.Equal(t, []string{"createTTL"}, c.Stats().Unsupported)
		assert.Equal(t, 1, logs.FilterMessage("the servers do not know a request").FilterField(zap.Stringer("request", wire.OpCreateTTL)).Len())
		lacks.Remove()
		require.NoError(t, create())
		assert.Nil(t, c.Stats().Unsupported)
	})
}
