//go:build realzk

package robustness

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	randv2 "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// identity is a certificate with its key, as Go and as ZooKeeper take it.
type identity struct {
	tls.Certificate
	pem []byte // the key, then the certificate
}

// newIdentity is signed by a certificate authority, or is one itself.
func newIdentity(t *testing.T, ca *identity) identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(randv2.Int64()), Subject: pkix.Name{CommonName: "paddock"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	parent, signer := template, key
	if ca == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		parent = ca.Leaf
		signer = ca.PrivateKey.(*ecdsa.PrivateKey)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return identity{
		Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf},
		pem: append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...),
	}
}

func (i identity) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(i.Leaf)
	return pool
}

// freePort is below those that the system gives to outgoing connections.
func freePort(t *testing.T) int {
	t.Helper()
	for {
		port := 12000 + randv2.IntN(8000)
		ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err == nil {
			require.NoError(t, ln.Close())
			return port
		}
	}
}

// A real server's secure port: locks are taken and survive a restart of the
// server, and whoever is not who he should be gets nowhere.
func TestTLS(t *testing.T) {
	ca := newIdentity(t, nil)
	dir := t.TempDir()
	keys, trusted := filepath.Join(dir, "keys.pem"), filepath.Join(dir, "trusted.pem")
	require.NoError(t, os.WriteFile(keys, newIdentity(t, &ca).pem, 0o600))
	require.NoError(t, os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate.Certificate[0]}), 0o600))
	port := freePort(t)
	e := realzk.StartT(t, realzk.Options{Tick: tick, Properties: map[string]string{
		"secureClientPort":        fmt.Sprint(port),
		"secureClientPortAddress": "127.0.0.1",
		"serverCnxnFactory":       "org.apache.zookeeper.server.NettyServerCnxnFactory",
		"ssl.keyStore.location":   keys,
		"ssl.keyStore.type":       "PEM",
		"ssl.trustStore.location": trusted,
		"ssl.trustStore.type":     "PEM",
	}})
	secure := func(own ...tls.Certificate) func(*framework.Config) {
		return func(cfg *framework.Config) {
			cfg.ConnectString = fmt.Sprint("127.0.0.1:", port)
			cfg.SessionTimeout = 8 * time.Second
			cfg.TLS = &tls.Config{RootCAs: ca.pool(), Certificates: own}
		}
	}
	me := newIdentity(t, &ca)
	c, other := kit.Connect(t, e, short, secure(me.Certificate)), kit.Connect(t, e, short, secure(me.Certificate))
	_, err := c.Create(t.Context(), "/data", nil, framework.Persistent)
	require.NoError(t, err)
	h, err := locks.NewInterProcessMutex(c, "/locks/l").Acquire(t.Context())
	require.NoError(t, err)
	_, err = locks.NewInterProcessMutex(other, "/locks/l").TryAcquire(t.Context(), 0)
	require.ErrorIs(t, err, locks.ErrNotAcquired)

	next := follow(t, c)
	id := c.SessionID()
	require.NoError(t, e.Restart(t.Context(), 0))
	next(listeners.Reconnected)
	assert.Equal(t, id, c.SessionID(), "the same session")
	tx := h.Transaction()
	tx.Set("/data", []byte("x"), framework.AnyVersion)
	_, err = tx.Commit(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.Release())
	h, err = locks.NewInterProcessMutex(other, "/locks/l").Acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.Release())

	stranger := newIdentity(t, nil)
	for name, change := range map[string]func(*framework.Config){
		"no certificate":                secure(),
		"one that the server mistrusts": secure(newIdentity(t, &stranger).Certificate),
		"a server that we mistrust": func(cfg *framework.Config) {
			secure(me.Certificate)(cfg)
			cfg.TLS.RootCAs = stranger.pool()
		},
		"plain text": func(cfg *framework.Config) {
			secure()(cfg)
			cfg.TLS = nil
		},
		"TLS to the plain port": func(cfg *framework.Config) {
			secure(me.Certificate)(cfg)
			cfg.ConnectString = e.ConnectString()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var cfg framework.Config
			change(&cfg)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := framework.Connect(ctx, cfg)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			t.Log(err)
		})
	}
}
