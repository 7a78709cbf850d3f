package locks_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// A reply was lost, and the next server may be behind the one that executed the
// request. So the client sends a write to that server, and lists after the answer.
func TestSearchComesBehindAWrite(t *testing.T) {
	for name, q := range queues {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				h, err := q.lock(c).Acquire(t.Context())
				require.NoError(t, err)
				require.NoError(t, h.Release())
				var mu sync.Mutex // guards the variables below: there are two connections
				var asked []string
				lost := false
				srv.On(zktest.Match{Session: c.SessionID(), Func: func(r zktest.Request) bool {
					mu.Lock()
					defer mu.Unlock()
					if lost {
						asked = append(asked, r.Op)
						return false
					}
					lost = r.Op == "create2" || r.Op == "multi"
					return lost
				}}, zktest.CutAfter())
				h = kit.Acquire(t, q.lock(c)).Soon()
				mu.Lock()
				first, search := slices.Index(asked, "multi"), slices.IndexFunc(asked, func(op string) bool { return op == "getChildren" || op == "multiRead" })
				mu.Unlock()
				require.GreaterOrEqual(t, first, 0)
				assert.Less(t, first, search)
				require.NoError(t, h.Release())
				synctest.Wait()
				assert.Empty(t, srv.Ephemerals(0))
			})
		})
	}
}

// Somebody has a node with our name: it is no node of ours.
func TestNodeOfAnotherUnderOurName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/l"))
		var name atomic.Value
		srv.On(zktest.Match{Op: "create2", Session: c.SessionID(), Func: func(r zktest.Request) bool {
			return name.CompareAndSwap(nil, r.Path+"0000000000")
		}}, zktest.CutBefore())
		ours := func() string { return name.Load().(string) }
		srv.On(zktest.Match{Op: "multi", Session: c.SessionID(), Nth: 1}, zktest.Call(func(zktest.Request) {
			_, err := other.Create(t.Context(), ours(), nil, framework.Ephemeral)
			assert.NoError(t, err)
		}))
		a := kit.Acquire(t, mutexAt("/l")(c))
		require.True(t, a.Waits(), "the other one is first")
		require.NoError(t, other.Delete(t.Context(), ours(), 0))
		h := a.Soon()
		standsOn(t, other, h, c.SessionID())
		require.NoError(t, h.Release())
	})
}

// Two acquisitions of one session, of which the second loses its reply: it must
// not find the first one's node.
func TestReplyLostBesideAnotherOfTheSession(t *testing.T) {
	for name, q := range queues {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				lock := q.lock(c)
				if name == "mutex" { // with a node for each
					lock = locks.NewInterProcessMutex(c, "/l", locks.LocalHandovers(0))
				}
				first, err := lock.Acquire(t.Context())
				require.NoError(t, err)
				lost := srv.On(zktest.Match{Session: c.SessionID(), Nth: 1, Func: func(r zktest.Request) bool {
					return r.Op == "create2" || r.Op == "multi"
				}}, zktest.CutAfter())
				a := kit.Acquire(t, lock)
				require.True(t, a.Waits())
				assert.Equal(t, 1, lost.Fired())
				require.NoError(t, first.Err())
				require.NoError(t, first.Release())
				require.NoError(t, a.Soon().Release())
			})
		})
	}
}

// The reply to a creation is lost while the list of the queue is longer than we
// take. The node is found by asking for the session's own.
func TestReplyLostInALongQueue(t *testing.T) {
	const unimplemented = -6
	for name, tc := range map[string]struct {
		fault  zktest.Fault
		always bool
		found  bool // while the queue is long
	}{
		"3.6 and later":                    {zktest.Delay(0), true, true},
		"the connection is lost once":      {zktest.CutBefore(), false, true},
		"before 3.6, the connection ends":  {zktest.CutBefore(), true, false},
		"not implemented, without the end": {zktest.Fail(unimplemented), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, lock := range map[string]func(*framework.Client) locks.Lock{
				"mutex": mutexAt("/l"),
				"read": func(c *framework.Client) locks.Lock {
					return locks.NewInterProcessReadWriteLock(c, "/l").ReadLock()
				},
				"multi": func(c *framework.Client) locks.Lock {
					return locks.NewInterProcessMultiLock(mutexAt("/l")(c), mutexAt("/m")(c))
				},
				"semaphore": func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/s", 500) },
			} {
				t.Run(kind, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
						c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.MaxReply = 4 << 10 })
						crowd := kit.Connect(t, srv)
						for _, queue := range []string{"/l", "/s/locks", "/s/leases"} {
							fill(t, crowd, queue, strings.Repeat("x", 40)+map[string]string{"/l": "-other-"}[queue], 100) // in nobody's way
						}
						require.NoError(t, c.EnsurePath(t.Context(), "/m"))
						match := zktest.Match{Op: "getEphemerals"}
						if !tc.always {
							match.Nth = 1
						}
						fault := srv.On(match, tc.fault)
						for _, op := range []string{"create2", "multi"} {
							srv.On(zktest.Match{Session: c.SessionID(), Op: op, Nth: 1}, zktest.CutAfter())
						}
						ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
						defer cancel()
						_, err := lock(c).Acquire(ctx)
						require.Error(t, err, "nobody can see who is ahead")
						time.Sleep(time.Minute)
						if left := srv.Ephemerals(c.SessionID()); tc.found {
							assert.Empty(t, left)
						} else {
							assert.NotEmpty(t, left, "known not to be found")
						}
						assert.Positive(t, fault.Fired())
						assert.LessOrEqual(t, fault.Fired(), 4, "a server that does not know it is asked on two connections")
						require.NoError(t, crowd.Close())
						time.Sleep(time.Minute)
						assert.Empty(t, srv.Ephemerals(0))
						h, err := lock(c).Acquire(t.Context())
						require.NoError(t, err)
						require.NoError(t, h.Release())
					})
				})
			}
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

// A creation lost its reply and was applied late, after another one had been granted. When
// that one's hold is over, for whatever reason, the node of the first goes as well.
func TestLateNodeGoesWithTheHold(t *testing.T) {
	for name, over := range map[string]func(t *testing.T, srv *zktest.Server, admin *framework.Client, h *locks.Hold){
		"released": func(*testing.T, *zktest.Server, *framework.Client, *locks.Hold) {},
		"deleted": func(t *testing.T, _ *zktest.Server, admin *framework.Client, h *locks.Hold) {
			require.NoError(t, admin.Delete(t.Context(), h.Path(), framework.AnyVersion))
			time.Sleep(time.Second)
			require.ErrorIs(t, h.Err(), locks.ErrNodeDeleted)
		},
		"suspended": func(t *testing.T, srv *zktest.Server, _ *framework.Client, h *locks.Hold) {
			srv.DisconnectAll()
			time.Sleep(time.Second)
			require.ErrorIs(t, h.Err(), framework.ErrNotConnected)
		},
		"committed": func(t *testing.T, _ *zktest.Server, _ *framework.Client, h *locks.Hold) {
			_, err := h.Transaction().CommitAndRelease(t.Context())
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, admin := connect(t, srv), connect(t, srv)
				require.NoError(t, c.EnsurePath(t.Context(), "/l"))
				lost := srv.On(zktest.Match{Session: c.SessionID(), Op: "create2", Nth: 1}, zktest.CutBefore())
				h := acquire(t, locks.NewInterProcessMutex(c, "/l", locks.EndOnSuspended())).soon()
				require.Equal(t, 1, lost.Fired())
				late, err := c.Create(t.Context(), h.Path()[:len(h.Path())-len("0000000000")], nil, framework.EphemeralSequential)
				require.NoError(t, err)
				over(t, srv, admin, h)
				_ = h.Release()
				time.Sleep(time.Minute)
				there, _, err := admin.Exists(t.Context(), late)
				require.NoError(t, err)
				assert.False(t, there, "%s is left in the queue", late)
				assert.Empty(t, srv.Ephemerals(c.SessionID()))
			})
		})
	}
}
