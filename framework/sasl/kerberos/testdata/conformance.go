//go:build realzk

package conformance

import (
	"os"
	"testing"
	"time"

	"github.com/paddock-zk/paddock/framework/sasl/kerberos"
	"github.com/paddock-zk/paddock/internal/test/realzk"
)

// TestKerberos is every case as a user of Kerberos. framework/sasl/kerberos adds this file to
// the suite, whose own module must not require that one.
func TestKerberos(t *testing.T) {
	mechanism = kerberos.Keytab(os.Getenv("TEST_KEYTAB"), "alice", kerberos.ConfigFile(os.Getenv("KRB5_CONFIG")),
		kerberos.ServerPrincipal("zookeeper/localhost")) // cases give servers other names
	run(t, "one real ZooKeeper, as a user of Kerberos", realZooKeeper{realzk.StartT(t, realzk.Options{
		Tick: 200 * time.Millisecond, SuperPassword: superPassword,
		Properties:    map[string]string{"authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"},
		JVMProperties: map[string]string{"java.security.auth.login.config": os.Getenv("TEST_JAAS"), "java.security.krb5.conf": os.Getenv("KRB5_CONFIG")},
	})})
}
