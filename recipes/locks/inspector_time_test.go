package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A client shows its holds and who waits, on the servers and in the local queue.
func TestInspector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		assert.Empty(t, c.Holds(), "no lock was made")
		assert.Empty(t, c.Waiters())

		began := time.Now()
		mutex := locks.NewInterProcessMutex(c, "/m", locks.NodeData([]byte("worker 7")))
		hold := kit.Hold(t, mutex)
		again, err := mutex.Acquire(hold.Context())
		require.NoError(t, err)
		holds := c.Holds()
		require.Len(t, holds, 1, "re-entry makes no second one")
		assert.Equal(t, monitor.Lock{Kind: monitor.Mutex, Path: "/m", Node: hold.Path(), Token: hold.FencingToken(), Participant: "worker 7"}, holds[0].Lock)
		assert.Equal(t, 2, holds[0].Holds)
		assert.Equal(t, c.SessionID(), holds[0].Session)
		assert.WithinDuration(t, began, holds[0].Since, time.Second)
		assert.False(t, holds[0].MultiLock || holds[0].Uncertain)

		theirs := kit.Hold(t, kit.MutexAt("/n")(other))
		front := kit.Acquire(t, kit.MutexAt("/n")(c))
		synctest.Wait()
		behind := kit.Acquire(t, kit.MutexAt("/n")(c))
		synctest.Wait()
		waiters := c.Waiters()
		require.Len(t, waiters, 2)
		if waiters[0].Local {
			waiters[0], waiters[1] = waiters[1], waiters[0]
		}
		assert.Equal(t, 1, waiters[0].Ahead)
		assert.Equal(t, theirs.Path(), waiters[0].Behind)
		assert.False(t, waiters[0].Local)
		assert.True(t, waiters[1].Local, "it waits behind the other one")
		for _, w := range waiters {
			assert.Equal(t, "/n", w.Lock.Path)
		}

		require.NoError(t, theirs.Release())
		require.NoError(t, front.Soon().Release())
		require.NoError(t, behind.Soon().Release())
		multi := kit.Hold(t, kit.MultiAt("/l")(c))
		inMulti := 0
		for _, h := range c.Holds() {
			if h.MultiLock {
				inMulti++
			}
		}
		assert.Equal(t, 2, inMulti, "each of its members")
		require.NoError(t, multi.Release())
		require.NoError(t, again.Release())
		require.NoError(t, hold.Release())
		assert.Empty(t, c.Holds())
		assert.Empty(t, c.Waiters())
	})
}
