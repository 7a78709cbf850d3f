package session_test

import (
	"context"
	"fmt"
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

// A client holds more nodes than fit into one request.
func TestRenewalsHeedTheFrameLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		frame, holds, path int
	}{
		"small frames": {64 << 10, 400, 150},
		"long paths":   {1<<20 - 1, 420, 2700},
		"one by one":   {4 << 10, 30, 3000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const timeout = 4 * time.Second
				srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(timeout/10), zktest.Latency(time.Millisecond), zktest.MaxFrame(tc.frame))
				c, operator := kit.Connect(t, srv, kit.Within(timeout, 0), func(cfg *framework.Config) { cfg.MaxRequest = tc.frame }), kit.Connect(t, srv)
				changes := kit.CountStates(c)
				var holds []*locks.Hold
				for i := range tc.holds {
					path := fmt.Sprintf("/%0*d", tc.path-64, i)
					h, err := locks.NewInterProcessMutex(c, path).Acquire(t.Context())
					require.NoError(t, err)
					holds = append(holds, h)
				}
				time.Sleep(5 * timeout)
				synctest.Wait()
				assert.Equal(t, 1, *changes, "the connection stands")
				for _, h := range holds {
					require.Equal(t, locks.Held, h.State())
				}
				require.NoError(t, srv.Disconnect(c.SessionID()))
				require.NoError(t, operator.Delete(t.Context(), holds[7].Path(), framework.AnyVersion))
				time.Sleep(timeout)
				for i, h := range holds {
					require.Equal(t, map[bool]locks.HoldState{true: locks.Lost, false: locks.Held}[i == 7], h.State(), "verified on the next connection")
				}
				for _, h := range holds {
					_ = h.Release()
				}
			})
		})
	}
}

func TestNodesAreWatchedOnlyWhenTheyLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l")
		for range 100 {
			require.NoError(t, locks.Do(t.Context(), m, func(context.Context) error {
				time.Sleep(time.Millisecond)
				return nil
			}))
		}
		assert.Zero(t, srv.Requests()["getData"], "short holds cost nothing")
		h, err := m.Acquire(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		assert.Len(t, srv.Watches(), 1)
		require.NoError(t, h.Release())
		synctest.Wait()
		kit.NothingLeft(t, srv)
	})
}

func TestNodeThatIsDeletedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		c, operator := kit.Connect(t, srv), kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		for range 3 { // somebody writes to it
			_, err = operator.Set(t.Context(), h.Path(), []byte("x"), framework.AnyVersion)
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		require.NoError(t, h.Err())
		require.NoError(t, operator.Delete(t.Context(), h.Path(), framework.AnyVersion))
		time.Sleep(100 * time.Millisecond)
		require.ErrorIs(t, context.Cause(h.Context()), locks.ErrLockLost, "the watch says so at once")
		require.ErrorIs(t, h.Err(), locks.ErrNodeDeleted)
	})
}
