package session_test

import (
	"fmt"
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

// A call has few requests on their way at once, however many it needs.
func TestRequestsOnTheirWay(t *testing.T) {
	const n = 3000
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv)
		kit.Fill(t, kit.Connect(t, srv), "/l", "x-lock-", n)
		var mu sync.Mutex
		together := make(map[time.Time]int) // requests that came at one instant
		srv.On(zktest.Match{Session: c.SessionID(), Func: func(zktest.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			together[time.Now()]++
			return false
		}}, zktest.CutBefore())
		most := func() (most int) {
			mu.Lock()
			defer mu.Unlock()
			for _, n := range together {
				most = max(most, n)
			}
			clear(together)
			return most
		}
		lock := locks.NewInterProcessMutex(c, "/l")
		var wg sync.WaitGroup
		for _, calls := range []int{1, 3} {
			for range calls {
				wg.Go(func() {
					all, err := lock.Participants(t.Context())
					assert.NoError(t, err)
					assert.Len(t, all, n)
				})
			}
			wg.Wait()
			assert.LessOrEqual(t, most(), 256*calls)
		}

		leases := locks.NewInterProcessSemaphore(c, "/s", n)
		h, err := leases.AcquireN(t.Context(), n)
		require.NoError(t, err)
		assert.LessOrEqual(t, most(), 256)
		time.Sleep(time.Second)
		assert.Len(t, srv.Watches(), n, "one on each lease")
		assert.LessOrEqual(t, most(), 256, "watches are set")
		require.NoError(t, h.Release())
		assert.LessOrEqual(t, most(), 256)
		time.Sleep(time.Second)
		assert.Empty(t, srv.Watches())
		assert.Empty(t, srv.Ephemerals(c.SessionID()))

		var watches []*framework.Watch
		for i := range n {
			_, _, w, err := c.ExistsW(t.Context(), fmt.Sprint("/w", i))
			require.NoError(t, err)
			watches = append(watches, w)
		}
		assert.Len(t, srv.Watches(), n)
		most()
		for _, w := range watches {
			w.Stop()
		}
		time.Sleep(time.Second)
		assert.LessOrEqual(t, most(), 256, "watches are removed")
		assert.Empty(t, srv.Watches())
	})
}

// The shorter the session timeout, the less servers are trusted to answer in time
// before they have shown it. Two batches are no more than that.
func TestBatchesFitIntoTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(400*time.Millisecond), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.SessionTimeout = time.Second })
		kit.Fill(t, kit.Connect(t, srv), "/l", "x-lock-", 300)
		var mu sync.Mutex
		var first time.Time
		together := 0 // reads that came at the first instant
		srv.On(zktest.Match{Session: c.SessionID(), Func: func(r zktest.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case r.Op != "getData" && r.Op != "exists":
			case first.IsZero():
				first, together = time.Now(), 1
			case first.Equal(time.Now()):
				together++
			}
			return false
		}}, zktest.CutBefore())
		all, err := locks.NewInterProcessMutex(c, "/l").Participants(t.Context())
		require.NoError(t, err)
		assert.Len(t, all, 300)
		mu.Lock()
		defer mu.Unlock()
		assert.LessOrEqual(t, together, 40)
		assert.Positive(t, together)
	})
}
