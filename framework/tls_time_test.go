package framework_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// named is the configuration of a client that knows servers in memory by names.
func named(roots *x509.CertPool, servers map[string]*zktest.Server) framework.Config {
	cfg := framework.Config{
		TLS:            &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		SessionTimeout: 30 * time.Second,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			srv := servers[addr]
			if srv == nil {
				return nil, &net.DNSError{Err: "no such host", Name: addr, IsNotFound: true}
			}
			return srv.DialContext(ctx, network, srv.ConnectString())
		},
	}
	for name := range servers {
		if cfg.ConnectString != "" {
			cfg.ConnectString += ","
		}
		cfg.ConnectString += name
	}
	return cfg
}

func TestTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		srv := zktest.Start(t, zktest.InMemory(), zktest.TLS(serving(ca.issue("zk.test", time.Hour))))
		c := kit.Dial(t, named(ca.Pool(), map[string]*zktest.Server{"zk.test:2281": srv}))
		next := states(t, c)
		next(listeners.Connected)
		_, err := c.Create(t.Context(), "/a", []byte("x"), framework.Ephemeral)
		require.NoError(t, err)
		id := c.SessionID()
		require.NoError(t, srv.Disconnect(id))
		next(listeners.Suspended, listeners.Reconnected)
		assert.Equal(t, id, c.SessionID())
		data, _, err := c.Get(t.Context(), "/a")
		require.NoError(t, err)
		assert.Equal(t, "x", string(data))
		require.NoError(t, c.Close())
		assert.Empty(t, srv.Sessions())
	})
}

// Servers at which a whole fleet arrives answer each step late: dialing, two exchanges of TLS, and
// the connect request. The client waits for twice ConnectTimeout, which is 10 s here.
func TestTLSAtSlowServers(t *testing.T) {
	const late = 2400 * time.Millisecond // each way
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		slow := serving(ca.issue("zk.test", time.Hour))
		slow.MaxVersion = tls.VersionTLS12 // later ones have one exchange
		srv := zktest.Start(t, zktest.InMemory(), zktest.TLS(slow), zktest.Latency(late), zktest.WithLimits(zktest.Limits{Handshake: time.Minute}))
		began := time.Now()
		kit.Dial(t, named(ca.Pool(), map[string]*zktest.Server{"zk.test:2281": srv}))
		assert.Equal(t, 4*2*late, time.Since(began))
	})
}

func TestTLSRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		server func(ca *authority) *tls.Config // nil for a server without TLS
		client func(cfg *framework.Config)
		want   string
		as     any // what errors.As finds
	}{
		{name: "wrong name", server: func(ca *authority) *tls.Config { return serving(ca.issue("other.test", time.Hour)) },
			want: "certificate is valid for other.test, not zk.test", as: new(x509.HostnameError)},
		{name: "name of an address", server: func(ca *authority) *tls.Config { return serving(ca.issue("127.0.0.1", time.Hour)) },
			want: "zk.test", as: new(x509.HostnameError)},
		{name: "unknown authority", server: func(ca *authority) *tls.Config { return serving(newAuthority(ca.t).issue("zk.test", time.Hour)) },
			want: "certificate signed by unknown authority", as: new(x509.UnknownAuthorityError)},
		{name: "expired", server: func(ca *authority) *tls.Config { return serving(ca.issue("zk.test", -time.Minute)) },
			want: "certificate has expired", as: new(x509.CertificateInvalidError)},
		{name: "old version", server: func(ca *authority) *tls.Config {
			cfg := serving(ca.issue("zk.test", time.Hour))
			cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
			return cfg
		}, client: func(cfg *framework.Config) { cfg.TLS.MinVersion = 0 }, want: "protocol version"},
		{name: "no client certificate", server: func(ca *authority) *tls.Config {
			cfg := serving(ca.issue("zk.test", time.Hour))
			cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool()
			return cfg
		}, want: "certificate required"},
		{name: "server without TLS", want: "ended by the server, as by one without TLS"},
		{name: "client without TLS", server: func(ca *authority) *tls.Config { return serving(ca.issue("zk.test", time.Hour)) },
			client: func(cfg *framework.Config) { cfg.TLS = nil }, want: "ended by the server before an answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca := newAuthority(t)
				opts := []zktest.Option{zktest.InMemory()}
				if tc.server != nil {
					opts = append(opts, zktest.TLS(tc.server(ca)))
				}
				srv := zktest.Start(t, opts...)
				cfg := named(ca.Pool(), map[string]*zktest.Server{"zk.test:2281": srv})
				if tc.client != nil {
					tc.client(&cfg)
				}
				refused(t, cfg, tc.want, tc.as)
				assert.Empty(t, srv.Sessions())
			})
		})
	}
}

// refused expects that a client cannot connect, and that it says why.
func refused(t *testing.T, cfg framework.Config, want string, as any) {
	t.Helper()
	cfg.Retry = retry.None()
	c, err := framework.Start(cfg)
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = c.BlockUntilConnected(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "zk.test:2281: ")
	assert.ErrorContains(t, err, want)

	_, _, err = c.Get(t.Context(), "/")
	require.ErrorIs(t, err, framework.ErrNotConnected)
	assert.ErrorContains(t, err, want)
	switch as := as.(type) {
	case *x509.HostnameError:
		assert.True(t, errors.As(err, as), "%v", err)
	case *x509.UnknownAuthorityError:
		assert.True(t, errors.As(err, as), "%v", err)
	case *x509.CertificateInvalidError:
		require.True(t, errors.As(err, as), "%v", err)
		assert.Equal(t, x509.Expired, as.Reason)
	}
	assert.Equal(t, listeners.Latent, c.State())
	assert.Zero(t, c.SessionID())
}

func TestTLSClientCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		server := serving(ca.issue("zk.test", time.Hour))
		server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool()
		srv := zktest.Start(t, zktest.InMemory(), zktest.TLS(server))
		cfg := named(ca.Pool(), map[string]*zktest.Server{"zk.test:2281": srv})
		cfg.TLS.Certificates = []tls.Certificate{ca.issue("client.test", time.Hour)}
		require.NoError(t, kit.Dial(t, cfg).Sync(t.Context(), "/"))
	})
}

// Servers that cannot be trusted, or say nothing, are passed over for one that
// can, however often the client is cut off.
func TestTLSOneGoodServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		start := func(cert tls.Certificate) *zktest.Server {
			return zktest.Start(t, zktest.InMemory(), zktest.TLS(serving(cert)))
		}
		good, silent := start(ca.issue("good.test", time.Hour)), start(ca.issue("silent.test", time.Hour))
		silent.Freeze()
		defer silent.Thaw()
		c := kit.Dial(t, named(ca.Pool(), map[string]*zktest.Server{
			"good.test:2281": good, "silent.test:2281": silent, "plain.test:2281": zktest.Start(t, zktest.InMemory()),
			"wrong.test:2281": start(ca.issue("other.test", time.Hour)), "expired.test:2281": start(ca.issue("expired.test", -time.Minute)),
		}))
		next := states(t, c)
		next(listeners.Connected)
		id := c.SessionID()
		for range 5 {
			require.NoError(t, good.Disconnect(id))
			next(listeners.Suspended, listeners.Reconnected)
			assert.Equal(t, id, c.SessionID(), "before the session times out")
		}
	})
}
