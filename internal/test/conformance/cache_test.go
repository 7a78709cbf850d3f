package conformance

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/cache"
)

// numbered makes n nodes below /a, whose data is their number.
func (e *env) numbered(c *client, n int) {
	e.Helper()
	require.NoError(e, c.EnsurePath(e.soon(), "/a"))
	for from := 0; from < n; from += 100 {
		tx := c.Transaction()
		for i := from; i < min(from+100, n); i++ {
			tx.Create(fmt.Sprintf("/a/%04d", i), fmt.Append(nil, i), framework.Persistent)
		}
		_, err := tx.Commit(e.soon())
		require.NoError(e, err)
	}
}

func readAll(e *env) {
	c := e.client()
	const n = 1000
	e.numbered(c, n)
	reads := []framework.Read{{Path: "/a", Children: true}}
	for i := range n {
		reads = append(reads, framework.Read{Path: fmt.Sprintf("/a/%04d", i)}, framework.Read{Path: fmt.Sprintf("/a/x%d", i)})
	}
	results, err := c.ReadAll(e.soon(), reads...)
	require.NoError(e, err)
	assert.Len(e, results[0].Names, n)
	for i := range n {
		require.NoError(e, results[1+2*i].Err)
		require.Equal(e, fmt.Sprint(i), string(results[1+2*i].Data))
		require.ErrorIs(e, results[2+2*i].Err, framework.ErrNoNode)
	}
}

// cached is a cache of /a that is closed with the case.
func (e *env) cached(c *client) (a *cache.Cache[[]byte], stop func()) {
	e.Helper()
	a, err := cache.Start(c.Client, "/a", cache.Bytes)
	require.NoError(e, err)
	e.Cleanup(a.Close)
	_, err = a.Ready(e.soon())
	require.NoError(e, err)
	return a, a.Close
}

// shows compares a snapshot with what the servers have.
func (e *env) shows(a *cache.Cache[[]byte]) {
	e.Helper()
	s, err := a.Fresh(e.soon())
	require.NoError(e, err)
	n := 0
	for entry := range s.All() {
		require.NoError(e, entry.Err)
		data, stat, err := e.admin.Get(e.soon(), e.chroot+entry.Path)
		require.NoError(e, err, "%s", entry.Path)
		assert.Equal(e, string(data), string(entry.Value))
		assert.Equal(e, []int64{stat.Czxid, stat.Mzxid, stat.EphemeralOwner, int64(stat.Version)},
			[]int64{entry.Created, entry.Changed, entry.Owner, int64(entry.Version)})
		n++
	}
	names, _, err := e.admin.Children(e.soon(), e.chroot+"/a")
	require.NoError(e, err)
	assert.Equal(e, 1+len(names), n)
}

func cacheFollows(e *env) {
	c, other := e.client(), e.client()
	e.numbered(other, 500)
	a, stop := e.cached(c)
	e.shows(a)
	for i := range 100 {
		path := fmt.Sprintf("/a/%04d", i)
		tx := other.Transaction()
		tx.Delete(path, framework.AnyVersion)
		switch i % 3 {
		case 0:
			tx.Create(path, []byte("again"), framework.Persistent)
		case 1:
			tx.Create(fmt.Sprintf("/a/n%d", i), nil, framework.Ephemeral)
		}
		_, err := tx.Commit(e.soon())
		require.NoError(e, err)
	}
	stat, err := other.Set(e.soon(), "/a", []byte("last"), framework.AnyVersion)
	require.NoError(e, err)
	s, err := a.Await(e.soon(), stat.Mzxid)
	require.NoError(e, err)
	entry, _ := s.Get("/a")
	assert.Equal(e, "last", string(entry.Value))
	e.shows(a)
	stop()
	kit.Eventually(e, "none is left on the servers", func() error { return emptyOr(e.b.watches(e, e.chroot)) })
}

func cacheOutages(e *env) {
	c, other := e.client(), e.client()
	e.numbered(other, 200)
	a, stop := e.cached(c)
	defer stop()
	old, before := a.Snapshot(), time.Now()
	<-time.After(time.Millisecond) // in virtual time an outage may take none
	for i, outage := range []func(){c.net.CutAll, c.expire, c.net.CutAll} {
		outage()
		path := fmt.Sprintf("/a/%04d", i)
		require.NoError(e, other.Delete(e.soon(), path, framework.AnyVersion))
		_, err := other.Create(e.soon(), path, []byte("again"), framework.Persistent)
		require.NoError(e, err)
		e.shows(a)
		kit.Until(e, "it is current", func() bool { return a.Status().Current })
		assert.True(e, a.Status().Since.After(before))
	}
	entry, _ := old.Get("/a/0000")
	assert.Equal(e, "0", string(entry.Value), "old snapshots stay")
}
