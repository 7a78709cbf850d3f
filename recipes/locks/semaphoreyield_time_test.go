package locks_test

import (
	"context"
	"path"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Who gives up its turn stays the owner that it was, for those who look at names.
func TestAcquireNKeepsItsTagWhenItYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c, other := connect(t, srv), connect(t, srv)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		theirs := locks.NewInterProcessSemaphore(other, "/s", 2)
		first, err := theirs.Acquire(ctx)
		require.NoError(t, err)
		go func() {
			if h, err := locks.NewInterProcessSemaphore(c, "/s", 2).AcquireN(ctx, 2); err == nil {
				<-ctx.Done()
				_ = h.Release()
			}
		}()
		tags := make(map[string]bool)
		look := func() {
			for _, node := range srv.Ephemerals(c.SessionID()) {
				tag, _ := nodename.TagOf(path.Base(node))
				tags[tag] = true
			}
		}
		time.Sleep(100 * time.Millisecond)
		look()
		second, err := theirs.Acquire(ctx) // when it has yielded
		require.NoError(t, err)
		require.NoError(t, second.Release())
		require.NoError(t, first.Release())
		time.Sleep(time.Second)
		require.Len(t, srv.Ephemerals(c.SessionID()), 2, "its turn comes")
		look()
		assert.Len(t, tags, 1)
		assert.NotContains(t, tags, "000000000000")
	})
}

// Whose place in the queue is deleted queues again at its end, and must not keep
// the lease there for which those before it wait.
func TestLeaseGoesWithTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		holder, first, second := connect(t, srv), connect(t, srv), connect(t, srv)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		h, err := locks.NewInterProcessSemaphoreMutex(holder, "/x").Acquire(ctx)
		require.NoError(t, err)
		var served sync.WaitGroup
		for _, c := range []*framework.Client{first, second} {
			served.Go(func() {
				h, err := locks.NewInterProcessSemaphoreMutex(c, "/x").Acquire(ctx)
				if assert.NoError(t, err) {
					assert.NoError(t, h.Release())
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		for _, node := range srv.Ephemerals(first.SessionID()) {
			if path.Dir(node) == "/x/locks" {
				require.NoError(t, holder.Delete(ctx, node, framework.AnyVersion))
			}
		}
		// It is interrupted when it looks at the leases, so it looks at the queue again.
		srv.On(zktest.Match{Op: "getChildren2", Session: first.SessionID(), Nth: 1}, zktest.CutBefore())
		require.NoError(t, h.Release())
		served.Wait()
	})
}
