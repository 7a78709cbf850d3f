package locks_test

import (
	"context"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// What is acquired under a lock says that its owner has another one. Once a look has shown that nobody who may
// have others wants that lock, it says nothing, and a MultiLock says that it is one, until the next look.
func TestWhatANodeSaysUnderALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		mutex := func(p string) locks.Lock { return locks.NewInterProcessMutex(c, p) }
		says := func(ctx context.Context, lock locks.Lock) nodename.Way {
			h := kit.AcquireWith(ctx, t, lock).Soon()
			defer func() { require.NoError(t, h.Release()) }()
			return nodename.WayOf(path.Base(append(h.Members(), h)[0].Path()))
		}
		outer := kit.Hold(t, mutex("/m"))
		both := locks.NewInterProcessMultiLock(mutex("/x"), mutex("/y"))
		check := func(later, earlier, multi nodename.Way, when string) {
			t.Helper()
			assert.Equal(t, later, says(outer.Context(), mutex("/x")), when)
			assert.Equal(t, earlier, says(outer.Context(), mutex("/a")), when)
			assert.Equal(t, multi, says(outer.Context(), both), when)
		}
		check(nodename.Nesting, nodename.Reverse, nodename.Joint, "it was just taken")
		time.Sleep(acquire.LookEvery)
		requests := srv.Counters().Received
		check(nodename.Unknown, nodename.Unknown, nodename.Joint, "nobody wants it")
		for range 10 {
			check(nodename.Unknown, nodename.Unknown, nodename.Joint, "nobody wants it")
		}
		assert.LessOrEqual(t, int(srv.Counters().Received-requests), 11*(3+3+4)+1, "one look")

		plain := kit.Acquire(t, locks.NewInterProcessMutex(other, "/m"))
		require.NoError(t, srv.WaitChildren(t.Context(), "/m", 2))
		time.Sleep(acquire.LookEvery)
		check(nodename.Unknown, nodename.Unknown, nodename.Joint, "somebody who has nothing wants it")
		theirs := kit.Hold(t, locks.NewInterProcessMutex(other, "/b"))
		wants := kit.AcquireWith(theirs.Context(), t, locks.NewInterProcessMutex(other, "/m"))
		require.NoError(t, srv.WaitChildren(t.Context(), "/m", 3))
		time.Sleep(acquire.LookEvery)
		check(nodename.Nesting, nodename.Reverse, nodename.Nesting, "somebody who has another lock wants it")
		for _, lock := range []locks.Lock{mutex("/of/x"), locks.NewInterProcessMultiLock(mutex("/of/x"), mutex("/of/y"))} {
			assert.Equal(t, nodename.Unknown, says(outer.Context(), lock), "of another kind: %v", lock)
		}

		require.NoError(t, outer.Release())
		require.NoError(t, plain.Soon().Release())
		require.NoError(t, wants.Soon().Release())
		require.NoError(t, theirs.Release())
	})
}

// A goroutine of the same client that waits for the lock has no node at the servers, so a list does not show it.
func TestWhatANodeSaysUnderALockThatItsClientWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kit.Connect(t, zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near)))
		outer := kit.Hold(t, locks.NewInterProcessMutex(c, "/m"))
		wants := kit.Acquire(t, locks.NewInterProcessMutex(c, "/m"))
		time.Sleep(acquire.LookEvery)
		require.True(t, wants.Waits())
		for p, way := range map[string]nodename.Way{"/x": nodename.Nesting, "/a": nodename.Reverse} {
			h := kit.HoldWith(outer.Context(), t, locks.NewInterProcessMutex(c, p))
			assert.Equal(t, way, nodename.WayOf(path.Base(h.Path())), p)
			require.NoError(t, h.Release())
		}
		require.NoError(t, outer.Release())
		require.NoError(t, wants.Soon().Release())
	})
}

// A MultiLock waits under a lock that nobody wants, and that somebody who is in its way comes to want. Then its nodes
// say that it has that lock, or nobody would make room: not the other MultiLock, which takes it for its like.
func TestMultiLockUnderALockThatIsWantedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
		a, b, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
		has := kit.Hold(t, locks.NewInterProcessMutex(c, "/a"))
		outer := kit.Hold(t, locks.NewInterProcessMutex(b, "/h"))
		both := kit.Acquire(t, locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(a, "/a"), locks.NewInterProcessMutex(a, "/q")))
		require.NoError(t, srv.WaitChildren(t.Context(), "/q", 1))
		inner := kit.AcquireWith(outer.Context(), t, locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(b, "/q"), locks.NewInterProcessMutex(b, "/r")))
		time.Sleep(10 * time.Second)

		began := time.Now()
		wants := kit.AcquireWith(has.Context(), t, locks.NewInterProcessMutex(c, "/h"))
		require.NoError(t, inner.Soon().Release())
		assert.Less(t, time.Since(began), time.Second)
		require.NoError(t, outer.Release())
		require.NoError(t, wants.Soon().Release())
		require.NoError(t, has.Release())
		require.NoError(t, both.Soon().Release())
	})
}
