package lockpage_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
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
	site := httptest.NewTLSServer(nil)
	cert, leaf := site.TLS.Certificates[0], site.Certificate()
	site.Close()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	files := framework.TLSFiles{CA: filepath.Join(dir, "cert"), Certificate: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	require.NoError(t, os.WriteFile(files.Certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw}), 0o600))
	require.NoError(t, os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	srv := zktest.Start(t, zktest.TLS(&tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}))
	c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.TLSFiles = files })

	s := serve(t, lockpage.Handler(c))
	_, body := s.get("")
	assert.Contains(t, body, `<th scope="row">Certificate</th><td><code>`+leaf.Subject.String()+`</code>, until `+leaf.NotAfter.UTC().Format(time.RFC3339))
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
