package conformance

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
)

// events are the next n events of a subscription, as text.
func (e *env) events(sub *framework.Subscription, n int) (list []string) {
	e.Helper()
	for range n {
		ev, err := sub.Next(e.soon())
		require.NoError(e, err)
		list = append(list, ev.Type.String()+" "+ev.Path)
	}
	return list
}

func subscriptionTree(e *env) {
	c, other := e.client(), e.client()
	tree, err := c.Subscribe(e.soon(), "/a", framework.Subtree())
	require.NoError(e, err)
	node, err := c.Subscribe(e.soon(), "/a/b")
	require.NoError(e, err)
	for _, path := range []string{"/a", "/a/b", "/a/b/c"} {
		_, err = other.Create(e.soon(), path, nil, framework.Persistent)
		require.NoError(e, err)
	}
	_, err = other.Set(e.soon(), "/a/b/c", nil, 0)
	require.NoError(e, err)
	require.NoError(e, other.Delete(e.soon(), "/a", framework.AnyVersion, framework.Recursive()))
	assert.Equal(e, []string{"Established /a", "NodeCreated /a", "NodeCreated /a/b", "NodeCreated /a/b/c", "NodeDataChanged /a/b/c",
		"NodeDeleted /a/b/c", "NodeDeleted /a/b", "NodeDeleted /a"}, e.events(tree, 8))
	assert.Equal(e, []string{"Established /a/b", "NodeCreated /a/b", "NodeChildrenChanged /a/b", "NodeChildrenChanged /a/b", "NodeDeleted /a/b"}, e.events(node, 5))
	tree.Stop()
	node.Stop()
	kit.Eventually(e, "none is left on the servers", func() error { return emptyOr(e.b.watches(e, e.chroot)) })
}

func subscriptionOutages(e *env) {
	c, other := e.client(), e.client()
	sub, err := c.Subscribe(e.soon(), "/a", framework.Subtree())
	require.NoError(e, err)
	assert.Equal(e, []string{"Established /a"}, e.events(sub, 1))
	for _, name := range []string{"/a", "/a/b"} {
		c.net.CutAll()
		assert.Equal(e, []string{"Gap /a", "Established /a"}, e.events(sub, 2))
		_, err = other.Create(e.soon(), name, nil, framework.Persistent)
		require.NoError(e, err)
		assert.Equal(e, []string{"NodeCreated " + name}, e.events(sub, 1))
	}
	c.expire()
	assert.Equal(e, []string{"Gap /a", "Established /a"}, e.events(sub, 2))
	_, err = other.Set(e.soon(), "/a/b", nil, 0)
	require.NoError(e, err)
	assert.Equal(e, []string{"NodeDataChanged /a/b"}, e.events(sub, 1))
}

func subscriptionBesideWatches(e *env) {
	c, other := e.client(), e.client()
	require.NoError(e, c.EnsurePath(e.soon(), "/a"))
	watches := func() (all []*framework.Watch) {
		_, _, data, err := c.GetW(e.soon(), "/a")
		require.NoError(e, err)
		_, _, children, err := c.ChildrenW(e.soon(), "/a")
		require.NoError(e, err)
		return []*framework.Watch{data, children}
	}
	before := watches()
	tree, err := c.Subscribe(e.soon(), "/a", framework.Subtree())
	require.NoError(e, err)
	beside := watches()
	assert.Equal(e, []string{"Established /a"}, e.events(tree, 1))
	change := func() {
		_, err := other.Set(e.soon(), "/a", nil, framework.AnyVersion)
		require.NoError(e, err)
		path, err := other.Create(e.soon(), "/a/n", nil, framework.PersistentSequential)
		require.NoError(e, err)
		require.NoError(e, other.Delete(e.soon(), path, 0))
	}
	fired := func(all []*framework.Watch) {
		assert.Equal(e, framework.NodeDataChanged, e.event(all[0]).Type)
		assert.Equal(e, framework.NodeChildrenChanged, e.event(all[1]).Type)
	}
	change()
	fired(before)
	fired(beside)
	assert.Len(e, e.events(tree, 3), 3, "the subscription goes on")
	change()
	assert.Len(e, e.events(tree, 3), 3)
	last := watches()
	tree.Stop()
	change()
	fired(last)
	kit.Eventually(e, "none is left on the servers", func() error { return emptyOr(e.b.watches(e, e.chroot)) })
}
