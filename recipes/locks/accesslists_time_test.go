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
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A node that its own client may not read proves nothing.
func TestNodeThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv, func(cfg *framework.Config) {
			cfg.ACL = func(path string) []framework.ACL {
				if path == "/m" || path == "/data" {
					return zk.WorldACL(zk.PermAll)
				}
				return zk.WorldACL(zk.PermAll &^ zk.PermRead)
			}
		})
		_, err := c.Create(t.Context(), "/data", nil, framework.Persistent)
		require.NoError(t, err)
		h, err := locks.NewInterProcessMutex(c, "/m").Acquire(t.Context())
		require.NoError(t, err)
		tx := h.Transaction()
		tx.Set("/data", []byte("x"), framework.AnyVersion)
		_, err = tx.Commit(t.Context())
		require.ErrorIs(t, err, locks.ErrNoFence)
		require.ErrorIs(t, err, framework.ErrNoAuth)
		require.NoError(t, h.Release())
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

// Access lists may hide nodes of locks from the waiters behind them, and from the
// clients that made them. From ZooKeeper 3.9 on servers then say nothing about them
// but that they are there.
func TestNodesThatNobodyMayRead(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.8", "3.9"} {
		for _, multi := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, MultiLock %v", version, multi), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Version(version))
					owner := kit.Connect(t, srv, unreadable(0))
					waiter := kit.Connect(t, srv, unreadable(0))
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
					assert.Zero(t, all[0].Session)

					began := time.Now()
					require.NoError(t, h.Release())
					require.NoError(t, <-got)
					assert.Less(t, time.Since(began), time.Second)
					time.Sleep(time.Minute)
					kit.NothingLeft(t, srv)
				})
			})
		}
	}
}

// The nodes above a node may be hidden.
func TestParentsThatNobodyMayRead(t *testing.T) {
	for _, version := range []string{"3.8", "3.9"} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Version(version))
			c := kit.Connect(t, srv)
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

// A refusal of the servers says which right is missing, and on which node.
func TestRefusedAccessToALock(t *testing.T) {
	for name, want := range map[string]string{
		"mutex":           "acquire /l/m: zk: not authenticated: CREATE on /l/m is needed (credentials given: none)",
		"read":            "acquire /l/rw: zk: not authenticated: CREATE on /l/rw is needed (credentials given: none)",
		"semaphore mutex": "acquire /l/s: /l/s/locks: zk: not authenticated: CREATE on /l/s/locks is needed (credentials given: none)",
		"multi":           "acquire /l/a, /l/b, /l/s: /l/a: zk: not authenticated: CREATE on /l/a is needed (credentials given: none)",
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory())
			admin := kit.Connect(t, srv)
			closed := framework.ACLs(zk.WorldACL(zk.PermRead)...)
			for _, path := range []string{"/l", "/l/m", "/l/rw", "/l/s", "/l/a", "/l/b"} {
				_, err := admin.Create(t.Context(), path, nil, framework.Persistent)
				require.NoError(t, err)
			}
			for _, path := range []string{"/l/s/locks", "/l/s/leases"} {
				_, err := admin.Create(t.Context(), path, nil, framework.Persistent, closed)
				require.NoError(t, err)
			}
			for _, path := range []string{"/l/m", "/l/rw", "/l/a"} {
				_, err := admin.SetACL(t.Context(), path, zk.WorldACL(zk.PermRead), framework.AnyVersion)
				require.NoError(t, err)
			}
			_, err := kit.Locks[name](kit.Connect(t, srv)).Acquire(t.Context())
			require.ErrorIs(t, err, framework.ErrNoAuth, name)
			assert.EqualError(t, err, want)
		})
	}
}

// The reply to the creation of a node was lost, and the node may not be read: who
// may administer it asks for the access list instead.
func TestLostReplyAboutANodeThatNobodyMayRead(t *testing.T) {
	for _, version := range []string{"3.8", "3.9"} {
		for _, perms := range []int32{0, zk.PermAdmin} {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Version(version))
				c := kit.Connect(t, srv, unreadable(perms))
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

func TestHoldThatNobodyMayRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		c := kit.Connect(t, srv, func(cfg *framework.Config) {
			cfg.ACL = func(path string) []framework.ACL {
				perms := int32(31)
				if len(path) > 3 {
					perms = 8 // delete
				}
				return []framework.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}
			}
		})
		operator := kit.Connect(t, srv)
		a, err := locks.NewInterProcessMutex(c, "/a").Acquire(t.Context())
		require.NoError(t, err)
		b, err := locks.NewInterProcessMutex(c, "/b").Acquire(t.Context())
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		require.NoError(t, a.Err(), "the refusals prove as much")
		require.NoError(t, operator.Delete(t.Context(), a.Path(), 0))
		require.NoError(t, srv.Disconnect(c.SessionID()))
		<-a.Context().Done()
		require.ErrorIs(t, a.Err(), locks.ErrLockLost, "seen after the reconnect")
		time.Sleep(time.Second)
		require.ErrorIs(t, a.Err(), locks.ErrNodeDeleted)
		assert.Equal(t, locks.Held, b.State())
		require.NoError(t, b.Release())
	})
}

// A semaphore looks at its own path for other kinds of locks, and does without where it may
// not read that.
func TestSemaphoreWhosePathMayNotBeRead(t *testing.T) {
	for _, name := range []string{"semaphore", "semaphore mutex", "semaphore mutex in a MultiLock"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c := kit.Connect(t, srv, func(cfg *framework.Config) {
					cfg.ACL = func(path string) []framework.ACL {
						if path == "/x/y" {
							return zk.WorldACL(zk.PermAll &^ zk.PermRead)
						}
						return zk.WorldACL(zk.PermAll)
					}
				})
				lock := kinds[name].lock(c)
				require.NoError(t, kit.Hold(t, lock).Release())
				h := kit.Hold(t, lock)
				behind := kit.Acquire(t, kinds[name].lock(kit.Connect(t, srv)))
				time.Sleep(time.Minute)
				require.NoError(t, h.Release())
				require.NoError(t, behind.Soon().Release())
			})
		})
	}
}
