//go:build realzk

package conformance

import (
	"os"
	"testing"

	"github.com/paddock-zk/paddock/framework/sasl/kerberos"
	"github.com/paddock-zk/paddock/internal/test/realzk"
)

// TestKerberos is every case as a user of Kerberos. framework/sasl/kerberos adds this file to
// the suite, whose own module must not require that one.
func TestKerberos(t *testing.T) {
	alice := kerberos.Keytab(os.Getenv("TEST_KEYTAB"), "alice", kerberos.ConfigFile(os.Getenv("KRB5_CONFIG")),
		kerberos.ServerPrincipal("zookeeper/localhost")) // cases give servers other names
	onSecureEnsemble(t, "as a user of Kerberos", alice, realzk.Options{
		JAAS: os.Getenv("TEST_JAAS"), JVMProperties: map[string]string{"java.security.krb5.conf": os.Getenv("KRB5_CONFIG")},
	})
}
