package locks_test

import (
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

// A release that is refused is tried again, and not only with the end of the
// session.
func TestRefusedReleaseIsTriedAgain(t *testing.T) {
	const noAuth = -102
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		refused := srv.On(zktest.Match{Op: "delete", Session: c.SessionID()}, zktest.Fail(noAuth))
		require.ErrorIs(t, h.Release(), framework.ErrNoAuth)
		time.Sleep(time.Minute)
		assert.Greater(t, refused.Fired(), 5)
		assert.Len(t, srv.Ephemerals(c.SessionID()), 1)
		refused.Remove()
		time.Sleep(10 * time.Second)
		assert.Empty(t, srv.Ephemerals(c.SessionID()))
	})
}

// More leases are given back than fit into one request.
func TestReleaseHeedsTheFrameLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const frame, leases = 16 << 10, 300
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond), zktest.MaxFrame(frame))
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.MaxRequest = frame })
		changes := kit.CountStates(c)
		h, err := locks.NewInterProcessSemaphore(c, "/s", leases).AcquireN(t.Context(), leases)
		require.NoError(t, err)
		require.NoError(t, h.Release())
		assert.Empty(t, srv.Ephemerals(0))
		synctest.Wait()
		assert.Equal(t, 1, *changes, "the connection stands")
	})
}

func TestReleaseWaitsAsLongAsItShall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		c := kit.Connect(t, srv)
		var holds []*locks.Hold
		limits := []time.Duration{3 * time.Second, 0, time.Second, 2 * time.Second, 10 * time.Millisecond, time.Hour}
		for i, limit := range limits {
			l := locks.NewInterProcessMutex(c, "/l"+string(rune('a'+i)), locks.ReleaseWait(limit))
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			holds = append(holds, h)
		}
		srv.Freeze()
		began := time.Now()
		for i, h := range holds {
			go func() {
				err := h.Release()
				if limits[i] == time.Hour {
					assert.NoError(t, err)
					assert.Less(t, time.Since(began), 5*time.Second)
					return
				}
				assert.ErrorIs(t, err, locks.ErrReleasePending)
				assert.Equal(t, max(0, limits[i]), time.Since(began))
			}()
		}
		time.Sleep(4 * time.Second)
		srv.Thaw()
		time.Sleep(time.Second)
		assert.Empty(t, srv.Ephemerals(0), "it went on in the background")
	})
}

func TestReleaseWhileTheClientCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l", locks.ReleaseWait(time.Hour)).Acquire(t.Context())
		require.NoError(t, err)
		srv.Freeze()
		released := make(chan error)
		go func() { released <- h.Release() }()
		synctest.Wait()
		go func() { _ = c.Close() }()
		require.ErrorIs(t, <-released, locks.ErrReleasePending)
		srv.Thaw()
	})
}
