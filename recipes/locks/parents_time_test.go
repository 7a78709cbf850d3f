package locks_test

import (
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

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
	for name, lock := range map[string]func(*framework.Client) locks.Lock{"mutex": mutexAt("/p/l"), "multi": multiAt("/p/l"), "semaphore": func(c *framework.Client) locks.Lock {
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
	eachLock(t, func(t *testing.T, lock func(*framework.Client) locks.Lock) {
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
	eachLock(t, func(t *testing.T, lock func(*framework.Client) locks.Lock) {
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
