//go:build realzk

package conformance

import (
	"os"
	"testing"

	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework/sasl/kerberos"
	"github.com/paddock-zk/paddock/internal/test/realzk"
)

// TestKerberos is every case as a user of Kerberos. framework/sasl/kerberos adds this file to
// the suite, whose own module must not require that one. With -secrets nothing may tell the keys
// of the keytab, or a token.
func TestKerberos(t *testing.T) {
	keys, err := keytab.Load(os.Getenv("TEST_KEYTAB"))
	require.NoError(t, err)
	marks = append(marks, "\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02") // with which the tokens of Kerberos begin
	for _, entry := range keys.Entries {
		marks = append(marks, string(entry.Key.KeyValue))
	}
	alice := kerberos.Keytab(os.Getenv("TEST_KEYTAB"), "alice", kerberos.ConfigFile(os.Getenv("KRB5_CONFIG")),
		kerberos.ServerPrincipal("zookeeper/localhost")) // cases give servers other names
	onSecureEnsemble(t, "as a user of Kerberos", alice, realzk.Options{
		JAAS: os.Getenv("TEST_JAAS"), JVMProperties: map[string]string{"java.security.krb5.conf": os.Getenv("KRB5_CONFIG")},
	})
}
