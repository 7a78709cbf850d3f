package locks_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Somebody may write to the node ahead, as revocation does, any number of times.
func TestMultiLockBehindANodeThatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := connect(t, srv), connect(t, srv)
		b, err := locks.NewInterProcessMutex(other, "/b").Acquire(t.Context())
		require.NoError(t, err)
		h, err := locks.NewInterProcessMutex(other, "/a").Acquire(t.Context())
		require.NoError(t, err)
		multi := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/b"), locks.NewInterProcessMutex(c, "/a"))
		got := make(chan error, 1)
		go func() {
			_, err := multi.Acquire(t.Context())
			got <- err
		}()
		for range 3 {
			time.Sleep(time.Minute)
			for _, path := range []string{h.Path(), b.Path()} {
				_, err = other.Set(t.Context(), path, []byte("x"), framework.AnyVersion)
				require.NoError(t, err)
			}
		}
		time.Sleep(time.Minute)
		require.NoError(t, h.Release())
		require.NoError(t, b.Release())
		began := time.Now()
		require.NoError(t, <-got)
		assert.Less(t, time.Since(began), time.Millisecond)
	})
}

// unreadable has a client make nodes that nobody may read, below /l.
func unreadable(perms int32) func(*framework.Config) {
	return func(cfg *framework.Config) {
		cfg.ACL = func(path string) []framework.ACL {
			if strings.Count(path, "/") < 2 {
				return zk.WorldACL(zk.PermAll)
			}
			return zk.WorldACL(perms)
		}
	}
}

// Nodes of locks may be hidden from those who wait behind them, and from those
// who made them. From ZooKeeper 3.9 on servers then say nothing about them but
// that they are there.
func TestNodesThatNobodyMayRead(t *testing.T) {
	for _, version := range []string{"3.8", "3.9"} {
		for _, multi := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, MultiLock %v", version, multi), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Version(version))
					owner := connect(t, srv, unreadable(0))
					waiter := connect(t, srv, unreadable(0))
					var lock, behind locks.Lock = locks.NewInterProcessMutex(owner, "/l"), locks.NewInterProcessMutex(waiter, "/l")
					if multi {
						behind = locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(waiter, "/k"), behind)
					}
					h, err := lock.Acquire(t.Context())
					require.NoError(t, err)
					time.Sleep(time.Minute)

					got := make(chan error, 1)
					go func() {
						h, err := behind.Acquire(t.Context())
						if err == nil {
							err = h.Release()
						}
						got <- err
					}()
					time.Sleep(time.Minute)
					require.NoError(t, srv.Disconnect(owner.SessionID()))
					time.Sleep(time.Minute)
					require.Equal(t, locks.Held, h.State(), "it was verified after the reconnect")
					all, err := locks.NewInterProcessMutex(waiter, "/l").Participants(t.Context())
					require.NoError(t, err)
					require.Len(t, all, 2)
					assert.Equal(t, h.Path(), all[0].Path)
					assert.Equal(t, version == "3.8", all[0].Session == owner.SessionID())

					began := time.Now()
					require.NoError(t, h.Release())
					require.NoError(t, <-got)
					assert.Less(t, time.Since(began), time.Second)
					time.Sleep(time.Minute)
					assert.Empty(t, srv.Ephemerals(0))
					assert.Empty(t, srv.Watches())
				})
			})
		}
	}
}

// The reply to the creation of a node was lost, and the node may not be read: who
// may administer it asks for the access list instead.
func TestLostReplyAboutANodeThatNobodyMayRead(t *testing.T) {
	for _, version := range []string{"3.8", "3.9"} {
		for _, perms := range []int32{0, zk.PermAdmin} {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Version(version))
				c := connect(t, srv, unreadable(perms))
				require.NoError(t, c.EnsurePath(t.Context(), "/l"))
				rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "create2", Nth: 1}, zktest.CutAfter())
				h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				assert.Equal(t, 1, rule.Fired())
				if version == "3.9" && perms == 0 {
					require.ErrorIs(t, err, framework.ErrNoAuth)
				} else {
					require.NoError(t, err)
					assert.NotZero(t, h.FencingToken())
					require.NoError(t, h.Release())
				}
				time.Sleep(time.Minute)
				assert.Empty(t, srv.Ephemerals(0))
			})
		}
	}
}

// What is there above a node may be hidden.
func TestParentsThatNobodyMayRead(t *testing.T) {
	for _, version := range []string{"3.8", "3.9"} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Version(version))
			c := connect(t, srv)
			_, err := c.Create(t.Context(), "/dark", nil, framework.Persistent, framework.ACLs(zk.WorldACL(zk.PermCreate)...))
			require.NoError(t, err)
			require.NoError(t, c.EnsurePath(t.Context(), "/dark/a/b"))
			require.NoError(t, c.EnsurePath(t.Context(), "/dark"))
			_, err = c.Create(t.Context(), "/dark/x/y", nil, framework.Persistent, framework.Parents())
			require.NoError(t, err)
			within := c.UsingNamespace("dark")
			_, err = within.Create(t.Context(), "/z", nil, framework.Persistent)
			require.NoError(t, err)
			h, err := locks.NewInterProcessMutex(c, "/dark/lock").Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release())
			there, _, err := c.Exists(t.Context(), "/dark")
			if version == "3.9" {
				require.ErrorIs(t, err, framework.ErrNoAuth)
			} else {
				require.NoError(t, err)
				assert.True(t, there)
			}
		})
	}
}
