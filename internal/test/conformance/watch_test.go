package conformance

import (
	"context"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/listeners"
)

func watchData(e *env) {
	c, other := e.client(), e.client()
	_, err := c.Create(e.soon(), "/a", nil, framework.Persistent)
	require.NoError(e, err)
	_, _, w, err := c.GetW(e.soon(), "/a")
	require.NoError(e, err)
	_, err = other.Set(e.soon(), "/a", []byte("1"), 0)
	require.NoError(e, err)
	assert.Equal(e, framework.Event{Type: framework.NodeDataChanged, Path: "/a"}, e.event(w))
	_, open := <-w.C
	assert.False(e, open, "one event, then it closes")

	data, _, w, err := c.GetW(e.soon(), "/a")
	require.NoError(e, err)
	assert.Equal(e, "1", string(data))
	require.NoError(e, other.Delete(e.soon(), "/a", framework.AnyVersion))
	assert.Equal(e, framework.Event{Type: framework.NodeDeleted, Path: "/a"}, e.event(w))
}

func watchExists(e *env) {
	c, other := e.client(), e.client()
	there, _, w, err := c.ExistsW(e.soon(), "/a")
	require.NoError(e, err)
	assert.False(e, there)
	_, err = other.Create(e.soon(), "/a", nil, framework.Persistent)
	require.NoError(e, err)
	assert.Equal(e, framework.Event{Type: framework.NodeCreated, Path: "/a"}, e.event(w))
	there, stat, w, err := c.ExistsW(e.soon(), "/a")
	require.NoError(e, err)
	assert.True(e, there)
	assert.NotNil(e, stat)
	_, err = other.Set(e.soon(), "/a", nil, framework.AnyVersion)
	require.NoError(e, err)
	assert.Equal(e, framework.Event{Type: framework.NodeDataChanged, Path: "/a"}, e.event(w))
	_, _, w, err = c.ExistsW(e.soon(), "/a")
	require.NoError(e, err)
	require.NoError(e, other.Delete(e.soon(), "/a", framework.AnyVersion))
	assert.Equal(e, framework.Event{Type: framework.NodeDeleted, Path: "/a"}, e.event(w))
}

func watchChildren(e *env) {
	c, other := e.client(func(cfg *framework.Config) { cfg.Namespace = "ns" }), e.client()
	require.NoError(e, c.EnsurePath(e.soon(), "/a"))
	names, _, w, err := c.ChildrenW(e.soon(), "/a")
	require.NoError(e, err)
	assert.Empty(e, names)
	_, err = other.Create(e.soon(), "/ns/a/b", nil, framework.Persistent)
	require.NoError(e, err)
	assert.Equal(e, framework.Event{Type: framework.NodeChildrenChanged, Path: "/a"}, e.event(w), "as the caller knows paths")
	_, _, w, err = c.ChildrenW(e.soon(), "/a")
	require.NoError(e, err)
	_, err = other.Set(e.soon(), "/ns/a/b", nil, 0)
	require.NoError(e, err)
	require.NoError(e, other.Delete(e.soon(), "/ns/a", framework.AnyVersion, framework.Recursive()))
	assert.Equal(e, framework.Event{Type: framework.NodeChildrenChanged, Path: "/a"}, e.event(w))
	require.NoError(e, c.Sync(e.soon(), "/a")) // the child goes first, and c's server may lag behind the other deletion
	require.NoError(e, c.EnsurePath(e.soon(), "/a"))
	_, _, w, err = c.ChildrenW(e.soon(), "/a")
	require.NoError(e, err)
	require.NoError(e, other.Delete(e.soon(), "/ns/a", framework.AnyVersion))
	assert.Equal(e, framework.Event{Type: framework.NodeDeleted, Path: "/a"}, e.event(w))
}

func watchNoneOnError(e *env) {
	c := e.client()
	_, _, w, err := c.GetW(e.soon(), "/a")
	require.ErrorIs(e, err, framework.ErrNoNode)
	assert.Nil(e, w)
	_, _, w, err = c.ChildrenW(e.soon(), "/a")
	require.ErrorIs(e, err, framework.ErrNoNode)
	assert.Nil(e, w)
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	_, _, w, err = c.ExistsW(ctx, "/a")
	require.ErrorIs(e, err, context.Canceled)
	assert.Nil(e, w)
	assert.Empty(e, e.b.watches(e, e.chroot))
}

func watchStop(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/a", nil, framework.Persistent)
	require.NoError(e, err)
	_, _, data, err := c.GetW(e.soon(), "/a")
	require.NoError(e, err)
	_, _, absent, err := c.ExistsW(e.soon(), "/x")
	require.NoError(e, err)
	_, _, children, err := c.ChildrenW(e.soon(), "/a")
	require.NoError(e, err)
	kit.Until(e, "three watches stand", func() bool { return len(e.b.watches(e, e.chroot)) >= 2 })
	for _, w := range []*framework.Watch{data, absent, children} {
		w.Stop()
		w.Stop()
		_, open := <-w.C
		assert.False(e, open)
	}
	kit.Eventually(e, "none is left on the servers", func() error { return emptyOr(e.b.watches(e, e.chroot)) })

	// Given up while on its way, over and over.
	for range 50 {
		ctx, cancel := context.WithCancel(e.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, _, w, err := c.GetW(ctx, "/a"); err == nil {
				w.Stop()
			}
		})
		wg.Go(cancel)
		wg.Wait()
	}
	kit.Eventually(e, "none is left on the servers", func() error { return emptyOr(e.b.watches(e, e.chroot)) })
}

func watchShared(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/a", nil, framework.Persistent)
	require.NoError(e, err)
	var all []*framework.Watch
	for range 100 {
		_, _, w, err := c.GetW(e.soon(), "/a")
		require.NoError(e, err)
		all = append(all, w)
	}
	assert.Len(e, e.b.watches(e, e.chroot), 1, "one stands on the servers")
	for _, w := range all[:99] {
		w.Stop()
	}
	_, err = c.Set(e.soon(), "/a", nil, 0)
	require.NoError(e, err)
	assert.Equal(e, framework.NodeDataChanged, e.event(all[99]).Type, "for as long as somebody waits")
}

func watchReconnect(e *env) {
	c, other := e.client(), e.client()
	_, err := c.Create(e.soon(), "/a", nil, framework.Persistent)
	require.NoError(e, err)
	_, _, data, err := c.GetW(e.soon(), "/a")
	require.NoError(e, err)
	_, _, absent, err := c.ExistsW(e.soon(), "/x")
	require.NoError(e, err)
	_, _, children, err := c.ChildrenW(e.soon(), "/a")
	require.NoError(e, err)
	sub := c.States().Subscribe()
	defer sub.Stop()
	c.net.CutAll()
	c.awaitState(sub, listeners.Reconnected)
	require.NoError(e, c.Sync(e.soon(), "/"))
	_, err = other.Set(e.soon(), "/a", nil, 0)
	require.NoError(e, err)
	_, err = other.Create(e.soon(), "/a/b", nil, framework.Persistent)
	require.NoError(e, err)
	_, err = other.Create(e.soon(), "/x", nil, framework.Persistent)
	require.NoError(e, err)
	assert.Equal(e, framework.NodeDataChanged, e.event(data).Type)
	assert.Equal(e, framework.NodeChildrenChanged, e.event(children).Type)
	assert.Equal(e, framework.NodeCreated, e.event(absent).Type)
}

func watchMissed(e *env) {
	c, other := e.client(), e.client()
	for _, path := range []string{"/a", "/b", "/c"} {
		_, err := c.Create(e.soon(), path, nil, framework.Persistent)
		require.NoError(e, err)
	}
	_, _, changed, err := c.GetW(e.soon(), "/a")
	require.NoError(e, err)
	_, _, deleted, err := c.GetW(e.soon(), "/b")
	require.NoError(e, err)
	_, _, created, err := c.ExistsW(e.soon(), "/x")
	require.NoError(e, err)
	_, _, children, err := c.ChildrenW(e.soon(), "/c")
	require.NoError(e, err)
	c.net.Refuse()
	c.net.CutAll()
	_, err = other.Set(e.soon(), "/a", nil, 0)
	require.NoError(e, err)
	require.NoError(e, other.Delete(e.soon(), "/b", 0))
	_, err = other.Create(e.soon(), "/x", nil, framework.Persistent)
	require.NoError(e, err)
	_, err = other.Create(e.soon(), "/c/d", nil, framework.Persistent)
	require.NoError(e, err)
	c.net.Accept()
	assert.Equal(e, framework.NodeDataChanged, e.event(changed).Type)
	assert.Equal(e, framework.NodeDeleted, e.event(deleted).Type)
	assert.Equal(e, framework.NodeCreated, e.event(created).Type)
	assert.Equal(e, framework.NodeChildrenChanged, e.event(children).Type)
}

func watchSessionOver(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/a", nil, framework.Persistent)
	require.NoError(e, err)
	_, _, w, err := c.GetW(e.soon(), "/a")
	require.NoError(e, err)
	c.expire()
	assert.Equal(e, framework.Event{Type: framework.WatchEnded, Path: "/a", Err: framework.ErrSessionExpired}, e.event(w))
	lost := c.net.LoseReply(wire.OpGetData, 1)
	_, _, w, err = c.GetW(e.soon(), "/a")
	require.NoError(e, err, "set again after a lost reply")
	e.fired(lost)
	w.Stop()
}
