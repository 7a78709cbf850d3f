package acquire_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
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

// Somebody deletes the lock's own node again and again, between its creation
// and that of the node below.
func TestParentGoesAgainAndAgain(t *testing.T) {
	const times = 50
	for name, lock := range map[string]func(*framework.Client) locks.Lock{"mutex": kit.MutexAt("/p/l"), "multi": kit.MultiAt("/p/l"), "semaphore": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessSemaphore(c, "/p/l", 2)
	}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, operator := kit.Connect(t, srv), kit.Connect(t, srv)
				var n atomic.Int32
				srv.On(zktest.Match{Session: c.SessionID(), Func: func(r zktest.Request) bool {
					creates := (r.Op == "create2" || r.Op == "multi") && strings.HasPrefix(path.Base(r.Path), "_c_")
					return creates && n.Add(1) <= times
				}}, zktest.Call(func(r zktest.Request) {
					_ = operator.Delete(t.Context(), path.Dir(r.Path), framework.AnyVersion)
				}))
				h, err := lock(c).Acquire(t.Context())
				require.NoError(t, err)
				assert.GreaterOrEqual(t, n.Load(), int32(times))
				require.NoError(t, h.Release())
			})
		})
	}
}

// Containers are reaped before each request.
func TestContainersAreReapedAllTheTime(t *testing.T) {
	kit.EachLock(t, func(t *testing.T, lock func(*framework.Client) locks.Lock) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		h, err := lock(c).Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Release())
		var n atomic.Int32
		srv.On(zktest.Match{Session: c.SessionID(), Func: func(zktest.Request) bool { return n.Add(1) < 30 }},
			zktest.Call(func(zktest.Request) { srv.SweepContainers() }))
		h, err = lock(c).Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Err())
		require.NoError(t, h.Release())
	})
}

// The lock's own node goes between the look at what is missing and the creation
// of what is.
func TestParentIsReapedAsItIsUsed(t *testing.T) {
	kit.EachLock(t, func(t *testing.T, lock func(*framework.Client) locks.Lock) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		h, err := lock(c).Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Release())
		srv.SweepContainers()
		var n atomic.Int32
		srv.On(zktest.Match{Op: "createContainer", Session: c.SessionID(), Func: func(zktest.Request) bool { return n.Add(1) <= 3 }},
			zktest.Call(func(zktest.Request) { srv.SweepContainers() }))
		h, err = lock(c).Acquire(t.Context())
		require.NoError(t, err)
		assert.Greater(t, n.Load(), int32(1))
		require.NoError(t, h.Release())
	})
}

// The parents that a lock has made are containers, which the server removes.
func TestParentsGoWithTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		for range 2 {
			h, err := locks.NewInterProcessSemaphoreMutex(c, "/app/locks/l").Acquire(t.Context())
			require.NoError(t, err)
			srv.SweepContainers()
			require.NoError(t, h.Err(), "not while it is held")
			require.NoError(t, h.Release())
			for range 4 {
				srv.SweepContainers() // one level at a time
			}
			there, _, err := c.Exists(t.Context(), "/app")
			require.NoError(t, err)
			assert.False(t, there)
		}
	})
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
		a := kit.Acquire(t, kit.MutexAt("/l")(c))
		require.True(t, a.Waits(), "the other one is first")
		require.NoError(t, other.Delete(t.Context(), ours(), 0))
		h := a.Soon()
		standsOn(t, other, h, c.SessionID())
		require.NoError(t, h.Release())
	})
}

// fewestBytes is the least that a request may be limited to.
const fewestBytes = 4096

// A request that is too large is refused before it is sent, wherever an
// acquisition has got to: here they are large by their paths.
func TestTooLargeAtAnyRequest(t *testing.T) {
	for _, name := range []string{"mutex", "semaphore mutex"} {
		t.Run(name, func(t *testing.T) {
			refused := make(map[int]bool)
			for size := fewestBytes - 100; !t.Failed(); size -= 4 {
				done := false
				synctest.Test(t, func(t *testing.T) { done = tooLarge(t, kit.Locks[name], size, refused) })
				if done {
					break
				}
			}
			assert.NotEmpty(t, refused)
		})
	}
}

// tooLarge is whether a lock could be taken below a path of so many bytes, and
// notes how many requests were sent until one was refused.
func tooLarge(t *testing.T, lock kit.LockOf, size int, refused map[int]bool) bool {
	t.Helper()
	long := func(cfg *framework.Config) { cfg.Namespace = strings.Repeat("x", size) }
	srv := zktest.Start(t, zktest.InMemory())
	h, err := lock(kit.Connect(t, srv, long)).Acquire(t.Context()) // who makes the parents
	require.NoError(t, err)
	require.NoError(t, h.Release())
	time.Sleep(time.Minute)
	c := kit.Connect(t, srv, long, func(cfg *framework.Config) { cfg.MaxRequest = fewestBytes })
	sent := srv.On(zktest.Match{Session: c.SessionID(), Func: func(r zktest.Request) bool { return r.Op != "ping" }}, zktest.Delay(0))
	h, err = lock(c).TryAcquire(t.Context(), 0)
	if err == nil {
		require.NoError(t, h.Release())
		return true
	}
	require.ErrorIs(t, err, framework.ErrTooLarge)
	refused[sent.Fired()] = true
	if queue, ok := lock(c).(interface {
		Participants(ctx context.Context) ([]locks.Participant, error)
	}); ok {
		if _, err := queue.Participants(t.Context()); err != nil {
			require.ErrorIs(t, err, framework.ErrTooLarge)
		}
	}
	time.Sleep(time.Minute)
	assert.Empty(t, srv.Ephemerals(c.SessionID()))
	return false
}

// More nodes than fit into one transaction are refused before anything is sent.
func TestMultiLockTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		var lockSet []locks.Lock
		for i := range 60 {
			lockSet = append(lockSet, locks.NewInterProcessMutex(c, fmt.Sprintf("/l/%02d", i), locks.NodeData(make([]byte, 10_000))))
		}
		lock := locks.NewInterProcessMultiLock(lockSet...)
		_, err := lock.Acquire(t.Context())
		require.ErrorIs(t, err, framework.ErrTooLarge)
		assert.Contains(t, err.Error(), "Ordered")
		assert.Empty(t, srv.Ephemerals(0))
		h, err := lock.Ordered().Acquire(t.Context())
		require.NoError(t, err)
		assert.Len(t, srv.Ephemerals(0), 60)
		require.NoError(t, h.Release())
	})
}
