//go:build realzk

package kerberos_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const realm = "EXAMPLE.ORG"

// kdc is MIT's KDC on loopback, of Debian's packages krb5-kdc, krb5-admin-server and
// krb5-user.
type kdc struct {
	dir, conf string
	env       []string
}

// startKDC starts the KDC of a realm that has nobody in it yet.
func startKDC(t *testing.T) *kdc {
	t.Helper()
	k := &kdc{dir: t.TempDir()}
	k.conf = k.file("krb5.conf")
	k.env = append(os.Environ(), "KRB5_CONFIG="+k.conf, "KRB5_KDC_PROFILE="+k.file("kdc.conf"))
	k.listenAt(t)
	k.run(t, "", "kdb5_util", "create", "-s", "-r", realm, "-P", "master")
	for range 5 { // somebody else may take the port first
		if k.start(t) {
			return k
		}
		k.listenAt(t)
	}
	require.FailNow(t, "the KDC does not start", "krb5-kdc is needed\n%s", k.log(t))
	return nil
}

// listenAt chooses a port and writes it into the configuration.
func (k *kdc) listenAt(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // only for a port
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	k.write(t, "krb5.conf", `[libdefaults]
  default_realm = %[1]s
  dns_lookup_realm = false
  dns_lookup_kdc = false
  udp_preference_limit = 1
[realms]
  %[1]s = {
    kdc = %[2]s
  }
`, realm, addr)
	k.write(t, "kdc.conf", `[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = %[2]s
[realms]
  %[1]s = {
    database_name = %[3]s/principals
    key_stash_file = %[3]s/stash
    acl_file = %[3]s/acl
    max_life = 1d
    max_renewable_life = 7d
  }
[logging]
  kdc = FILE:%[3]s/kdc.log
  default = FILE:%[3]s/kdc.log
`, realm, addr, k.dir)
}

// start runs the KDC until the test ends, and returns whether it serves.
func (k *kdc) start(t *testing.T) bool {
	t.Helper()
	cmd := exec.Command(tool("krb5kdc"), "-n", "-P", k.file("pid")) //nolint:noctx // it is killed below
	cmd.Env = k.env
	require.NoError(t, cmd.Start(), "krb5-kdc is needed")
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !strings.Contains(k.log(t), "commencing operation") {
		select {
		case <-ended:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			lines := strings.SplitAfter(k.log(t), "\n")
			t.Logf("log of the KDC, its end:\n%s", strings.Join(lines[max(0, len(lines)-20):], ""))
		}
	})
	return true
}

func (k *kdc) file(name string) string { return filepath.Join(k.dir, name) }

func (k *kdc) write(t *testing.T, name, format string, args ...any) string {
	t.Helper()
	require.NoError(t, os.WriteFile(k.file(name), fmt.Appendf(nil, format, args...), 0o600))
	return k.file(name)
}

// tool is a program, also where PATH lacks what is for root.
func tool(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return "/usr/sbin/" + name
}

// run runs a program of Kerberos.
func (k *kdc) run(t *testing.T, input, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(name), args...)
	cmd.Env, cmd.Stdin = k.env, strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s: krb5-kdc, krb5-admin-server and krb5-user are needed\n%s", name, strings.Join(args, " "), out)
	return string(out)
}

// status runs a program that tells by its status.
func (k *kdc) status(t *testing.T, name string, args ...string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(name), args...)
	cmd.Env = k.env
	return cmd.Run()
}

// admin changes principals.
func (k *kdc) admin(t *testing.T, commands ...string) {
	t.Helper()
	out := k.run(t, strings.Join(commands, "\n")+"\n", "kadmin.local", "-r", realm)
	assert.NotContains(t, out, "while", "%s", out) // as in "No such file while adding key"
}

// principal adds a principal with a random key, and returns a keytab.
func (k *kdc) principal(t *testing.T, name, flags string) (keytab string) {
	t.Helper()
	keytab = k.file(strings.ReplaceAll(name, "/", "-") + ".keytab")
	k.admin(t, "addprinc -randkey +requires_preauth "+flags+" "+name, "ktadd -k "+keytab+" "+name)
	return keytab
}

func (k *kdc) log(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(k.file("kdc.log"))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	return string(text)
}

// issued is how many tickets the KDC has given to a client for a server, when asked by
// AS_REQ or TGS_REQ.
func (k *kdc) issued(t *testing.T, request, client, server string) (n int) {
	t.Helper()
	for line := range strings.Lines(k.log(t)) {
		if strings.Contains(line, request) && strings.Contains(line, "ISSUE") && strings.Contains(line, fmt.Sprintf(" %s@%s for %s@%s", client, realm, server, realm)) {
			n++
		}
	}
	return n
}
