package locks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// The queues of a MultiLock are listed with one request, however many they are.
func TestMultiLockListsItsQueuesTogether(t *testing.T) {
	for _, n := range []int{2, 10} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
			c := connect(t, srv)
			lock := multiOf(c, n)
			h, err := lock.Acquire(t.Context()) // makes the parents
			require.NoError(t, err)
			require.NoError(t, h.Release())
			before := srv.Requests()
			assert.Equal(t, 1.0, took(t, hold(lock, &h)))
			assert.Equal(t, 1.0, took(t, h.Release))
			after := srv.Requests()
			assert.Equal(t, 2, after["multi"]-before["multi"])
			assert.Equal(t, 1, after["multiRead"]-before["multiRead"])
			assert.Equal(t, before["getChildren"], after["getChildren"])
		})
	}
}

func multiOf(c *framework.Client, n int) locks.Lock {
	members := make([]locks.Lock, n)
	for i := range members {
		members[i] = locks.NewInterProcessMutex(c, fmt.Sprintf("/l/%d", i))
	}
	return locks.NewInterProcessMultiLock(members...)
}

// Servers before 3.6 do not know the one request, and end the connection. It is
// tried once.
func TestMultiLockOnServersThatCannotListTogether(t *testing.T) {
	const unimplemented = -6
	for name, fault := range map[string]zktest.Fault{
		"cut": zktest.CutBefore(), "cut after": zktest.CutAfter(), "refused": zktest.Fail(unimplemented),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c := connect(t, srv)
				for i := range 3 {
					require.NoError(t, c.EnsurePath(t.Context(), fmt.Sprintf("/l/%d", i)))
				}
				tried := srv.On(zktest.Match{Op: "multiRead"}, fault)
				lock := multiOf(c, 3)
				for range 3 {
					h, err := lock.Acquire(t.Context())
					require.NoError(t, err)
					assert.Len(t, srv.Ephemerals(c.SessionID()), 3)
					require.NoError(t, h.Release())
				}
				time.Sleep(time.Minute)
				assert.Empty(t, srv.Ephemerals(0))
				assert.Equal(t, 1, tried.Fired())
			})
		})
	}
}

// A TryAcquire that does not wait lists each queue with a request of its own then.
func TestTryingAMultiLockOnServersThatCannotListTogether(t *testing.T) {
	for name, fault := range map[string]zktest.Fault{"cut": zktest.CutBefore(), "refused": zktest.Fail(-6)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c, other := connect(t, srv), connect(t, srv)
				lock := multiOf(c, 3)
				for i := range 3 {
					require.NoError(t, c.EnsurePath(t.Context(), fmt.Sprintf("/l/%d", i)))
				}
				tried := srv.On(zktest.Match{Op: "multiRead"}, fault)
				for range 2 {
					h, err := lock.TryAcquire(t.Context(), 0)
					require.NoError(t, err)
					require.NoError(t, h.Release())
				}
				h, err := locks.NewInterProcessMutex(other, "/l/1").Acquire(t.Context())
				require.NoError(t, err)
				creations := srv.Requests()["multi"]
				_, err = lock.TryAcquire(t.Context(), 0)
				require.ErrorIs(t, err, locks.ErrNotAcquired)
				assert.Equal(t, creations, srv.Requests()["multi"], "no node was made")
				require.NoError(t, h.Release())
				assert.Equal(t, 1, tried.Fired())
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
						c := connect(t, srv, func(cfg *framework.Config) { cfg.MaxReply = 4 << 10 })
						crowd := connect(t, srv)
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

// A connection that is lost tells nothing of a server that has listed queues
// together before.
func TestMultiLockListsTogetherAfterALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := connect(t, srv)
		lock := multiOf(c, 3)
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
		c := connect(t, srv, func(cfg *framework.Config) { cfg.MaxReply = 4 << 10 })
		for i := range 3 {
			require.NoError(t, c.EnsurePath(t.Context(), fmt.Sprintf("/l/%d/%s", i, strings.Repeat("x", 3<<10))))
		}
		lock := multiOf(c, 3)
		for range 2 {
			h, err := lock.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release())
		}
		assert.Equal(t, 1, srv.Requests()["connect"])
		assert.Empty(t, srv.Ephemerals(0))
	})
}
