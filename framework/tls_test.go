package framework_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	zktest "github.com/paddock-zk/paddock/testing"
)

// authority signs certificates for names.
type authority struct {
	*realzk.Authority
	t *testing.T
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a, err := realzk.NewAuthority()
	require.NoError(t, err)
	return &authority{a, t}
}

// issue signs a certificate for one name, good for so long from now on.
func (a *authority) issue(name string, life time.Duration) tls.Certificate {
	a.t.Helper()
	return a.issueOld(name, time.Hour, life)
}

// issueOld is issue for a certificate of some age.
func (a *authority) issueOld(name string, age, life time.Duration) tls.Certificate {
	a.t.Helper()
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: name, Organization: []string{"Example, Inc."}},
		NotBefore: time.Now().Add(-age), NotAfter: time.Now().Add(life),
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	cert, err := a.Sign(template)
	require.NoError(a.t, err)
	return cert
}

// serving is a server's side of TLS with one certificate.
func serving(cert tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
}

// go-zookeeper looks names up before it dials. The certificate must be for the
// name in the connection string all the same, and not for an address.
func TestTLSNamesAsWritten(t *testing.T) {
	ca := newAuthority(t)
	srv := zktest.Start(t, zktest.TLS(serving(ca.issue("localhost", time.Hour))))
	_, port, err := net.SplitHostPort(srv.ConnectString())
	require.NoError(t, err)
	cfg := framework.Config{ConnectString: "localhost:" + port, TLS: &tls.Config{RootCAs: ca.Pool()}}
	_, err = kit.Dial(t, cfg).Create(t.Context(), "/a", nil, framework.Persistent)
	require.NoError(t, err)
	assert.Empty(t, cfg.TLS.ServerName, "the caller's configuration is left as it was")
	assert.Zero(t, cfg.TLS.MinVersion)

	cfg.ConnectString = strings.Replace(cfg.ConnectString, "localhost", "127.0.0.1", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = framework.Connect(ctx, cfg)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "127.0.0.1:"+port+": TLS: ")
	assert.ErrorContains(t, err, "cannot validate certificate for 127.0.0.1")

	cfg.TLS.ServerName = "localhost"
	require.NoError(t, kit.Dial(t, cfg).Sync(t.Context(), "/"), "a name of the caller's own")
}
