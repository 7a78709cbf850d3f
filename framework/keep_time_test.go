package framework_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// owns checks that the node at /a is of a client's present session, and returns when it was made.
func owns(t *testing.T, k *framework.KeptNode, c, other *framework.Client) (czxid int64) {
	t.Helper()
	require.NoError(t, k.Err())
	there, now, err := other.Exists(t.Context(), "/a")
	require.NoError(t, err)
	require.True(t, there)
	assert.Equal(t, c.SessionID(), now.EphemeralOwner)
	return now.Czxid
}

func TestKeep(t *testing.T) {
	onEach(t, func(t *testing.T, srv *zktest.Server) {
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		k, err := c.Keep(t.Context(), "/a", []byte("x"))
		require.NoError(t, err)
		first := owns(t, k, c, other)
		_, err = other.Set(t.Context(), "/a", []byte("y"), framework.AnyVersion)
		require.NoError(t, err)

		require.NoError(t, srv.Disconnect(c.SessionID()))
		synctest.Wait()
		require.ErrorIs(t, k.Err(), framework.ErrNotConnected)
		require.NoError(t, c.BlockUntilConnected(t.Context()))
		time.Sleep(time.Second)
		assert.Equal(t, first, owns(t, k, c, other), "the same node")
		data, _, err := other.Get(t.Context(), "/a")
		require.NoError(t, err)
		assert.Equal(t, "y", string(data))

		require.NoError(t, other.Delete(t.Context(), "/a", framework.AnyVersion))
		time.Sleep(time.Second)
		second := owns(t, k, c, other)
		assert.Greater(t, second, first)
		data, _, err = other.Get(t.Context(), "/a")
		require.NoError(t, err)
		assert.Equal(t, "x", string(data))

		require.NoError(t, srv.ExpireSession(c.SessionID()))
		time.Sleep(3 * time.Second)
		assert.Greater(t, owns(t, k, c, other), second)

		require.NoError(t, k.Remove(t.Context()))
		require.NoError(t, k.Remove(t.Context()))
		require.ErrorIs(t, k.Err(), framework.ErrClosed)
		require.ErrorContains(t, k.Err(), ": it was removed", "and the client is not closed")
		kit.NothingLeft(t, srv)
	})
}

// The client shows the nodes that it keeps.
func TestKeptNodesAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Namespace = "ns" }), kit.Connect(t, srv)
		_, err := other.Create(t.Context(), "/ns/a", nil, framework.Ephemeral, framework.Parents())
		require.NoError(t, err)
		began := time.Now()
		kept := make(chan *framework.KeptNode)
		go func() {
			k, err := c.Keep(t.Context(), "/a", nil)
			assert.NoError(t, err)
			kept <- k
		}()
		time.Sleep(time.Hour + time.Second) // not when Keep looks, which is twice a minute
		list := c.Entries()
		require.Len(t, list, 1)
		require.ErrorIs(t, list[0].Err, framework.ErrNodeExists)
		list[0].Err = nil
		assert.Equal(t, []monitor.Entry{{Kind: "kept node", State: "missing", Path: "/ns/a", Since: began}}, list)
		require.NoError(t, other.Delete(t.Context(), "/ns/a", framework.AnyVersion))
		k := <-kept
		synctest.Wait()
		assert.Equal(t, []monitor.Entry{{Kind: "kept node", State: "there", Path: "/ns/a", Since: time.Now()}}, c.Entries())
		srv.Refuse()
		srv.DisconnectAll()
		cut := time.Now()
		time.Sleep(time.Hour)
		list = c.UsingNamespace("").Entries()
		require.Len(t, list, 1)
		require.ErrorIs(t, list[0].Err, framework.ErrNotConnected)
		assert.Equal(t, "missing", list[0].State)
		assert.Less(t, list[0].Since.Sub(cut), time.Second)
		srv.Accept()
		time.Sleep(time.Minute)
		require.NoError(t, k.Remove(t.Context()))
		assert.Empty(t, c.Entries())
	})
}

// Whatever happens at a request, the node is there in the end, and is gone in the end.
func TestEachRequestOfKeepFails(t *testing.T) {
	tried := make(map[[2]string]int)
	for name, happens := range kit.Failures() {
		if !*everySweep && !picked(name, "once") {
			continue
		}
		for nth := 1; ; nth++ {
			hit := false
			synctest.Test(t, func(t *testing.T) { hit = sweepKeep(t, nth, name, happens) })
			require.False(t, t.Failed(), "%s, at request %d", name, nth)
			require.Less(t, nth, 50)
			if !hit {
				break
			}
			tried[[2]string{name, "a request"}]++
		}
	}
	kit.Tried(t, "kept nodes", tried)
}

func sweepKeep(t *testing.T, nth int, name string, happens kit.Failure) (hit bool) {
	srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
	c, other := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.None() }), kit.Connect(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at := func(r zktest.Request) bool { // a watch that may not be removed stays, and so does a node that is said to be gone
		return kit.At(name)(r) && (r.Op != "removeWatches" || !strings.HasPrefix(name, "code")) && (r.Op != "exists" || name != "code -101")
	}
	rule := srv.On(zktest.Match{Session: c.SessionID(), Nth: nth, Func: at}, happens(t, srv, c, cancel))
	k, err := c.Keep(ctx, "/a", nil)
	time.Sleep(time.Minute)
	if err == nil && name != "closed" {
		owns(t, k, c, other)
		require.NoError(t, other.Delete(t.Context(), "/a", framework.AnyVersion))
		time.Sleep(time.Minute)
		owns(t, k, c, other)
	}
	if err == nil {
		err = k.Remove(ctx)
		time.Sleep(time.Minute)
	}
	hit = rule.Fired() > 0
	refused := strings.HasPrefix(name, "code") && err != nil
	if name != "cancelled" && name != "closed" && !refused {
		require.NoError(t, err, "%s at %d", name, nth)
	}
	if refused && len(srv.Ephemerals(0)) > 0 { // a server that refuses to delete it
		require.NoError(t, c.Delete(t.Context(), "/a", framework.AnyVersion))
	}
	kit.NothingLeft(t, srv, "%s at %d: %v", name, nth, err)
	return hit
}

// The end of another session's node is not told if the node may not be read.
func TestKeepBesideAnUnreadableNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		_, err := other.Create(t.Context(), "/a", nil, framework.Ephemeral, framework.ACLs(framework.WorldACL(framework.PermAll&^framework.PermRead)))
		require.NoError(t, err)
		time.AfterFunc(50*time.Second, func() { assert.NoError(t, other.Close()) })
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		k, err := c.Keep(ctx, "/a", nil)
		require.NoError(t, err)
		owns(t, k, c, c)
	})
}

// Options of Create that make no sense for a node that is made again are refused at once.
func TestKeepRefusesOptionsOfCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
		for want, opt := range map[string]framework.CreateOption{
			"Protected would give each node another path": framework.Protected(),
			"OrSet would overwrite what others set":       framework.OrSet(),
			"only persistent nodes have a TTL":            framework.TTL(time.Second),
		} {
			_, err := c.Keep(t.Context(), "/a", nil, opt)
			require.ErrorIs(t, err, framework.ErrInvalidArgument)
			require.ErrorContains(t, err, want)
		}
		assert.Empty(t, c.Entries())
	})
}

// What the caller does to its slices later is not written.
func TestKeepCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		data, acl := []byte("x"), []framework.ACL{framework.WorldACL(framework.PermAll)}
		opts := []framework.CreateOption{framework.ACLs(acl...)}
		k, err := c.Keep(t.Context(), "/a", data, opts...)
		require.NoError(t, err)
		data[0], acl[0], opts[0] = 'y', framework.WorldACL(framework.PermDelete), framework.ACLs()
		require.NoError(t, c.Delete(t.Context(), "/a", framework.AnyVersion))
		time.Sleep(time.Second)
		require.NoError(t, k.Err())
		now, _, err := c.Get(t.Context(), "/a")
		require.NoError(t, err)
		assert.Equal(t, "x", string(now))
	})
}

// A node of another session is left alone, and followed by ours once it has gone.
func TestKeepBesideAnotherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		before, err := other.Keep(t.Context(), "/a", nil)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = c.Keep(ctx, "/a", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, framework.ErrNodeExists)
		time.Sleep(time.Second)
		owns(t, before, other, c)

		time.AfterFunc(50*time.Second, func() { assert.NoError(t, before.Remove(t.Context())) }) // between two looks
		k, err := c.Keep(t.Context(), "/a", nil)
		require.NoError(t, err)
		owns(t, k, c, other)

		// They are quicker, and theirs is not deleted in place of ours.
		theirs := func(zktest.Request) {
			_, err := other.Create(context.Background(), "/a", nil, framework.Ephemeral)
			assert.NoError(t, err)
		}
		srv.On(zktest.Match{Op: "create", Session: c.SessionID(), Nth: 1}, zktest.Call(theirs))
		require.NoError(t, other.Delete(t.Context(), "/a", framework.AnyVersion))
		time.Sleep(time.Second)
		require.ErrorIs(t, k.Err(), framework.ErrNodeExists)
		require.NoError(t, k.Remove(t.Context()))
		assert.Equal(t, []string{"/a"}, srv.Ephemerals(other.SessionID()))
		require.NoError(t, other.Delete(t.Context(), "/a", framework.AnyVersion))

		_, err = other.Create(t.Context(), "/a", nil, framework.Persistent)
		require.NoError(t, err)
		_, err = c.Keep(t.Context(), "/a", nil)
		require.ErrorIs(t, err, framework.ErrNodeExists)
		there, _, err := other.Exists(t.Context(), "/a")
		require.NoError(t, err)
		assert.True(t, there)
	})
}

// What is refused at first is returned. Later it is told, and tried again.
func TestKeepThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		logged, logs := kit.Logged(zapcore.WarnLevel)
		c, other := kit.Connect(t, srv, logged), kit.Connect(t, srv)
		for want, keep := range map[error]func() (*framework.KeptNode, error){
			framework.ErrNoNode:          func() (*framework.KeptNode, error) { return c.Keep(t.Context(), "/p/a", nil) },
			framework.ErrInvalidPath:     func() (*framework.KeptNode, error) { return c.Keep(t.Context(), "a", nil) },
			framework.ErrInvalidArgument: func() (*framework.KeptNode, error) { return c.Keep(t.Context(), "/a", nil, framework.Protected()) },
			framework.ErrInvalidACL:      func() (*framework.KeptNode, error) { return c.Keep(t.Context(), "/a", nil, framework.ACLs()) },
			framework.ErrClosed:          func() (*framework.KeptNode, error) { return new(framework.Client).Keep(t.Context(), "/a", nil) },
		} {
			_, err := keep()
			require.ErrorIs(t, err, want)
			if errors.Is(want, framework.ErrNoNode) {
				assert.EqualError(t, err, "keep /p/a: zk: node does not exist: /p, the parent, is missing")
			}
		}
		kit.NothingLeft(t, srv)
		assert.Empty(t, logs.All())

		require.NoError(t, other.EnsurePath(t.Context(), "/p/q"))
		k, err := c.Keep(t.Context(), "/p/a", nil, framework.Parents())
		require.NoError(t, err)
		_, err = other.SetACL(t.Context(), "/p", zk.WorldACL(zk.PermRead|zk.PermDelete|zk.PermAdmin), framework.AnyVersion)
		require.NoError(t, err)
		require.NoError(t, other.Delete(t.Context(), "/p/a", framework.AnyVersion))
		time.Sleep(time.Minute)
		require.ErrorIs(t, k.Err(), framework.ErrNoAuth)
		assert.Equal(t, "kept node /p/a: zk: not authenticated: CREATE on /p is needed (credentials given: none)", k.String())
		assert.Equal(t, 1, logs.Len())
		_, err = other.SetACL(t.Context(), "/p", zk.WorldACL(zk.PermRead|zk.PermCreate), framework.AnyVersion)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.NoError(t, k.Err())
		assert.Equal(t, "kept node /p/a", k.String())
		require.ErrorIs(t, k.Remove(t.Context()), framework.ErrNoAuth)
		assert.Equal(t, 2, logs.Len())
	})
}

// Whoever gives up while nobody knows what has become of the creation leaves nothing. The
// client looks behind a write: before that, the servers may still apply the creation.
func TestKeepThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		ctx, cancel := context.WithCancel(t.Context())
		srv.On(zktest.Match{Op: "create", Nth: 1}, zktest.CutAfter())
		srv.On(zktest.Match{Op: "connect", Nth: 1}, zktest.Call(func(zktest.Request) { cancel() }))
		srv.On(zktest.Match{Op: "connect", Nth: 1}, zktest.Delay(time.Millisecond)) // the keeper has heard of that when it is connected
		var order []string
		srv.On(zktest.Match{Path: "/a", Func: func(r zktest.Request) bool { return r.Op == "multi" || r.Op == "exists" }},
			zktest.Call(func(r zktest.Request) { order = append(order, r.Op) }))
		_, err := c.Keep(ctx, "/a", nil)
		require.ErrorIs(t, err, context.Canceled)
		time.Sleep(time.Minute)
		kit.NothingLeft(t, srv)
		assert.Equal(t, []string{"multi", "exists"}, order[max(0, len(order)-2):], "at last")
	})
}

func TestCloseEndsKeptNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, err := framework.Connect(t.Context(), kit.Config(srv))
		require.NoError(t, err)
		k, err := c.Keep(t.Context(), "/a", nil)
		require.NoError(t, err)
		srv.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, k.Remove(ctx), context.DeadlineExceeded)
		srv.Thaw()
		require.NoError(t, c.Close())
		require.ErrorIs(t, k.Err(), framework.ErrClosed)
		_ = k.Remove(t.Context())
		_, err = c.Keep(t.Context(), "/a", nil)
		require.ErrorIs(t, err, framework.ErrClosed)
		var none *framework.KeptNode
		require.ErrorIs(t, none.Remove(t.Context()), framework.ErrClosed)
		require.ErrorIs(t, none.Err(), framework.ErrClosed)
		kit.NothingLeft(t, srv)
	})
}

// Of two that keep one path, each would make the node again that the other removes.
func TestKeepOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		k, err := c.Keep(t.Context(), "/ns/a", nil, framework.Parents())
		require.NoError(t, err)
		_, err = c.UsingNamespace("ns").Keep(t.Context(), "/a", nil)
		require.ErrorIs(t, err, framework.ErrInvalidArgument)
		require.EqualError(t, err, "keep /ns/a: invalid argument: this client keeps it already: Remove that first")
		require.NoError(t, k.Err())

		require.NoError(t, k.Remove(t.Context()))
		time.Sleep(time.Minute)
		assert.Empty(t, srv.Ephemerals(0))
		ended, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		theirs, err := other.Keep(t.Context(), "/ns/a", nil)
		require.NoError(t, err)
		_, err = c.Keep(ended, "/ns/a", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, theirs.Remove(t.Context()))
		k, err = c.Keep(t.Context(), "/ns/a", nil)
		require.NoError(t, err, "neither one that was removed counts, nor one that was never there")
		require.NoError(t, k.Remove(t.Context()))
		_, err = c.Keep(t.Context(), "/missing/a", nil)
		require.ErrorIs(t, err, framework.ErrNoNode)
		k, err = c.Keep(t.Context(), "/missing/a", nil, framework.Parents())
		require.NoError(t, err)
		require.NoError(t, k.Remove(t.Context()))
	})
}
