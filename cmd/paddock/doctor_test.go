package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

type shownHealth struct {
	Servers []struct {
		Address, Mode, Version, Error string
		Reached, Serves               bool
		Withheld                      bool    `json:"srvr_refused"`
		Write                         float64 `json:"write_seconds"`
	}
	Session struct {
		Granted float64 `json:"granted_seconds"`
		Least   float64 `json:"least_seconds"`
		Most    float64 `json:"most_seconds"`
	}
	Clock *struct {
		Ahead float64 `json:"ahead_seconds"`
	}
	Rights struct {
		At                   string
		Read, Create, Delete bool
	}
	Recommended struct {
		SessionTimeout float64 `json:"session_timeout_seconds"`
	}
	Problems []struct{ Text string }
}

func TestDoctorOfACluster(t *testing.T) {
	cluster := zktest.StartCluster(t, 3)
	s := &shell{Server: cluster.Member(0), env: map[string]string{"PADDOCK_SERVERS": cluster.ConnectString()}}
	h := decode[shownHealth](t, s.ok(t, "doctor", "--json", "/locks/orders"))
	require.Len(t, h.Servers, 3)
	modes := map[string]int{}
	for _, one := range h.Servers {
		assert.True(t, one.Reached)
		assert.True(t, one.Serves)
		assert.NotEmpty(t, one.Version)
		assert.Positive(t, one.Write)
		modes[one.Mode]++
	}
	assert.Equal(t, map[string]int{"leader": 1, "follower": 2}, modes)
	assert.InDelta(t, 15, h.Session.Granted, 0)
	assert.InDelta(t, 4, h.Session.Least, 0)
	assert.InDelta(t, 40, h.Session.Most, 0)
	require.NotNil(t, h.Clock)
	assert.InDelta(t, 0, h.Clock.Ahead, 5)
	assert.Equal(t, "/", h.Rights.At)
	assert.GreaterOrEqual(t, h.Recommended.SessionTimeout, 2.0)
	assert.Empty(t, h.Problems)

	out := s.ok(t, "doctor", "--namespace", "app")
	assert.Contains(t, out, "rights at /app: read yes, create yes, delete yes (it is not there: these are the rights at /)")
	assert.Contains(t, out, "no problems\n")
	assert.Equal(t, "zookeeper\n", s.ok(t, "ls"), "nothing is left")
}

func TestDoctorFindsProblems(t *testing.T) {
	s := newShell(t, zktest.FourLetterWords())
	owner := kit.Connect(t, s, func(cfg *framework.Config) {
		cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("me:secret")}}
	})
	_, err := owner.Create(t.Context(), "/mine", []byte{}, framework.Persistent, framework.ACLs(framework.ACL{Perms: 31, Scheme: "auth"}))
	require.NoError(t, err)
	_, err = owner.Create(t.Context(), "/readable", []byte{}, framework.Persistent, framework.ACLs(framework.ACL{Perms: 1, Scheme: "world", ID: "anyone"}))
	require.NoError(t, err)
	for _, tc := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"one server is down", []string{"--servers", s.ConnectString() + ",127.0.0.1:1"}, exitFailed, "127.0.0.1:1 cannot be reached"},
		{"all are", []string{"--servers", "127.0.0.1:1", "--timeout", "300ms"}, exitUnreachable, "no session could be had"},
		{"no rights", []string{"/mine/locks"}, exitRefused, "rights at /mine/locks: read no, create no, delete no"},
		{"the right to read", []string{"/readable"}, exitRefused, "read yes, create no, delete no"},
		{"no chroot", []string{"--servers", s.ConnectString() + "/nowhere"}, exitNotFound, "the chroot is not there"},
		{"a path that cannot be", []string{"locks"}, exitUsage, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, out, errs := s.run(t, append([]string{"doctor"}, tc.args...)...)
			assert.Equal(t, tc.code, code, "%s%s", out, errs)
			assert.Contains(t, out, tc.says)
			assert.NotContains(t, out, "no problems")
		})
	}
	assert.Contains(t, s.ok(t, "doctor", "--auth", "digest:me:secret", "/mine/locks"), "read yes, create yes, delete yes (it is not there: these are the rights at /mine)")
	assert.Contains(t, s.ok(t, "doctor"), "srvr is not in its 4lw.commands.whitelist")

	kit.Hold(t, locks.NewInterProcessMutex(s.client(t), "/held"))
	h := decode[shownHealth](t, s.ok(t, "doctor", "--json", "/held"))
	assert.True(t, h.Rights.Create)
	assert.Nil(t, h.Clock, "nothing is put into a queue")
}

// Slow servers are told, with the session timeout that they need.
func TestDoctorOfASlowNetwork(t *testing.T) {
	s := newShell(t)
	s.On(zktest.Match{Op: "multi"}, zktest.Delay(250*time.Millisecond))
	code, out, errs := s.run(t, "doctor", "--json", "--session-timeout", "4s", "--timeout", "30s")
	assert.Equal(t, exitFailed, code, errs)
	h := decode[shownHealth](t, out)
	assert.GreaterOrEqual(t, h.Recommended.SessionTimeout, 5.0)
	require.NotEmpty(t, h.Problems)
	assert.Contains(t, h.Problems[len(h.Problems)-1].Text, "the session timeout of 4s is too short")
}

func TestDoctorOfAServerWithTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"zk.test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	s := newShell(t, zktest.TLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}))

	out := s.ok(t, "doctor", "--tls-ca", ca, "--tls-server-name", "zk.test")
	assert.Contains(t, out, "standalone")
	code, out, _ := s.run(t, "doctor", "--tls-ca", ca, "--timeout", "2s")
	assert.Equal(t, exitUnreachable, code)
	assert.Contains(t, out, "certificate", "the wrong name")
}
