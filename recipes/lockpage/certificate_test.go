package lockpage_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/lockpage"
	zktest "github.com/paddock-zk/paddock/testing"
)

// The page shows which certificate the servers were shown, and until when it lasts.
func TestPageShowsTheCertificate(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "me", Organization: []string{"Example, Inc."}}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}, &x509.Certificate{}, private.Public(), private)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	cert := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	files := framework.TLSFiles{CA: filepath.Join(dir, "cert"), Certificate: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	require.NoError(t, os.WriteFile(files.Certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw}), 0o600))
	require.NoError(t, os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	srv := zktest.Start(t, zktest.TLS(&tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}))
	c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.TLSFiles = files })

	s := serve(t, lockpage.Handler(c))
	_, body := s.get("")
	assert.Contains(t, body, `<th scope="row">Certificate</th><td><code>CN=me,O=Example\, Inc.</code>, until `+leaf.NotAfter.UTC().Format(time.RFC3339))
	_, body = s.get("?format=json")
	var all struct {
		Certificate struct {
			Subject string
			Until   time.Time
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &all))
	assert.Equal(t, leaf.Subject.String(), all.Certificate.Subject)
	assert.Equal(t, leaf.NotAfter.UTC(), all.Certificate.Until)

	_, body = serve(t, lockpage.Handler(kit.Connect(t, zktest.Start(t)))).get("")
	assert.NotContains(t, body, "Certificate")
}
