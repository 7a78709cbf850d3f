package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs the program and returns what its first lines name.
func start(t *testing.T, args ...string) (connect, control string) {
	t.Helper()
	return startLogging(t, io.Discard, args...)
}

// startLogging is start with a place for the log.
func startLogging(t *testing.T, log io.Writer, args ...string) (connect, control string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"-listen", "127.0.0.1:0", "-control", "127.0.0.1:0"}, args...), w, log)
		_ = w.CloseWithError(fmt.Errorf("ended: %w", err))
		ended <- err
	}()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		require.NoError(t, <-ended)
	})
	lines := bufio.NewReader(out)
	line := func(prefix string) string {
		text, err := lines.ReadString('\n')
		require.NoError(t, err)
		rest, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
		require.True(t, ok, "%q", text)
		return rest
	}
	return line("listening on "), line("control on ")
}

func dial(t *testing.T, connect string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(strings.Split(connect, ","), 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		for range events { // its goroutines end a little after
		}
	})
	return conn
}

// exists asks until there is an answer: a connection may be on its way.
func exists(t *testing.T, conn *zk.Conn, path string) (there bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		there, _, err = conn.Exists(path)
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	return there
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// ask sends a command and returns the answer.
func ask(t *testing.T, method, control, path string, params ...string) (status int, answer string) {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(params); i += 2 {
		form.Set(params[i], params[i+1])
	}
	req, err := http.NewRequestWithContext(t.Context(), method, control+path+"?"+form.Encode(), nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(b)
}

// command is ask for one that succeeds.
func command(t *testing.T, control, path string, params ...string) {
	t.Helper()
	status, answer := ask(t, "POST", control, path, params...)
	require.Equal(t, 200, status, "%s: %s", path, answer)
}

func look[T any](t *testing.T, control, path string, params ...string) (v T) {
	t.Helper()
	status, answer := ask(t, "GET", control, path, params...)
	require.Equal(t, 200, status, answer)
	require.NoError(t, json.Unmarshal([]byte(answer), &v), answer)
	return v
}

func TestControl(t *testing.T) {
	connect, control := start(t, "-tick", "1s", "-transcript")
	conn := dial(t, connect)
	open := zk.WorldACL(zk.PermAll)
	_, err := conn.Create("/e", nil, zk.FlagEphemeral, open)
	require.NoError(t, err)
	_, _, made, err := conn.ExistsW("/w")
	require.NoError(t, err)

	all := look[[]map[string]any](t, control, "/sessions")
	require.Len(t, all, 1)
	id := all[0]["id"].(string)
	assert.Equal(t, fmt.Sprintf("%#x", conn.SessionID()), id)
	assert.Equal(t, []string{"/e"}, look[[]string](t, control, "/ephemerals", "session", id))
	assert.Equal(t, "exist", look[[]map[string]string](t, control, "/watches")[0]["kind"])
	_, err = conn.Create("/w", nil, 0, open)
	require.NoError(t, err)
	assert.Equal(t, zk.EventNodeCreated, (<-made).Type)
	assert.Equal(t, 1, look[zktest.Counters](t, control, "/counters").Ephemerals)
	assert.Equal(t, 2, look[map[string]int](t, control, "/requests")["create"])
	_, dump := ask(t, "GET", control, "/dump")
	assert.Contains(t, dump, `/e "" version 0 ephemeral of `+id)
	_, said := ask(t, "GET", control, "/transcript")
	assert.Contains(t, said, `create #`)

	rule := look[map[string]int](t, control, "/rules") // none
	assert.Empty(t, rule)
	status, answer := ask(t, "POST", control, "/rules", "op", "create", "path", "/cut", "fault", "cut-after")
	require.Equal(t, 200, status, answer)
	_, err = conn.Create("/cut", nil, 0, open)
	require.Error(t, err)
	assert.InDelta(t, 1, look[map[string]map[string]any](t, control, "/rules")["1"]["fired"], 0)
	command(t, control, "/rules/remove", "id", "1")
	assert.True(t, exists(t, conn, "/cut"), "applied")

	command(t, control, "/sequence", "parent", "/", "next", "2147483640")
	name, err := conn.Create("/s-", nil, zk.FlagSequence, open)
	require.NoError(t, err)
	assert.Equal(t, "/s-2147483640", name)
	command(t, control, "/stop")
	_, err = new(net.Dialer).DialContext(t.Context(), "tcp", connect)
	require.Error(t, err)
	command(t, control, "/restart")
	assert.True(t, exists(t, conn, "/e"), "sessions are kept")
	for _, path := range []string{"/freeze", "/thaw", "/refuse", "/accept", "/stall", "/unstall", "/sweep", "/heal"} {
		command(t, control, path)
	}
	command(t, control, "/advance", "by", "1s")
	command(t, control, "/move-clock", "by", "-1h")
	command(t, control, "/disconnect", "session", id)
	command(t, control, "/disconnect")
	command(t, control, "/expire", "session", id)
	command(t, control, "/reset")
	assert.Equal(t, 4, look[zktest.Counters](t, control, "/counters").Nodes)

	help := look[[]string](t, control, "/")
	assert.Greater(t, len(help), 25)
	for path, want := range map[string]string{
		"/expire?session=1": "no such session", "/expire": "session:", "/rules?fault=x": "fault:", "/rules?fault=delay": "by:",
		"/rules?fault=cut-before&path=[": "path:", "/stall?direction=up": "direction:", "/advance?by=-1s": "by:", "/freeze?member=1": "member:",
		"/rules/remove?id=9": "no rule", "/sequence?parent=/": "next:", "/lag?member=0": "by:",
		"/disconnect?sesion=1": "sesion: unknown parameter", "/rules?fault=cut-before&patch=/a": "patch: unknown parameter",
		"/stop?session=1": "session: unknown parameter", "/rules?fault=cut-before&op=get": `op: unknown operation \"get\"`, "/rules?fault=fail&code=101": "code:",
		"/rules?fault=cut-before&nth=-1": "nth: requests are counted from 1",
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", control+path, nil)
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		assert.GreaterOrEqual(t, res.StatusCode, 400, path)
		assert.Contains(t, string(b), want, path)
	}
}

// A client may send what this program's own never do, and is told of.
// A page of another site cannot command or read a server through a developer's browser.
func TestControlFromAnotherSite(t *testing.T) {
	_, control := start(t)
	port := strings.TrimPrefix(control, "http://127.0.0.1:")
	for name, c := range map[string]struct {
		method, path, host, origin, site string
		status                           int
	}{
		"curl":                      {"POST", "/freeze", "", "", "", 200},
		"localhost":                 {"POST", "/thaw", "localhost:" + port, "", "", 200},
		"a page of the same site":   {"POST", "/thaw", "localhost:" + port, "http://localhost:" + port, "same-origin", 200},
		"another site":              {"POST", "/reset", "", "http://another.example", "cross-site", 403},
		"another port":              {"POST", "/reset", "", "http://127.0.0.1:1", "same-site", 403},
		"an older browser":          {"POST", "/reset", "", "http://another.example", "", 403},
		"a name that leads here":    {"POST", "/reset", "another.example:" + port, "http://another.example:" + port, "same-origin", 403},
		"reading, by such a name":   {"GET", "/dump", "another.example:" + port, "", "", 403},
		"reading, by an IP address": {"GET", "/dump", "[::1]:" + port, "", "", 200},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, control+c.path, nil)
		require.NoError(t, err)
		req.Host = c.host
		for header, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
			if value != "" {
				req.Header.Set(header, value)
			}
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		var answer map[string]any
		if c.status != 200 {
			require.NoError(t, json.NewDecoder(res.Body).Decode(&answer), name)
			assert.NotEmpty(t, answer["error"], name)
		}
		res.Body.Close()
		assert.Equal(t, c.status, res.StatusCode, name)
	}
}

func TestTranscriptOfMultiRead(t *testing.T) {
	connect, control := start(t, "-transcript")
	nc, err := new(net.Dialer).DialContext(t.Context(), "tcp", connect)
	require.NoError(t, err)
	defer nc.Close()
	frames := wire.AppendFrame(nil, &wire.ConnectRequest{Timeout: 10000, Password: make([]byte, 16), HasReadOnly: true})
	frames = wire.AppendFrame(frames, &wire.RequestHeader{Xid: 1, Op: wire.OpMultiRead}, &wire.MultiRequest{
		Ops: []wire.MultiOp{{Op: wire.OpGetChildren, Request: &wire.PathWatchRequest{Path: "/"}}},
	})
	_, err = nc.Write(wire.AppendFrame(frames, &wire.RequestHeader{Xid: 2, Op: wire.OpCloseSession}))
	require.NoError(t, err)
	_, err = io.ReadAll(nc)
	require.NoError(t, err)
	_, said := ask(t, "GET", control, "/transcript")
	assert.Contains(t, said, `> multiRead #1 [getChildren Path="/"]`)
	assert.Contains(t, said, `[Op=getChildren Children=["zookeeper"]]`)
}

func TestVersionByFlag(t *testing.T) {
	for version, want := range map[string]string{"3.8": "3.8.0-zktest", "3.9": "3.9.6-zktest", "3.9.3": "3.9.3-zktest"} {
		connect, _ := start(t, "-version", version)
		nc, err := new(net.Dialer).DialContext(t.Context(), "tcp", connect)
		require.NoError(t, err)
		_, err = nc.Write([]byte("srvr"))
		require.NoError(t, err)
		answer, err := io.ReadAll(nc)
		require.NoError(t, err)
		nc.Close()
		assert.Contains(t, string(answer), "Zookeeper version: "+want+",")
	}
	err := run(t.Context(), []string{"-version", "3.4"}, io.Discard, io.Discard)
	require.ErrorContains(t, err, `version "3.4", want one of ["3.8.0" "3.9.3" "3.9.6"]`)
}

func TestClusterByFlags(t *testing.T) {
	connect, control := start(t, "-members", "3", "-tick", "200ms", "-read-only", "-4lw", "srvr,isro", "-no-ttl", "-reconfig", "-max-frame", "1000")
	assert.Len(t, strings.Split(connect, ","), 3)
	leader := look[map[string]int](t, control, "/leader")["leader"]
	next := (leader + 1) % 3
	command(t, control, "/elect", "member", fmt.Sprint(next))
	require.Eventually(t, func() bool { return look[map[string]int](t, control, "/leader")["leader"] == next }, 5*time.Second, 10*time.Millisecond)
	command(t, control, "/partition", "groups", "0|1,2")
	command(t, control, "/heal")
	command(t, control, "/lag", "member", "1", "by", "1ms")
	command(t, control, "/stop", "member", "0")
	command(t, control, "/restart", "member", "0")
	conn := dial(t, connect)
	_, err := conn.Create("/big", make([]byte, 2000), 0, zk.WorldACL(zk.PermAll))
	require.Error(t, err, "larger than -max-frame")
}

func TestFlagsThatMakeNoSense(t *testing.T) {
	for _, args := range [][]string{
		{"-tick", "-1s"}, {"word"}, {"-nonsense"}, {"-tls-cert", "nowhere", "-tls-key", "nowhere"}, {"-members", "0"}, {"-listen", "nowhere:x"},
		{"-listen", "127.0.0.1:0", "-control", "nowhere:x"}, {"-listen", "127.0.0.1:0", "-superuser", "super:secret"},
	} {
		assert.Error(t, run(t.Context(), args, io.Discard, io.Discard), "%v", args)
	}
}

func TestTLSByFlags(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"zk.test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	file := func(name, typ string, b []byte) string {
		name = filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: b}), 0o600))
		return name
	}
	cert, secret := file("cert.pem", "CERTIFICATE", der), file("key.pem", "PRIVATE KEY", keyDER)
	connect, _ := start(t, "-tls-cert", cert, "-tls-key", secret, "-tls-client-ca", cert)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	for _, with := range []bool{true, false} {
		cfg := &tls.Config{RootCAs: pool, ServerName: "zk.test", MinVersion: tls.VersionTLS12}
		if with {
			cfg.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
		}
		nc, err := (&tls.Dialer{Config: cfg}).DialContext(t.Context(), "tcp", connect)
		require.NoError(t, err)
		_, _ = nc.Write([]byte("ruok"))
		b, err := io.ReadAll(nc)
		nc.Close()
		if with {
			require.NoError(t, err)
		}
		assert.Equal(t, with, string(b) == "imok")
	}
}
