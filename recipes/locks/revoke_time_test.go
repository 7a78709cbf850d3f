package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// AttemptRevoke writes to nothing that is not the node of a revocable lock.
func TestAttemptRevokeLeavesOtherNodesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		create := func(path string, mode framework.Mode) string {
			node, err := c.Create(t.Context(), path, []byte("precious"), mode, framework.Parents())
			require.NoError(t, err)
			return node
		}
		own := locks.NodeData([]byte("precious"))
		term, err := leader.NewLatch(c, "/latch", leader.ID("precious")).Await(t.Context())
		require.NoError(t, err)
		for name, tc := range map[string]struct{ path, says string }{
			"a node":                    {create("/app/config", framework.Persistent), "name"},
			"an ephemeral node":         {create("/app/instance", framework.Ephemeral), "name"},
			"a name like a lock":        {create("/app/my-lock-table", framework.Persistent), "name"},
			"a persistent participant":  {create("/app/lock-0000000001", framework.Persistent), "not ephemeral"},
			"a container":               {create("/app/lock-0000000002", framework.Container), "not ephemeral"},
			"kazoo's":                   {create("/app/1__lock__", framework.EphemeralSequential), "kazoo"},
			"a lease of Curator's":      {create("/s/leases/_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-lease-", framework.EphemeralSequential), "semaphore"},
			"a latch":                   {term.Path(), "latch"},
			"a mutex that has data":     {kit.Hold(t, locks.NewInterProcessMutex(c, "/m", own)).Path(), "without Revocable"},
			"a semaphore that has data": {kit.Hold(t, locks.NewInterProcessSemaphore(c, "/n", 2, own)).Path(), "without Revocable"},
		} {
			err := locks.AttemptRevoke(t.Context(), c, tc.path)
			require.ErrorIs(t, err, locks.ErrNotRevocable, name)
			require.ErrorContains(t, err, tc.says, name)
			data, stat, err := c.Get(t.Context(), tc.path)
			require.NoError(t, err)
			assert.Equal(t, "precious", string(data), name)
			assert.Zero(t, stat.Version, name)
		}
	})
}

// What can be the node of a revocable lock is asked, once.
func TestAttemptRevoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		java, err := c.Create(t.Context(), "/j/_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-lock-", []byte("10.0.0.1"), framework.EphemeralSequential, framework.Parents())
		require.NoError(t, err)
		for _, path := range []string{
			java, // Curator's revocable locks have the host's address as data
			kit.Hold(t, locks.NewInterProcessMutex(c, "/m", locks.Revocable())).Path(),
			kit.Hold(t, locks.NewInterProcessReadWriteLock(c, "/rw", locks.Revocable()).ReadLock()).Path(),
			kit.Hold(t, locks.NewInterProcessSemaphoreMutex(c, "/s", locks.Revocable())).Path(),
		} {
			for range 2 {
				require.NoError(t, locks.AttemptRevoke(t.Context(), c, path))
				data, stat, err := c.Get(t.Context(), path)
				require.NoError(t, err)
				assert.Equal(t, "__REVOKE__", string(data))
				assert.Equal(t, int32(1), stat.Version)
			}
		}
		require.NoError(t, locks.AttemptRevoke(t.Context(), c, "/m/lock-0000000009"), "there is no such node")
	})
}

// Whoever writes to the node between the look and the request is not overwritten.
func TestAttemptRevokeRacesWithAWrite(t *testing.T) {
	for says, want := range map[string]error{"precious": locks.ErrNotRevocable, "": nil, "__REVOKE__": nil} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
			c, other := kit.Connect(t, srv), kit.Connect(t, srv)
			hold := kit.Hold(t, locks.NewInterProcessMutex(c, "/m", locks.Revocable()))
			asked := make(chan error)
			go func() { asked <- locks.AttemptRevoke(t.Context(), c, hold.Path()) }()
			time.Sleep(time.Millisecond) // the look is answered 2 ms after it began, and this write is before the next request
			_, err := other.Set(t.Context(), hold.Path(), []byte(says), framework.AnyVersion)
			require.NoError(t, err)
			require.ErrorIs(t, <-asked, want)
			data, _, err := c.Get(t.Context(), hold.Path())
			require.NoError(t, err)
			if want != nil {
				assert.Equal(t, says, string(data))
			} else {
				assert.Equal(t, "__REVOKE__", string(data))
			}
		})
	}
}

// Somebody else may tell of a node before the server of the client knows of it.
func TestAttemptRevokeAtAServerThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.StartCluster(t, 3, zktest.InMemory())
		require.NoError(t, cluster.WaitLeader(t.Context()))
		leads := cluster.Leader()
		behind := (leads + 1) % 3
		at := func(i int) *framework.Client {
			return kit.Connect(t, cluster.Member(i))
		}
		holder, c := at(leads), at(behind)
		cluster.Lag(behind, time.Second)
		hold := kit.Hold(t, locks.NewInterProcessMutex(holder, "/m", locks.Revocable()))
		require.NoError(t, locks.AttemptRevoke(t.Context(), c, hold.Path()))
		select {
		case <-hold.Revoked():
		case <-time.After(time.Minute):
			t.Error("it was not asked")
		}
	})
}
