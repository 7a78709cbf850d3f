package acquire_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A reply was lost, and the next server may be behind the one that had executed
// the request: a write, answered there, comes before it is asked.
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
		"known":                         {zktest.Delay(0), true, true},
		"the connection is lost once":   {zktest.CutBefore(), false, true},
		"the connection ends each time": {zktest.CutBefore(), true, false},
		"not known":                     {zktest.Fail(unimplemented), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, lock := range map[string]func(*framework.Client) locks.Lock{
				"mutex": kit.MutexAt("/l"),
				"read": func(c *framework.Client) locks.Lock {
					return locks.NewInterProcessReadWriteLock(c, "/l").ReadLock()
				},
				"multi": func(c *framework.Client) locks.Lock {
					return locks.NewInterProcessMultiLock(kit.MutexAt("/l")(c), kit.MutexAt("/m")(c))
				},
				"semaphore": func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/s", 500) },
			} {
				t.Run(kind, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
						c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.MaxReply = 4 << 10 })
						crowd := kit.Connect(t, srv)
						for _, queue := range []string{"/l", "/s/locks", "/s/leases"} {
							kit.Fill(t, crowd, queue, strings.Repeat("x", 40)+map[string]string{"/l": "-other-"}[queue], 100) // in nobody's way
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
						assert.LessOrEqual(t, fault.Fired(), 8, "servers that do not know it are not asked over and over")
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

// The queues of a MultiLock are listed with one request, however many they are.
func TestMultiLockListsItsQueuesTogether(t *testing.T) {
	for _, n := range []int{2, 10} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
			c := kit.Connect(t, srv)
			lock := kit.MultiOf(n)(c)
			h, err := lock.Acquire(t.Context()) // makes the parents
			require.NoError(t, err)
			require.NoError(t, h.Release())
			before := srv.Requests()
			assert.Equal(t, 1.0, kit.RoundTrips(t, kit.Into(&h, lock)))
			assert.Equal(t, 1.0, kit.RoundTrips(t, h.Release))
			after := srv.Requests()
			assert.Equal(t, 2, after["multi"]-before["multi"])
			assert.Equal(t, 1, after["multiRead"]-before["multiRead"])
			assert.Equal(t, before["getChildren"], after["getChildren"])
		})
	}
}

// A connection that is lost tells nothing of how servers list queues.
func TestMultiLockListsTogetherAfterALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		lock := kit.MultiOf(3)(c)
		for i := range 3 {
			h, err := lock.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release())
			if i == 0 {
				srv.On(zktest.Match{Op: "multiRead", Nth: 1}, zktest.CutBefore())
			}
		}
		before := srv.Requests()
		h, err := lock.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Release())
		assert.Equal(t, 1, srv.Requests()["multiRead"]-before["multiRead"])
	})
}

// One reply for all queues is too large, and those for each are not.
func TestMultiLockWhoseListsAreTooLargeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.MaxReply = 4 << 10 })
		for i := range 3 {
			require.NoError(t, c.EnsurePath(t.Context(), fmt.Sprintf("/l/%d/%s", i, strings.Repeat("x", 3<<10))))
		}
		lock := kit.MultiOf(3)(c)
		for range 2 {
			h, err := lock.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release())
		}
		assert.Equal(t, 1, srv.Requests()["connect"])
		assert.Empty(t, srv.Ephemerals(0))
	})
}
