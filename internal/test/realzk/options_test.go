//go:build unix

package realzk

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOptionsDefaults(t *testing.T) {
	o, err := Options{}.withDefaults()
	require.NoError(t, err)
	assert.Equal(t, 1, o.Servers)
	assert.Equal(t, 500*time.Millisecond, o.Tick)
	assert.Equal(t, 20, o.InitLimit, "ten seconds")
	o, err = Options{Tick: 2 * time.Second}.withDefaults()
	require.NoError(t, err)
	assert.Equal(t, 10, o.InitLimit)
}

func TestOptionsRefused(t *testing.T) {
	for _, tc := range []struct {
		opts Options
		says string
	}{
		{Options{Servers: 2}, "Servers is 2"},
		{Options{Servers: -1}, "Servers is -1"},
		{Options{Servers: 7}, "Servers is 7"},
		{Options{Servers: 3, Observers: 3}, "Observers is 3 of 3"},
		{Options{Servers: 3, Observers: -1}, "Observers is -1 of 3"},
		{Options{Tick: -1}, "Tick is -1ns"},
		{Options{MinSessionTimeout: time.Microsecond}, "MinSessionTimeout is 1µs"},
		{Options{MaxSessionTimeout: -time.Second}, "MaxSessionTimeout is -1s"},
		{Options{SyncLimit: -1}, "SyncLimit -1"},
		{Options{Partitions: true}, "standalone"},
	} {
		_, err := tc.opts.withDefaults()
		assert.ErrorContains(t, err, tc.says)
	}
}

func TestConfig(t *testing.T) {
	o, err := Options{
		Servers: 3, MaxSessionTimeout: time.Minute,
		Properties: map[string]string{"maxClientCnxns": "7", "snapCount": "9"},
	}.withDefaults()
	require.NoError(t, err)
	peers := []endpoints{{"127.0.0.1:21", "127.0.0.1:31", 11}, {"127.0.0.1:22", "127.0.0.1:32", 12}, {"127.0.0.1:23", "127.0.0.1:33", 13}}
	assert.Equal(t, `4lw.commands.whitelist=*
admin.enableServer=false
clientPort=11
clientPortAddress=127.0.0.1
dataDir=/d
initLimit=20
maxClientCnxns=7
maxSessionTimeout=60000
server.1=127.0.0.1:21:31
server.2=127.0.0.1:22:32
server.3=127.0.0.1:23:33
snapCount=9
syncLimit=20
tickTime=500
`, o.config("/d", memberPorts{client: 11, secure: 41}, peers))
}

func TestConfigThatCanBeChanged(t *testing.T) {
	config := Options{Servers: 3, TLS: true, Reconfig: true}.config("/d", memberPorts{client: 11, secure: 41}, []endpoints{{"127.0.0.1:21", "127.0.0.1:31", 11}})
	assert.Contains(t, config, "server.1=127.0.0.1:21:31;127.0.0.1:11\n")
	assert.NotContains(t, config, "secureClientPort")
}

func TestConfigOfObservers(t *testing.T) {
	o := Options{Servers: 3, Observers: 1, Reconfig: true}
	peers := []endpoints{{"127.0.0.1:21", "127.0.0.1:31", 11}, {"127.0.0.1:22", "127.0.0.1:32", 12}, {"127.0.0.1:23", "127.0.0.1:33", 13}}
	votes, observes := o.config("/d", memberPorts{client: 12}, peers), o.config("/d", memberPorts{client: 13}, peers)
	for _, config := range []string{votes, observes} {
		assert.Contains(t, config, "server.2=127.0.0.1:22:32;127.0.0.1:12\n")
		assert.Contains(t, config, "server.3=127.0.0.1:23:33:observer;127.0.0.1:13\n")
	}
	assert.NotContains(t, votes, "peerType")
	assert.Contains(t, observes, "peerType=observer\n")
}

func TestConfigWithTLS(t *testing.T) {
	config := Options{TLS: true}.config("/d", memberPorts{client: 11, secure: 41}, nil)
	assert.Contains(t, config, "clientPort=11\n")
	assert.Contains(t, config, "secureClientPort=41\nsecureClientPortAddress=127.0.0.1\n")
}

func TestDigestUsers(t *testing.T) {
	assert.Equal(t, `Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required
  user_bob="a \"b\""
  user_eve="c";
};
`, DigestUsers(map[string]string{"eve": "c", "bob": `a "b"`}))
}

func TestJavaArgs(t *testing.T) {
	o, err := Options{
		ReadOnlyMode: true, SuperPassword: "secret",
		JVMProperties: map[string]string{"zookeeper.forceSync": "yes", "a.b": "c"}, JVMArgs: []string{"-Xmx1g"},
	}.withDefaults()
	require.NoError(t, err)
	args := o.javaArgs("x.jar", "/d/zoo.cfg")
	assert.Subset(t, args, []string{
		"-Dzookeeper.forceSync=yes", "-Da.b=c", "-Dreadonlymode.enabled=true",
		// As printed by org.apache.zookeeper.server.auth.DigestAuthenticationProvider.
		"-Dzookeeper.DigestAuthenticationProvider.superDigest=super:lK75jTNcA+U9vtVEw5vB51mj/w4=",
	})
	assert.NotContains(t, args, "-Dzookeeper.forceSync=no")
	assert.Equal(t, []string{"-Xmx1g", "-cp", "x.jar", "org.apache.zookeeper.server.quorum.QuorumPeerMain", "/d/zoo.cfg"}, args[len(args)-5:])
}
