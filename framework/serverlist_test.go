package framework

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServersInFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "servers")
	for text, want := range map[string][]string{
		"a:2181,b:2182":        {"a:2181", "b:2182"},
		"a\r\nb:2182\n\n[::1]": {"a:2181", "b:2182", "[::1]:2181"},
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		servers, err := ServersInFile(file)(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, servers)
	}
	for text, want := range map[string]string{
		"":         "file " + file + " is empty",
		"a:2181/b": "file " + file + " has a chroot",
		"a b":      "file " + file + ` server "a b": has a character`,
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := ServersInFile(file)(t.Context())
		require.ErrorContains(t, err, want)
	}
	_, err := ServersInFile(file + ".none")(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestServersBySRV(t *testing.T) {
	servers, err := serversBySRV("_client._tcp.zk", func(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
		assert.Equal(t, "_client._tcp.zk", service+proto+name)
		return name, []*net.SRV{{Target: "zk-0.zk.", Port: 2181}, {Target: "zk-1.zk.", Port: 2182}, {Target: "."}}, nil
	})(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"zk-0.zk:2181", "zk-1.zk:2182"}, servers)
}

func TestServerListExcludesFollowEnsemble(t *testing.T) {
	_, err := Start(Config{ConnectString: "a", FollowEnsemble: true, ServerList: ServersBySRV("b")})
	require.EqualError(t, err, "config: ServerList and FollowEnsemble exclude each other")
}
