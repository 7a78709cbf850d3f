package acquire_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func mutexesOf(c *framework.Client, paths string) (set []locks.Lock) {
	for _, p := range strings.Fields(paths) {
		set = append(set, locks.NewInterProcessMutex(c, p))
	}
	return set
}

// A MultiLock that goes in another order says so with every node that it makes from then on. In the
// circle here one goes in the reverse order, and two in that of the paths. Two of them have changed
// their order, and block with nodes that they made after that. With the former marks each of the three
// takes the one behind it for its like, and all wait for ever.
func TestNodesSayTheOrderOfTheirMultiLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
		connect := func() *framework.Client { return kit.Connect(t, srv) }
		hold := func(ctx context.Context, c *framework.Client, path string) *locks.Hold {
			return kit.HoldWith(ctx, t, locks.NewInterProcessMutex(c, path))
		}
		var wg sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := func(name string, m *locks.InterProcessMultiLock) {
			wg.Go(func() { assert.NoError(t, locks.Do(ctx, m, func(context.Context) error { return nil }), name) })
		}
		waits := func(path string, n int) { require.NoError(t, srv.WaitChildren(t.Context(), path, n)) }

		second, eighth := hold(ctx, connect(), "/2"), hold(ctx, connect(), "/8")
		reverse := connect()
		above := hold(ctx, reverse, "/90")
		begin("ordered, then backward", locks.NewInterProcessMultiLock(mutexesOf(connect(), "/1 /2 /3 /7")...).Ordered())
		waits("/2", 2)
		begin("backward, then ordered", locks.NewInterProcessMultiLock(mutexesOf(connect(), "/5 /7 /8 /9")...))
		waits("/8", 2)
		seventh := hold(above.Context(), reverse, "/7") // the second one goes backward
		first := hold(above.Context(), reverse, "/1")   // the first one does
		waits("/7", 2)
		require.NoError(t, first.Release())
		inOrder := connect()
		below := hold(ctx, inOrder, "/0")
		ninth := hold(below.Context(), inOrder, "/9") // the second one goes in order
		waits("/7", 3)
		require.NoError(t, ninth.Release())
		begin("ordered", locks.NewInterProcessMultiLock(mutexesOf(connect(), "/3 /5")...).Ordered())
		waits("/5", 2)
		require.NoError(t, seventh.Release())
		waits("/3", 2)

		for _, h := range []*locks.Hold{second, eighth, above, below} {
			require.NoError(t, h.Release())
		}
		wg.Wait()
	})
}

// In another session a MultiLock begins anew, and so do the marks of its nodes.
func TestMarksInAnotherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
		nests, holder, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
		held := kit.Hold(t, locks.NewInterProcessMutex(holder, "/b"))
		outer := kit.Hold(t, locks.NewInterProcessMutex(nests, "/0"))
		multi := kit.Acquire(t, locks.NewInterProcessMultiLock(mutexesOf(c, "/a /b /c")...))
		require.NoError(t, srv.WaitChildren(t.Context(), "/b", 2))
		inner, err := locks.NewInterProcessMutex(nests, "/c").Acquire(outer.Context())
		require.NoError(t, err)
		require.NoError(t, inner.Release())
		require.NoError(t, outer.Release())
		require.NoError(t, srv.ExpireSession(c.SessionID()))
		require.NoError(t, srv.WaitChildren(t.Context(), "/c", 1))
		names, _, err := nests.Children(t.Context(), "/c")
		require.NoError(t, err)
		require.Len(t, names, 1)
		assert.Equal(t, nodename.Joint, nodename.WayOf(names[0]))
		require.NoError(t, held.Release())
		require.NoError(t, multi.Soon().Release())
	})
}
