package conformance

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
)

func clientFollowsEnsemble(e *env) {
	var mu sync.Mutex
	var dialed []string
	elsewhere := map[string]string{"elsewhere:2181": strings.Split(e.b.hosts(), ",")[0]}
	c := e.client(func(cfg *framework.Config) {
		cfg.FollowEnsemble = true
		dial := cfg.DialContext
		cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			mu.Lock()
			dialed = append(dialed, addr)
			mu.Unlock()
			if there := elsewhere[addr]; there != "" {
				addr = there
			}
			return dial(ctx, network, addr)
		}
	})
	super := e.client(func(cfg *framework.Config) {
		cfg.ConnectString = e.b.hosts()
		cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("super:" + superPassword)}}
	})
	const config = "/zookeeper/config"
	before, _, err := super.Get(e.soon(), config)
	require.NoError(e, err)
	defer func() {
		_, err := super.Set(e.soon(), config, before, framework.AnyVersion)
		require.NoError(e, err)
	}()
	old := c.Servers()

	for _, useless := range []string{"", "version=0", "server.1=elsewhere:2888:3888", "server.1=elsewhere:2888:3888;"} {
		_, err = super.Set(e.soon(), config, []byte(useless), framework.AnyVersion)
		require.NoError(e, err)
	}
	_, err = super.Set(e.soon(), config, []byte("server.1=elsewhere:2888:3888:participant;0.0.0.0:2181\nversion=100"), framework.AnyVersion)
	require.NoError(e, err)
	kit.Until(e, "the new list is known", func() bool { return slices.Equal(c.Servers(), []string{"elsewhere:2181"}) })
	id := c.SessionID()
	c.net.CutAll()
	require.NoError(e, c.Sync(e.soon(), "/"))
	assert.Equal(e, id, c.SessionID(), "the session goes on there")
	mu.Lock()
	assert.Equal(e, "elsewhere:2181", dialed[len(dialed)-1])
	mu.Unlock()

	c.expire()
	kit.Until(e, "a new session", func() bool { return c.SessionID() != id && c.SessionID() != 0 })
	_, err = super.Set(e.soon(), config, []byte(configOf(old)), framework.AnyVersion)
	require.NoError(e, err)
	slices.Sort(old)
	kit.Until(e, "it follows in the new session as well", func() bool {
		now := c.Servers()
		slices.Sort(now)
		return slices.Equal(now, old)
	})
}

// configOf is a configuration with these client addresses.
func configOf(addrs []string) string {
	var b strings.Builder
	for i, addr := range addrs {
		b.WriteString("server." + string(rune('1'+i)) + "=x:2888:3888:participant;" + addr + "\n")
	}
	return b.String()
}

func writeCompressed(e *env) {
	c := e.client()
	text := bytes.Repeat([]byte("some text "), 200_000) // more than a node can hold
	path, err := c.Create(e.soon(), "/text", text, framework.Persistent, framework.Compressed(), framework.Idempotent())
	require.NoError(e, err)
	_, err = c.Create(e.soon(), "/text", text, framework.Persistent, framework.Compressed(), framework.Idempotent())
	require.NoError(e, err, "it is as intended")
	raw, _, err := c.Get(e.soon(), path)
	require.NoError(e, err)
	assert.Less(e, len(raw), 20_000)
	data, stat, err := c.Get(e.soon(), path, framework.Compressed())
	require.NoError(e, err)
	assert.Equal(e, text, data)
	assert.Equal(e, int32(len(raw)), stat.DataLength, "as on the server")

	_, err = c.Create(e.soon(), path, []byte("other"), framework.Persistent, framework.Compressed(), framework.OrSet())
	require.NoError(e, err)
	data, stat, w, err := c.GetW(e.soon(), path, framework.Compressed())
	require.NoError(e, err)
	assert.Equal(e, "other", string(data))
	_, err = c.Set(e.soon(), path, nil, stat.Version, framework.Compressed(), framework.Idempotent())
	require.NoError(e, err)
	assert.Equal(e, framework.NodeDataChanged, e.event(w).Type)
	data, _, err = c.Get(e.soon(), path, framework.Compressed())
	require.NoError(e, err)
	assert.Empty(e, data)

	_, err = c.Set(e.soon(), path, []byte("plain"), framework.AnyVersion)
	require.NoError(e, err)
	_, _, err = c.Get(e.soon(), path, framework.Compressed())
	require.Error(e, err, "what is not compressed is refused")
	var op *framework.OpError
	require.ErrorAs(e, err, &op)
	assert.Equal(e, e.chroot+"/text", op.Path)
	_, _, _, err = c.GetW(e.soon(), path, framework.Compressed())
	require.Error(e, err)
	kit.Eventually(e, "and leaves no watch", func() error { return emptyOr(e.b.watches(e, e.chroot)) })
	_, _, err = c.Get(e.soon(), path, nil)
	require.ErrorIs(e, err, framework.ErrInvalidArgument)

	own := e.client(func(cfg *framework.Config) { cfg.Compression, cfg.DefaultData = reverse{}, []byte("abc") })
	path, err = own.Create(e.soon(), "/own", nil, framework.Persistent, framework.Compressed())
	require.NoError(e, err)
	raw, _, err = c.current().Get(e.soon(), path)
	require.NoError(e, err)
	assert.Equal(e, "cba", string(raw), "default data as well")
	data, _, err = own.Get(e.soon(), path, framework.Compressed())
	require.NoError(e, err)
	assert.Equal(e, "abc", string(data))
	_, err = own.Set(e.soon(), "/own", []byte("!"), framework.AnyVersion, framework.Compressed())
	require.ErrorIs(e, err, errBad)
	_, err = own.Create(e.soon(), "/own2", []byte("!"), framework.Persistent, framework.Compressed())
	require.ErrorIs(e, err, errBad)
}

// reverse is a caller's own compression.
type reverse struct{}

var errBad = errors.New("bad data")

func (reverse) Compress(_ string, data []byte) ([]byte, error) {
	if string(data) == "!" {
		return nil, errBad
	}
	data = slices.Clone(data)
	slices.Reverse(data)
	return data, nil
}

func (r reverse) Decompress(path string, data []byte) ([]byte, error) { return r.Compress(path, data) }
