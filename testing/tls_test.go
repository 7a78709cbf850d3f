package zktest_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	zktest "github.com/paddock-zk/paddock/testing"
)

// certificate makes one for the name zk.test, and who trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"zk.test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	cert, pool := certificate(t)
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, append(opts, zktest.TLS(&tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}))...)
		plain := dial(t, srv)
		require.Error(t, plain.hello(10*time.Second, 0, nil), "a client without TLS")

		secure := func(name string) *client {
			raw, err := srv.DialContext(context.Background(), "tcp", srv.ConnectString())
			require.NoError(t, err)
			nc := tls.Client(raw, &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12})
			t.Cleanup(func() { nc.Close() })
			return &client{t: t, nc: nc, r: bufio.NewReader(nc)}
		}
		require.Error(t, secure("other.test").hello(10*time.Second, 0, nil), "the wrong name")

		c := secure("zk.test")
		require.NoError(t, c.hello(10*time.Second, 0, nil))
		c.create("/a", 0)
		require.NoError(t, srv.Disconnect(c.session))
		_, err := c.read()
		require.Error(t, err)
		again := secure("zk.test")
		require.NoError(t, again.hello(10*time.Second, c.session, c.password))
		assert.True(t, again.exists("/a"))
	})
}
