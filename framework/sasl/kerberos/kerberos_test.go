package kerberos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework/sasl"
)

// file writes a file of a test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

const plain = `includedir /nowhere
[libdefaults]
  default_realm = EXAMPLE.ORG
  unheard_of = yes
[realms]
  EXAMPLE.ORG = {
    kdc = 127.0.0.1:1
  }
[domain_realm]
  .other.org = OTHER.ORG
`

// names answers as a DNS with these records, both ways.
func names(addrs, hosts map[string]string) Option {
	answer := func(records map[string]string) func(context.Context, string) ([]string, error) {
		return func(_ context.Context, of string) ([]string, error) {
			if name, ok := records[of]; ok {
				return []string{name}, nil
			}
			return nil, &net.DNSError{Name: of, IsNotFound: true}
		}
	}
	return func(o *options) { o.lookupAddr, o.lookupHost = answer(addrs), answer(hosts) }
}

func TestPrincipalOfAServer(t *testing.T) {
	conf := ConfigFile(file(t, "krb5.conf", plain))
	known := names(map[string]string{"10.0.0.1": "ZK1.example.org.", "10.0.0.2": "liar.example.org."},
		map[string]string{"ZK1.example.org": "10.0.0.1", "liar.example.org": "10.0.0.9", "zk": "10.0.0.1"})
	for name, tc := range map[string]struct {
		opts       []Option
		host, addr string
		want       string
	}{
		"canonical":                 {nil, "zk", "10.0.0.1:2181", "zookeeper/zk1.example.org@EXAMPLE.ORG"},
		"of an address":             {nil, "10.0.0.1", "10.0.0.1:2181", "zookeeper/zk1.example.org@EXAMPLE.ORG"},
		"the name was dialed":       {nil, "zk", "zk:2181", "zookeeper/zk1.example.org@EXAMPLE.ORG"},
		"not known to DNS":          {nil, "ZK", "10.0.0.3:2181", "zookeeper/zk@EXAMPLE.ORG"},
		"DNS does not say the same": {nil, "zk", "10.0.0.2:2181", "zookeeper/zk@EXAMPLE.ORG"},
		"as written":                {[]Option{HostsAsWritten()}, "10.0.0.1", "10.0.0.1:2181", "zookeeper/10.0.0.1@EXAMPLE.ORG"},
		"another service":           {[]Option{Service("zk")}, "zk", "10.0.0.1:2181", "zk/zk1.example.org@EXAMPLE.ORG"},
		"another realm":             {nil, "zk.other.org", "10.0.0.3:2181", "zookeeper/zk.other.org@OTHER.ORG"},
		"one for all":               {[]Option{ServerPrincipal("zookeeper/all")}, "zk", "10.0.0.1:2181", "zookeeper/all@EXAMPLE.ORG"},
		"one for all, of a realm":   {[]Option{ServerPrincipal("zookeeper/all@OTHER.ORG")}, "zk", "10.0.0.1:2181", "zookeeper/all@OTHER.ORG"},
	} {
		m := newMechanism(nil, append([]Option{conf, known}, tc.opts...))
		c, err := m.opts.load()
		require.NoError(t, err)
		p := m.opts.principalOf(t.Context(), c, sasl.Server{Host: tc.host, Addr: tc.addr}, "EXAMPLE.ORG")
		assert.Equal(t, tc.want, p.String(), name)
	}
}

// What is wrong with files is a refusal at once, and not a network that is to be tried
// again. None of it has a key.
func TestBadFiles(t *testing.T) {
	conf := ConfigFile(file(t, "krb5.conf", plain))
	missing := filepath.Join(t.TempDir(), "missing")
	for want, m := range map[string]sasl.Mechanism{
		"open " + missing + ": no such file or directory":                           Keytab(missing, "alice", ConfigFile(missing)),
		"keytab: open " + missing + ": no such file or directory":                   Keytab(missing, "alice", conf),
		"credential cache: open " + missing + ": no such file or directory: kinit ": CredentialCache("FILE:"+missing, conf),
		"is no keytab":                            Keytab(file(t, "k", "\x05\x02\x00\x00\x00\x40hunter2"), "alice", conf),
		"is no credential cache":                  CredentialCache(file(t, "c", "\x05\x04\x00\x0chunter2"), conf),
		"the principal is empty":                  Keytab(missing, "", conf),
		"the principal alice has no realm":        Keytab(missing, "alice", ConfigFile(file(t, "k", "[libdefaults]\n"))),
		"is of the kind KEYRING, and only files ": CredentialCache("KEYRING:persistent:0", conf),
		"option is nil":                           Keytab(missing, "alice", conf, nil),
	} {
		_, err := m.Begin(t.Context(), sasl.Server{Host: "zk", Addr: "127.0.0.1:2181"})
		require.ErrorContains(t, err, want)
		var network net.Error
		assert.False(t, errors.As(err, &network), "%v", err)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

// A KDC that cannot be reached is tried again, as the network is.
func TestNoKDC(t *testing.T) {
	keys, err := keysOf(t, alice, "hunter2", 18).Marshal()
	require.NoError(t, err)
	_, err = Keytab(file(t, "k", string(keys)), "alice", ConfigFile(file(t, "krb5.conf", plain))).
		Begin(t.Context(), sasl.Server{Host: "zk", Addr: "127.0.0.1:2181"})
	require.ErrorContains(t, err, "the KDC of EXAMPLE.ORG: ")
	var network net.Error
	assert.ErrorAs(t, err, &network)
}

func TestMechanismsDoNotPrint(t *testing.T) {
	conf := ConfigFile(file(t, "krb5.conf", plain))
	for want, m := range map[string]sasl.Mechanism{
		"GSSAPI:alice@EXAMPLE.ORG": Keytab("k", "alice", conf),
		"GSSAPI:bob@B":             Keytab("k", "bob@B", ConfigFile("missing"), conf),
		"GSSAPI:":                  CredentialCache("missing", conf),
	} {
		assert.Equal(t, "GSSAPI", m.Name())
		assert.Equal(t, want, m.Name()+":"+m.User())
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			assert.Equal(t, want, fmt.Sprintf(verb, m))
		}
		text, err := json.Marshal(struct{ M sasl.Mechanism }{m})
		require.NoError(t, err)
		assert.JSONEq(t, `{"M":"`+want+`"}`, string(text))
	}
}
