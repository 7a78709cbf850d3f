package locks

import (
	"context"
	"fmt"
	"path"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	zktest "github.com/paddock-zk/paddock/testing"
)

// elsewhere runs a function in a goroutine of its own.
func elsewhere(f func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	wg.Wait()
}

func TestNumberOfAGoroutine(t *testing.T) {
	here := goroutine()
	assert.NotZero(t, here)
	assert.Equal(t, here, goroutine())
	elsewhere(func() { assert.NotContains(t, []uint64{0, here}, goroutine()) })
}

func connectInMemory(t *testing.T, srv *zktest.Server) *framework.Client {
	c, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString(), DialContext: srv.DialContext})
	require.NoError(t, err)
	return c
}

// A node says by its way and its tag what its owner has. Where the context says nothing, the goroutine may
// have something, until somebody has given that back. MultiLocks go by the context alone.
func TestWhatAGoroutineHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectInMemory(t, zktest.Start(t, zktest.InMemory()))
		defer func() { require.NoError(t, c.Close()) }()
		acquire := func(ctx context.Context, lock Lock) *Hold {
			h, err := lock.Acquire(ctx)
			require.NoError(t, err)
			return h
		}
		node := func(h *Hold) string { return path.Base(h.first().node.Path()) }
		mutex := func(p string) Lock { return NewInterProcessMutex(c, p) }
		first := acquire(t.Context(), mutex("/b"))
		tag := nodename.TagOf(node(first))
		for name, tc := range map[string]struct {
			acquire func() *Hold
			way     nodename.Way
			same    bool // owner
		}{
			"another lock":           {func() *Hold { return acquire(t.Context(), mutex("/c")) }, nodename.Unknown, true},
			"one at an earlier path": {func() *Hold { return acquire(t.Context(), mutex("/a")) }, nodename.Unknown, true},
			"with the context":       {func() *Hold { return acquire(first.Context(), mutex("/c")) }, nodename.Nesting, true},
			"with it, earlier":       {func() *Hold { return acquire(first.Context(), mutex("/a")) }, nodename.Reverse, true},
			"a semaphore":            {func() *Hold { return acquire(t.Context(), NewInterProcessSemaphoreMutex(c, "/s")) }, nodename.Unknown, true},
			"a MultiLock": {func() *Hold {
				return acquire(t.Context(), NewInterProcessMultiLock(mutex("/x"), mutex("/y")))
			}, nodename.Joint, false},
			"in another goroutine": {func() (h *Hold) {
				elsewhere(func() { h = acquire(t.Context(), mutex("/c")) })
				return h
			}, nodename.Plain, false},
		} {
			h := tc.acquire()
			assert.Equal(t, tc.way, nodename.WayOf(node(h)), name)
			assert.Equal(t, tc.same, nodename.TagOf(node(h)) == tag, name)
			require.NoError(t, h.Release())
		}
		elsewhere(func() { assert.NoError(t, first.Release()) })
		h := acquire(t.Context(), mutex("/c"))
		assert.Equal(t, nodename.Plain, nodename.WayOf(node(h)), "somebody else has released it")
		require.NoError(t, h.Release())
	})
}

// Nothing is remembered of goroutines once all that they have acquired is released or lost, also if nobody
// releases that.
func TestNothingRemainsOfGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		expires, closes := connectInMemory(t, srv), connectInMemory(t, srv)
		defer func() { require.NoError(t, expires.Close()) }()
		var mu sync.Mutex
		var all []uint64
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				c := []*framework.Client{expires, closes}[i%2]
				mu.Lock()
				all = append(all, goroutine())
				mu.Unlock()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				set := NewInterProcessMultiLock(NewInterProcessMutex(c, fmt.Sprint("/a", i%3)), NewInterProcessMutex(c, fmt.Sprint("/b", i%5)))
				hold, err := set.Acquire(ctx)
				if err != nil {
					return // its session has ended, or somebody keeps one
				}
				time.Sleep(10 * time.Millisecond)
				inner, err := NewInterProcessMutex(c, fmt.Sprint("/c", i)).Acquire(ctx)
				if err == nil && i%3 == 0 {
					elsewhere(func() { _ = inner.Release() })
				}
				if i%5 > 0 {
					_ = hold.Release()
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, srv.ExpireSession(expires.SessionID()))
		wg.Wait()
		require.NoError(t, srv.ExpireSession(expires.SessionID()))
		require.NoError(t, closes.Close())
		time.Sleep(time.Second)
		goroutines.mu.Lock()
		defer goroutines.mu.Unlock()
		for _, number := range all {
			assert.NotContains(t, goroutines.of, number)
		}
	})
}
