package framework_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A node under our own UUID that belongs to another session is not taken for
// ours, and removed.
func TestProtectedNodeOfAnotherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		other := kit.Connect(t, srv)
		require.NoError(t, other.EnsurePath(t.Context(), "/p"))
		usurp := func(ctx context.Context, _ retry.Attempt) {
			names, _, err := other.Children(ctx, "/p")
			assert.NoError(t, err)
			assert.Len(t, names, 1, "the first attempt has made it")
			assert.NoError(t, other.Delete(ctx, "/p/"+names[0], 0))
			_, err = other.Create(ctx, "/p/"+names[0], nil, framework.Ephemeral)
			assert.NoError(t, err)
		}
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.OneTime(time.Second).OnRetry(usurp) })
		srv.On(zktest.Match{Op: "create", Session: c.SessionID(), Nth: 1}, zktest.CutAfter())
		path, err := c.Create(t.Context(), "/p/n-", nil, framework.EphemeralSequential, framework.Protected())
		require.NoError(t, err)
		time.Sleep(time.Second)
		names, _, err := other.Children(t.Context(), "/p")
		require.NoError(t, err)
		assert.Equal(t, []string{strings.TrimPrefix(path, "/p/")}, names)
		_, stat, err := other.Exists(t.Context(), path)
		require.NoError(t, err)
		assert.Equal(t, c.SessionID(), stat.EphemeralOwner)
	})
}

// The creation whose reply was lost is applied late: after the client has connected
// again, and before its next write. So a list without a write before would not show the
// node, and a sync is no write.
func TestProtectedCreateSearchesBehindAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		other := kit.Connect(t, srv)
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.OneTime(time.Second) })
		require.NoError(t, other.EnsurePath(t.Context(), "/p"))
		var sent atomic.Value // the path in the request that was lost
		srv.On(zktest.Match{Op: "create", Session: c.SessionID(), Func: func(r zktest.Request) bool {
			return sent.CompareAndSwap(nil, r.Path)
		}}, zktest.CutBefore())
		var applied atomic.Bool
		srv.On(zktest.Match{Session: c.SessionID(), Func: func(r zktest.Request) bool {
			return (r.Op == "multi" || r.Op == "create") && sent.Load() != nil && applied.CompareAndSwap(false, true)
		}}, zktest.Call(func(zktest.Request) {
			_, err := other.Create(t.Context(), sent.Load().(string), nil, framework.PersistentSequential)
			assert.NoError(t, err)
		}))
		path, err := c.Create(t.Context(), "/p/n-", nil, framework.PersistentSequential, framework.Protected())
		require.NoError(t, err)
		names, _, err := other.Children(t.Context(), "/p")
		require.NoError(t, err)
		assert.Equal(t, []string{strings.TrimPrefix(path, "/p/")}, names)
	})
}

// A node that others delete can be gone when its creator looks for it, and is then made twice.
// Receipt knows better.
func TestProtectedNodeThatOthersDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond), zktest.TransactionLog())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/q"))
		taken := 0
		take := zktest.Call(func(zktest.Request) {
			names, _, err := other.Children(t.Context(), "/q")
			assert.NoError(t, err)
			for _, name := range names {
				assert.NoError(t, other.Delete(t.Context(), "/q/"+name, framework.AnyVersion))
				taken++
			}
		})
		for want, put := range map[int]func() error{
			2: func() error {
				_, err := c.Create(t.Context(), "/q/i-", nil, framework.PersistentSequential, framework.Protected())
				return err
			},
			1: func() error {
				tx := c.Transaction()
				tx.Create("/q/item", nil, framework.Persistent)
				_, err := tx.Commit(t.Context(), framework.Receipt("/receipts"))
				return err
			},
		} {
			lost := srv.On(zktest.Match{Session: c.SessionID(), Func: func(r zktest.Request) bool {
				return (r.Op == "create" || r.Op == "multi") && strings.HasPrefix(r.Path, "/q/")
			}, Nth: 1}, zktest.CutAfter())
			taking := srv.On(zktest.Match{Op: "connect"}, take)
			require.NoError(t, put())
			lost.Remove()
			taking.Remove()
			names, _, err := other.Children(t.Context(), "/q")
			require.NoError(t, err)
			assert.Equal(t, want, taken+len(names))
			taken = 0
			require.NoError(t, other.Delete(t.Context(), "/q", framework.AnyVersion, framework.Recursive()))
			require.NoError(t, other.EnsurePath(t.Context(), "/q"))
		}
	})
}

// Two clients raise a counter at the same moment, the write of one is lost, and Idempotent
// takes that of the other for it.
func TestIdempotentSetsOfTwoClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/n", []byte("5"), framework.Persistent)
		require.NoError(t, err)
		first := zktest.Match{Op: "setData", Session: c.SessionID(), Nth: 1}
		srv.On(first, zktest.Call(func(zktest.Request) {
			_, err := other.Set(t.Context(), "/n", []byte("6"), 0)
			assert.NoError(t, err)
		}))
		srv.On(first, zktest.CutBefore())
		_, err = c.Set(t.Context(), "/n", []byte("6"), 0, framework.Idempotent())
		require.NoError(t, err, "as intended, whoever wrote it")
	})
}

// What servers and Protected put into a name counts for the length of the path. Otherwise
// there would be a node that no call takes.
func TestNodeThatNobodyCouldName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		create := func(mode framework.Mode, opts ...framework.CreateOption) func(*framework.Client, string) (string, error) {
			return func(c *framework.Client, path string) (string, error) {
				return c.Create(t.Context(), path, nil, mode, opts...)
			}
		}
		digits, uuid := len("0000000000"), len("_c_00000000-0000-0000-0000-000000000000-")
		for name, tc := range map[string]struct {
			more   int
			create func(*framework.Client, string) (string, error)
		}{
			"sequential": {digits, create(framework.PersistentSequential)},
			"protected":  {uuid, create(framework.Ephemeral, framework.Protected())},
			"both":       {digits + uuid, create(framework.EphemeralSequential, framework.Protected())},
			"transaction": {digits, func(c *framework.Client, path string) (string, error) {
				tx := c.Transaction()
				tx.Create(path, nil, framework.PersistentSequential)
				results, err := tx.Commit(t.Context())
				if err != nil {
					return "", err
				}
				return results[0].Path, nil
			}},
		} {
			for _, client := range []*framework.Client{c, c.UsingNamespace("space")} {
				require.NoError(t, c.EnsurePath(t.Context(), "/space"))
				room := framework.MaxPathLength - 1 - tc.more - len("/")
				if client != c {
					room -= len("/space")
				}
				path, err := tc.create(client, "/"+strings.Repeat("x", room))
				require.NoError(t, err, name)
				require.NoError(t, client.Delete(t.Context(), path, framework.AnyVersion), name)
				_, err = tc.create(client, "/"+strings.Repeat("x", room+1))
				require.ErrorIs(t, err, framework.ErrInvalidPath, name)
			}
		}
	})
}

// A node with a time to live goes when it has no children and was not modified
// for so long.
func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.SweepInterval(time.Second))
		c := kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/a", nil, framework.Persistent, framework.TTL(10*time.Second))
		require.NoError(t, err)
		path, err := c.Create(t.Context(), "/s-", nil, framework.PersistentSequential, framework.TTL(10*time.Second))
		require.NoError(t, err)
		time.Sleep(8 * time.Second)
		_, err = c.Set(t.Context(), "/a", []byte("kept"), 0)
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		for p, want := range map[string]bool{"/a": true, path: false} {
			there, _, err := c.Exists(t.Context(), p)
			require.NoError(t, err)
			assert.Equal(t, want, there, p)
		}
		time.Sleep(10 * time.Second)
		there, _, err := c.Exists(t.Context(), "/a")
		require.NoError(t, err)
		assert.False(t, there)
	})
}

func TestCreateBelowAMissingChroot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		for _, namespace := range []string{"", "n"} {
			c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.ConnectString, cfg.Namespace = cfg.ConnectString+"/app", namespace })
			for _, opts := range [][]framework.CreateOption{nil, {framework.Parents()}, {framework.Protected()}} {
				_, err := c.Create(t.Context(), "/a", nil, framework.Persistent, opts...)
				require.ErrorIs(t, err, framework.ErrNoNode)
				require.ErrorContains(t, err, ": chroot /app: zk: node does not exist")
			}
		}
		_, err := kit.Connect(t, srv).Create(t.Context(), "/app", nil, framework.Persistent)
		require.NoError(t, err)
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.ConnectString += "/app" })
		_, err = c.Create(t.Context(), "/none/a", nil, framework.Persistent)
		require.EqualError(t, err, "create /app/none/a: zk: node does not exist: /app/none, the parent, is missing", "the chroot is there")
	})
}

// What a Create that failed has left behind is deleted, however often the servers refuse
// that at first. The refusal is told once.
func TestProtectedCreateIsCleanedUpAfterARefusal(t *testing.T) {
	for name, mode := range map[string]framework.Mode{"ephemeral": framework.Ephemeral, "persistent": framework.Persistent} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				admin, c := kit.Connect(t, srv), kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.None() })
				require.NoError(t, admin.EnsurePath(t.Context(), "/p"))
				var told atomic.Int32
				defer c.Errors().Listen(func(error) { told.Add(1) })()
				srv.On(zktest.Match{Op: "create", Session: c.SessionID(), Nth: 1}, zktest.CutAfter())
				noAuth := srv.On(zktest.Match{Op: "delete", Session: c.SessionID()}, zktest.Fail(-102))
				_, err := c.Create(t.Context(), "/p/n", nil, mode, framework.Protected())
				require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
				time.Sleep(time.Minute)
				assert.Len(t, kit.Children(t, admin, "/p"), 1)
				assert.Equal(t, int32(1), told.Load())
				noAuth.Remove()
				time.Sleep(10 * time.Second)
				assert.Empty(t, kit.Children(t, admin, "/p"))
			})
		})
	}
}

// An attempt in a later session may have made the node as well, which goes with that session
// only if somebody deletes it.
func TestProtectedCreateIsCleanedUpInEachSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		admin := kit.Connect(t, srv)
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.NTimes(1, 10*time.Second) })
		require.NoError(t, admin.EnsurePath(t.Context(), "/p"))
		first := c.SessionID()
		rule := srv.On(zktest.Match{Op: "create"}, zktest.CutAfter())
		time.AfterFunc(time.Second, func() { _ = srv.ExpireSession(first) }) // before the second attempt
		_, err := c.Create(t.Context(), "/p/n", nil, framework.Ephemeral, framework.Protected())
		require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
		assert.Equal(t, 2, rule.Fired())
		time.Sleep(4 * time.Second) // less than the timeout of the session
		assert.NotEqual(t, first, c.SessionID())
		assert.Empty(t, kit.Children(t, admin, "/p"))
	})
}
