package conformance

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/retry"
)

func createModes(e *env) {
	c := e.client()
	for mode, want := range map[framework.Mode]string{
		framework.Persistent:           "^/n0$",
		framework.PersistentSequential: `^/n1\d{10}$`,
		framework.Ephemeral:            "^/n2$",
		framework.EphemeralSequential:  `^/n3\d{10}$`,
		framework.Container:            "^/n4$",
	} {
		path, err := c.Create(e.soon(), "/n"+string(rune('0'+mode)), []byte("x"), mode)
		require.NoError(e, err)
		assert.Regexp(e, want, path)
		data, stat, err := c.Get(e.soon(), path)
		require.NoError(e, err)
		assert.Equal(e, "x", string(data))
		if mode == framework.Ephemeral || mode == framework.EphemeralSequential {
			assert.Equal(e, c.SessionID(), stat.EphemeralOwner)
		}
	}
	path, err := c.Create(e.soon(), "/n4/", nil, framework.PersistentSequential)
	require.NoError(e, err, "the name is the number alone")
	assert.Regexp(e, `^/n4/\d{10}$`, path)
}

func createParents(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/a/b/c/d", nil, framework.Persistent)
	require.ErrorIs(e, err, framework.ErrNoNode)
	assert.Empty(e, e.children(""), "nothing was made")
	path, err := c.Create(e.soon(), "/a/b/c/d", nil, framework.Persistent, framework.Parents())
	require.NoError(e, err)
	assert.Equal(e, "/a/b/c/d", path)
	assert.Equal(e, 3, c.net.Requests()[wire.OpCreateContainer])

	plain := e.client(func(cfg *framework.Config) { cfg.NoContainers = true })
	_, err = plain.Create(e.soon(), "/p/q", nil, framework.Persistent, framework.Parents())
	require.NoError(e, err)
	assert.Zero(e, plain.net.Requests()[wire.OpCreateContainer])
}

func createNamespace(e *env) {
	c := e.client(func(cfg *framework.Config) { cfg.Namespace = "ns/app" })
	path, err := c.Create(e.soon(), "/a", nil, framework.Persistent)
	require.NoError(e, err, "the namespace's node is made")
	assert.Equal(e, "/a", path)
	assert.Equal(e, []string{"a"}, e.children("/ns/app"))
	_, err = c.Create(e.soon(), "/x/y", nil, framework.Persistent)
	require.ErrorIs(e, err, framework.ErrNoNode, "but no others")
	assert.ErrorContains(e, err, e.chroot+"/ns/app/x/y")

	other := c.UsingNamespace("other")
	path, err = other.Create(e.soon(), "/p", nil, framework.EphemeralSequential, framework.Protected())
	require.NoError(e, err)
	assert.True(e, strings.HasPrefix(path, "/_c_"), path)
	assert.Len(e, e.children("/other"), 1)
	assert.Error(e, other.Close(), "it does not own the session")
	none := c.UsingNamespace("")
	names, _, err := none.Children(e.soon(), "/")
	require.NoError(e, err)
	assert.ElementsMatch(e, []string{"ns", "other"}, names)
	_, _, err = c.UsingNamespace("a//b").Get(e.soon(), "/x")
	assert.ErrorIs(e, err, framework.ErrInvalidPath)
}

func createRefusals(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/a", nil, framework.Ephemeral)
	require.NoError(e, err)
	for _, tc := range []struct {
		path string
		mode framework.Mode
		opts []framework.CreateOption
		want error
	}{
		{"/a", framework.Persistent, nil, framework.ErrNodeExists},
		{"/a/b", framework.Persistent, nil, framework.ErrNoChildrenForEphemerals},
		{"/a/b/c", framework.Persistent, []framework.CreateOption{framework.Parents()}, framework.ErrNoChildrenForEphemerals},
		{"/x", framework.Persistent, []framework.CreateOption{framework.ACLs()}, framework.ErrInvalidACL},
		{"/x", framework.Mode(99), nil, framework.ErrInvalidArgument},
		{"/x", framework.Ephemeral, []framework.CreateOption{framework.TTL(time.Second)}, framework.ErrInvalidArgument},
		{"/x", framework.Persistent, []framework.CreateOption{framework.TTL(0)}, framework.ErrInvalidArgument},
		{"/x", framework.PersistentSequential, []framework.CreateOption{framework.OrSet()}, framework.ErrInvalidArgument},
		{"/x", framework.PersistentSequential, []framework.CreateOption{framework.Idempotent()}, framework.ErrInvalidArgument},
		{"/x", framework.Persistent, []framework.CreateOption{nil}, framework.ErrInvalidArgument},
		{"relative", framework.Persistent, nil, framework.ErrInvalidPath},
	} {
		path, err := c.Create(e.soon(), tc.path, nil, tc.mode, tc.opts...)
		assert.ErrorIs(e, err, tc.want, tc.path)
		assert.Empty(e, path)
		var op *framework.OpError
		require.ErrorAs(e, err, &op)
		assert.Equal(e, "create", op.Op)
	}
	assert.Equal(e, []string{"a"}, e.children(""), "nothing changed")
}

var protectedName = regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-`)

func createProtected(e *env) {
	c := e.client()
	for _, mode := range []framework.Mode{framework.Persistent, framework.PersistentSequential, framework.Ephemeral, framework.EphemeralSequential} {
		path, err := c.Create(e.soon(), "/p/node-", nil, mode, framework.Protected(), framework.Parents())
		require.NoError(e, err)
		_, node := framework.PathAndNode(path)
		assert.Regexp(e, protectedName, node)
		assert.Contains(e, node, "-node-")
	}
	path, err := c.Create(e.soon(), "/top", nil, framework.Ephemeral, framework.Protected())
	require.NoError(e, err, "below the root as well")
	assert.Regexp(e, protectedName, path[1:])
}

func createProtectedReplyLost(e *env) {
	for _, mode := range []framework.Mode{framework.Ephemeral, framework.EphemeralSequential, framework.PersistentSequential} {
		c := e.client()
		lost := c.net.LoseReply(wire.OpCreate, 1)
		path, err := c.Create(e.soon(), "/n-", nil, mode, framework.Protected())
		require.NoError(e, err)
		e.fired(lost)
		names := e.children("")
		require.Len(e, names, 1, "found, not made twice")
		assert.Equal(e, path, "/"+names[0])
		require.NoError(e, c.Delete(e.soon(), path, 0))

		cut := c.net.CutBefore(wire.OpCreate, 1)
		path, err = c.Create(e.soon(), "/n-", nil, mode, framework.Protected())
		require.NoError(e, err)
		e.fired(cut)
		assert.Equal(e, []string{path[1:]}, e.children(""))
		require.NoError(e, c.Delete(e.soon(), path, 0))
	}
}

func createProtectedGivenUp(e *env) {
	c := e.client(func(cfg *framework.Config) { cfg.Retry = retry.None() })
	lost := c.net.LoseReply(wire.OpCreate, 1)
	_, err := c.Create(e.soon(), "/n-", nil, framework.EphemeralSequential, framework.Protected())
	require.ErrorIs(e, err, framework.ErrOutcomeUnknown)
	e.fired(lost)
	kit.Eventually(e, "it is cleaned up", func() error { return emptyOr(e.children("")) })

	ctx, cancel := context.WithCancel(e.Context())
	c.net.Freeze()
	failed := make(chan error, 1)
	go func() {
		_, err := c.Create(ctx, "/n-", nil, framework.PersistentSequential, framework.Protected())
		failed <- err
	}()
	kit.Until(e, "the request is on its way", func() bool { return c.net.Held() > 0 })
	cancel()
	err = <-failed
	require.ErrorIs(e, err, context.Canceled)
	assert.True(e, framework.Ambiguous(err))
	c.net.Thaw()
	kit.Eventually(e, "it is cleaned up", func() error { return emptyOr(e.children("")) })
}

func createProtectedSessionOver(e *env) {
	c := e.client()
	sub := c.States().Subscribe()
	defer sub.Stop()
	old := c.SessionID()
	lost := c.net.LoseReply(wire.OpCreate, 1)
	c.net.Refuse()
	made := make(chan error, 1)
	var path string
	go func() {
		var err error
		path, err = c.Create(e.Context(), "/n-", nil, framework.Ephemeral, framework.Protected())
		made <- err
	}()
	e.fired(lost)
	c.end(old)
	c.net.Accept()
	c.awaitState(sub, listeners.Lost)
	require.NoError(e, <-made)
	_, stat, err := c.Exists(e.soon(), path)
	require.NoError(e, err)
	assert.Equal(e, c.SessionID(), stat.EphemeralOwner, "a node of the new session")
	assert.Len(e, e.children(""), 1)
}

func createReplyLost(e *env) {
	c := e.client()
	c.net.LoseReply(wire.OpCreate, 1)
	_, err := c.Create(e.soon(), "/a", nil, framework.Persistent)
	require.ErrorIs(e, err, framework.ErrOutcomeUnknown, "neither success nor failure")
	assert.NotErrorIs(e, err, framework.ErrNotConnected)
	assert.Equal(e, []string{"a"}, e.children(""))

	c.net.CutBefore(wire.OpCreate, 1)
	_, err = c.Create(e.soon(), "/b", nil, framework.Persistent)
	require.ErrorIs(e, err, framework.ErrOutcomeUnknown, "the client cannot know the difference")
	assert.Equal(e, []string{"a"}, e.children(""))
}

func createIdempotent(e *env) {
	c := e.client()
	c.net.LoseReply(wire.OpCreate, 1)
	_, err := c.Create(e.soon(), "/a", []byte("x"), framework.Persistent, framework.Idempotent())
	require.NoError(e, err, "settled by reading back")
	_, err = c.Create(e.soon(), "/a", []byte("x"), framework.Persistent, framework.Idempotent())
	require.NoError(e, err, "what is as intended counts as success")
	_, err = c.Create(e.soon(), "/a", []byte("y"), framework.Persistent, framework.Idempotent())
	require.ErrorIs(e, err, framework.ErrNodeExists)
	_, err = c.Create(e.soon(), "/e", []byte("x"), framework.Ephemeral, framework.Idempotent())
	require.NoError(e, err)
	_, err = e.client().Create(e.soon(), "/e", []byte("x"), framework.Ephemeral, framework.Idempotent())
	require.ErrorIs(e, err, framework.ErrNodeExists, "somebody else's ephemeral node")
}

func createOrSet(e *env) {
	c := e.client()
	for _, data := range []string{"one", "two"} {
		path, err := c.Create(e.soon(), "/a/b", []byte(data), framework.Persistent, framework.OrSet(), framework.Parents())
		require.NoError(e, err)
		assert.Equal(e, "/a/b", path)
		got, _, err := c.Get(e.soon(), "/a/b")
		require.NoError(e, err)
		assert.Equal(e, data, string(got))
	}
}

func createAccessLists(e *env) {
	c := e.client(func(cfg *framework.Config) {
		cfg.Namespace = "ns"
		cfg.ACL = func(path string) []framework.ACL {
			if path == "/ns/a" {
				return zk.WorldACL(zk.PermAll &^ zk.PermAdmin)
			}
			return zk.WorldACL(zk.PermAll)
		}
	})
	_, err := c.Create(e.soon(), "/a/b", nil, framework.Persistent, framework.Parents(), framework.ACLs(zk.WorldACL(zk.PermRead|zk.PermDelete)...))
	require.NoError(e, err)
	for path, want := range map[string]int32{"/a": zk.PermAll &^ zk.PermAdmin, "/a/b": zk.PermRead | zk.PermDelete, "/": zk.PermAll} {
		acl, _, err := c.GetACL(e.soon(), path)
		require.NoError(e, err)
		assert.Equal(e, zk.WorldACL(want), acl, path)
	}
}

func createDefaultData(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/a", nil, framework.Persistent)
	require.NoError(e, err)
	data, _, err := c.Get(e.soon(), "/a")
	require.NoError(e, err)
	assert.Equal(e, "127.0.0.1", string(data), "the local address")
	_, err = c.Create(e.soon(), "/b", []byte{}, framework.Persistent)
	require.NoError(e, err)
	data, _, err = c.Get(e.soon(), "/b")
	require.NoError(e, err)
	assert.Empty(e, data)

	named := e.client(func(cfg *framework.Config) { cfg.DefaultData = []byte("me") })
	_, err = named.Create(e.soon(), "/c", nil, framework.Persistent)
	require.NoError(e, err)
	data, _, err = named.Get(e.soon(), "/c")
	require.NoError(e, err)
	assert.Equal(e, "me", string(data))
}

func ensurePath(e *env) {
	c := e.client()
	for range 2 {
		require.NoError(e, c.EnsurePath(e.soon(), "/a/b/c"))
	}
	assert.Equal(e, []string{"c"}, e.children("/a/b"))
	require.NoError(e, c.EnsurePath(e.soon(), "/"))

	// No right to read or create is needed above the lowest node that exists.
	const admin = zk.PermAdmin
	_, err := c.Create(e.soon(), "/dark", nil, framework.Persistent, framework.ACLs(zk.WorldACL(zk.PermCreate|admin)...))
	require.NoError(e, err)
	require.NoError(e, c.EnsurePath(e.soon(), "/dark/x/y"))
	_, err = c.SetACL(e.soon(), "/dark/x/y", zk.WorldACL(zk.PermRead|admin), 0)
	require.NoError(e, err)
	require.NoError(e, c.EnsurePath(e.soon(), "/dark/x/y"))
	require.ErrorIs(e, c.EnsurePath(e.soon(), "/dark/x/y/z"), framework.ErrNoAuth)
	for _, path := range []string{"/dark", "/dark/x/y"} { // for who cleans up
		_, err = c.SetACL(e.soon(), path, zk.WorldACL(zk.PermAll), framework.AnyVersion)
		require.NoError(e, err)
	}
}
