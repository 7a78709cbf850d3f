//go:build realzk

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/realzk"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Clients in other languages, without special settings on their side, take a
// lock, hand it over, hear of a change, survive a disconnect and see an expiry.
func TestForeignClients(t *testing.T) {
	install, err := realzk.Find("")
	require.NoError(t, err)
	jars, err := install.With("slf4j-nop.jar", "curator-recipes.jar")
	require.NoError(t, err)
	java := []string{install.Java, "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", jars}
	for name, cmd := range map[string][]string{
		"kazoo":     {"/usr/bin/python3", "testdata/smoke.py"},
		"zookeeper": append(java[:len(java):len(java)], "testdata/Client.java"),
		"curator":   append(java[:len(java):len(java)], "testdata/Curator.java"),
	} {
		for _, n := range []string{"1", "3"} {
			t.Run(name+" on "+n, func(t *testing.T) { smoke(t, cmd, n) })
		}
	}
}

// Clients in other languages prove themselves by DIGEST-MD5. kazoo does so if pure-sasl is there.
func TestForeignClientsBySASL(t *testing.T) {
	install, err := realzk.Find("")
	require.NoError(t, err)
	jars, err := install.With("slf4j-nop.jar", "zookeeper.jar")
	require.NoError(t, err)
	srv := zktest.Start(t, zktest.SASLUsers(map[string]string{"bob": `se,cr"et`, "eve": "other"}))
	for name, cmd := range map[string][]string{
		"kazoo":     {"/usr/bin/python3", "testdata/sasl.py"},
		"zookeeper": {install.Java, "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", jars, "testdata/Sasl.java"},
	} {
		t.Run(name, func(t *testing.T) { script(t, cmd, srv.ConnectString()) })
	}
	t.Run("C", func(t *testing.T) { script(t, []string{cBySASL(t)}, srv.ConnectString(), t.TempDir()) })
}

// kazoo's own tests of SASL, but for those of Kerberos. kazoo takes itself for connected before
// it has proven itself. A refusal that comes before its start() has looked counts there as a
// time-out, so that such a test of theirs fails now and then. So refusals come later here.
func TestKazoosOwnTestsOfSASL(t *testing.T) {
	srv := zktest.Start(t, zktest.SASLUsers(map[string]string{"jaasuser": "jaas_password"}))
	srv.On(zktest.Match{Op: "sasl"}, zktest.Delay(100*time.Millisecond))
	script(t, []string{"/usr/bin/python3", "testdata/kazoo_own.py"}, srv.ConnectString())
}

// cBySASL builds a program with ZooKeeper's client in C, which .ci/c-client has built.
func cBySASL(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("ZK_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		require.NoError(t, err)
		cache = filepath.Join(user, "paddock-zookeeper")
	}
	built, program := filepath.Join(cache, "c"), filepath.Join(t.TempDir(), "sasl")
	out, err := exec.CommandContext(t.Context(), "gcc", "-DTHREADED", "-DHAVE_CYRUS_SASL_H", "-I", built, "-o", program,
		"testdata/sasl.c", filepath.Join(built, "libzookeeper.a"), "-lsasl2", "-lpthread", "-lm").CombinedOutput()
	require.NoError(t, err, "libsasl2-dev is needed, and what .ci/c-client makes\n%s", out)
	return program
}

// smoke runs a client's script against a cluster of n.
func smoke(t *testing.T, cmd []string, n string) {
	t.Helper()
	connect, control := start(t, "-members", n)
	script(t, cmd, connect, control)
}

// script runs a client's script, which says ok at its end.
func script(t *testing.T, cmd []string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out bytes.Buffer
	c := exec.CommandContext(ctx, cmd[0], append(cmd[1:len(cmd):len(cmd)], args...)...)
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	t.Logf("%s", &out)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(strings.TrimSpace(out.String()), "ok"))
}
