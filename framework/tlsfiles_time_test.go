package framework_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	zktest "github.com/paddock-zk/paddock/testing"
)

// filesIn writes the files of a client into a directory, as files that take the place of others.
func filesIn(t *testing.T, dir string, ca *authority, cert tls.Certificate) framework.TLSFiles {
	t.Helper()
	key, err := x509.MarshalECPrivateKey(cert.PrivateKey.(*ecdsa.PrivateKey))
	require.NoError(t, err)
	files := framework.TLSFiles{CA: filepath.Join(dir, "ca"), Certificate: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	for name, block := range map[string]*pem.Block{
		files.CA:          {Type: "CERTIFICATE", Bytes: ca.Certificate().Raw},
		files.Certificate: {Type: "CERTIFICATE", Bytes: cert.Certificate[0]},
		files.Key:         {Type: "EC PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(name+".new", pem.EncodeToMemory(block), 0o600))
		require.NoError(t, os.Rename(name+".new", name))
	}
	return files
}

// shows keeps whose certificates a server was shown.
type shows struct {
	mu    sync.Mutex
	names map[string]int
}

func (s *shows) verify(cs tls.ConnectionState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[cs.PeerCertificates[0].Subject.CommonName]++
	return nil
}

func TestCertificateExchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 20
		ca, dir := newAuthority(t), t.TempDir()
		seen := &shows{names: make(map[string]int)}
		server := serving(ca.issue("zk.test", 24*time.Hour))
		server.ClientAuth, server.ClientCAs, server.VerifyConnection = tls.RequireAndVerifyClientCert, ca.Pool(), seen.verify
		srv := zktest.Start(t, zktest.InMemory(), zktest.TLS(server))
		logged, logs := kit.Logged(zapcore.InfoLevel)
		cfg := named(nil, map[string]*zktest.Server{"zk.test:2281": srv})
		cfg.TLS, cfg.TLSFiles = nil, filesIn(t, dir, ca, ca.issue("first", 40*time.Minute))
		logged(&cfg)
		var all []*framework.Client
		var mu sync.Mutex
		lost := 0
		for range clients {
			c := kit.Dial(t, cfg)
			c.States().Listen(func(s listeners.State) {
				mu.Lock()
				defer mu.Unlock()
				if s == listeners.Suspended {
					lost++
				}
			})
			all = append(all, c)
		}
		time.Sleep(time.Second) // each has looked when the certificate ends
		assert.Equal(t, map[string]int{"first": clients}, seen.names)
		assert.Equal(t, "CN=first,O=Example\\, Inc.", all[0].Stats().Certificate.Subject)

		// A certificate without its key is half of an exchange.
		next := filesIn(t, t.TempDir(), ca, ca.issue("second", 12*time.Hour))
		require.NoError(t, os.Rename(next.Certificate, cfg.TLSFiles.Certificate))
		require.NoError(t, srv.Disconnect(all[0].SessionID()))
		synctest.Wait()
		require.NoError(t, all[0].BlockUntilConnected(t.Context()))
		assert.Equal(t, map[string]int{"first": clients + 1}, seen.names)
		assert.Equal(t, 1, logs.FilterMessageSnippet("not read again").Len())

		require.NoError(t, os.Rename(next.Key, cfg.TLSFiles.Key))
		time.Sleep(20 * time.Minute)
		for _, c := range all {
			require.NoError(t, c.Sync(t.Context(), "/"))
		}
		mu.Lock()
		assert.Equal(t, 1, lost, "the one that was disconnected")
		mu.Unlock()
		assert.Equal(t, map[string]int{"first": clients + 1}, seen.names)
		assert.Zero(t, logs.FilterMessageSnippet("ends soon").Len(), "the new one does not")

		time.Sleep(30 * time.Minute) // the first one has ended
		srv.DisconnectAll()
		synctest.Wait()
		for _, c := range all {
			require.NoError(t, c.BlockUntilConnected(t.Context()))
			assert.Equal(t, "CN=second,O=Example\\, Inc.", c.Stats().Certificate.Subject)
		}
		assert.Equal(t, map[string]int{"first": clients + 1, "second": clients}, seen.names)

		const few = 2 // hours of many take long
		for _, c := range all[few:] {
			require.NoError(t, c.Close())
		}
		time.Sleep(11 * time.Hour)
		assert.Equal(t, few, logs.FilterMessageSnippet("ends soon").Len(), "each client says so")
	})
}

// A certificate is said to end in the last fifth of its life, and two weeks before at most.
func TestCertificateEnds(t *testing.T) {
	const day = 24 * time.Hour
	for name, tc := range map[string]struct{ age, left, after time.Duration }{
		"90 days":               {75 * day, 15 * day, day},
		"90 days, ends soon":    {80 * day, 10 * day, 0},
		"101 days":              {81 * day, 20 * day, 6 * day},
		"20 days":               {10 * day, 10 * day, 6 * day},
		"a day":                 {0, day, 19*time.Hour + 12*time.Minute},
		"an hour":               {0, time.Hour, 48 * time.Minute},
		"3 hours":               {time.Hour, 2 * time.Hour, 84 * time.Minute},
		"has ended":             {2 * day, -day, 0},
		"ends while it is read": {day, time.Nanosecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca := newAuthority(t)
				logged, logs := kit.Logged(zapcore.WarnLevel)
				cfg := framework.Config{
					ConnectString: "a", TLSFiles: filesIn(t, t.TempDir(), ca, ca.issueOld("a", tc.age, tc.left)), SessionTimeout: 20 * time.Hour, ConnectTimeout: 10 * time.Hour,
					DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { // to dial for days would take long
						<-ctx.Done()
						return nil, ctx.Err()
					},
				}
				logged(&cfg)
				c, err := framework.Start(cfg)
				require.NoError(t, err)
				defer func() { _ = c.Close() }()
				said := func() int { return logs.FilterMessageSnippet("ends soon").Len() }
				if tc.after > 0 {
					time.Sleep(tc.after - time.Second)
					assert.Zero(t, said())
				}
				time.Sleep(2 * time.Second) // a certificate has whole seconds
				assert.Equal(t, 1, said())
				time.Sleep(23 * time.Hour)
				assert.Equal(t, 1, said())
				time.Sleep(2 * time.Hour)
				assert.Equal(t, 2, said(), "once a day")
			})
		})
	}
}

// A certificate that was read anew is checked at once, whatever was said of another.
func TestCertificateExchangedForOneThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, dir := newAuthority(t), t.TempDir()
		srv := zktest.Start(t, zktest.InMemory(), zktest.TLS(serving(ca.issue("zk.test", time.Hour))))
		logged, logs := kit.Logged(zapcore.WarnLevel)
		cfg := named(nil, map[string]*zktest.Server{"zk.test:2281": srv})
		cfg.TLS, cfg.TLSFiles = nil, filesIn(t, dir, ca, ca.issue("good", time.Hour))
		logged(&cfg)
		c := kit.Dial(t, cfg)
		for i, left := range []time.Duration{-time.Minute, time.Minute, 5 * time.Minute} {
			filesIn(t, dir, ca, ca.issue([]string{"one", "second", "and third"}[i], left)) // files of other sizes
			require.NoError(t, srv.Disconnect(c.SessionID()))
			synctest.Wait()
			require.NoError(t, c.BlockUntilConnected(t.Context()))
			synctest.Wait()
			assert.Equal(t, i+1, logs.FilterMessageSnippet("ends soon").Len())
		}
	})
}

// The servers' authority may be exchanged, too: the client connects again once its file has the new one.
func TestAuthorityExchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		former, next, dir := newAuthority(t), newAuthority(t), t.TempDir()
		server := serving(former.issue("zk.test", time.Hour))
		var renewed atomic.Bool
		certificate := next.issue("zk.test", time.Hour)
		server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if renewed.Load() {
				return serving(certificate), nil
			}
			return nil, nil //nolint:nilnil // the configuration as it is
		}
		srv := zktest.Start(t, zktest.InMemory(), zktest.TLS(server))
		cfg := named(nil, map[string]*zktest.Server{"zk.test:2281": srv})
		cfg.TLS, cfg.TLSFiles = nil, filesIn(t, dir, former, former.issue("own", time.Hour))
		c := kit.Dial(t, cfg)
		session := c.SessionID()

		renewed.Store(true)
		srv.DisconnectAll()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		synctest.Wait()
		require.ErrorContains(t, c.BlockUntilConnected(ctx), "unknown authority")
		filesIn(t, dir, next, former.issue("own", time.Hour))
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, c.BlockUntilConnected(ctx))
		assert.Equal(t, session, c.SessionID())
	})
}

func TestTLSFilesThatAreWrong(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	files := filesIn(t, dir, ca, ca.issue("a", time.Hour))
	for name, tc := range map[string]struct {
		files framework.TLSFiles
		want  string
	}{
		"no key":             {framework.TLSFiles{Certificate: files.Certificate}, "without a key"},
		"no file":            {framework.TLSFiles{CA: filepath.Join(dir, "none")}, "no such file"},
		"no authority":       {framework.TLSFiles{CA: files.Key}, "no certificate"},
		"no certificate":     {framework.TLSFiles{Certificate: files.Key, Key: files.Key}, "failed to find"},
		"a key of something": {framework.TLSFiles{Certificate: files.CA, Key: files.Key}, "does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := framework.Start(framework.Config{ConnectString: "a", TLSFiles: tc.files})
			require.ErrorContains(t, err, tc.want)
			assert.ErrorContains(t, err, "config: TLSFiles ")
		})
	}
}

// A key that a password protects, or a keystore of Java, is refused with what is wanted.
func TestKeysThatAreNoPEM(t *testing.T) {
	ca := newAuthority(t)
	files := filesIn(t, t.TempDir(), ca, ca.issue("a", time.Hour))
	for what, text := range map[string]string{
		"password": "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIF\n-----END ENCRYPTED PRIVATE KEY-----\n",
		"keystore": "\xfe\xed\xfe\xed",
	} {
		require.NoError(t, os.WriteFile(files.Key, []byte(text), 0o600))
		_, err := framework.Start(framework.Config{ConnectString: "a", TLSFiles: files})
		require.ErrorContains(t, err, files.Key+": tls: ", what)
		require.ErrorContains(t, err, "(both must be PEM, and no password may protect the key)", what)
	}
}
