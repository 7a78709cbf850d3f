package locks_test

import (
	"context"
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

// A front waiter that gives up passes on the node, whatever it knows of it.
func TestLeadIsPassedOn(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, d / 2, d, 3 * d / 2, 2 * d, 3 * d, 4 * d, time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				h, err := locks.NewInterProcessMutex(other, "/l").Acquire(t.Context())
				require.NoError(t, err)
				creations := srv.Requests()["create2"]
				m := locks.NewInterProcessMutex(c, "/l")
				ctx, cancel := context.WithTimeout(t.Context(), after+1)
				defer cancel()
				gaveUp := make(chan error, 1)
				go func() {
					_, err := m.Acquire(ctx)
					gaveUp <- err
				}()
				synctest.Wait()
				wg := kit.InLine(t, 2, kit.Same(m), func(int, *locks.Hold) {})
				require.ErrorIs(t, <-gaveUp, context.DeadlineExceeded)
				time.Sleep(time.Minute)
				assert.Len(t, srv.Ephemerals(c.SessionID()), 1)
				assert.Equal(t, creations+1, srv.Requests()["create2"], "none again")
				require.NoError(t, h.Release())
				wg.Wait()
				synctest.Wait()
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// Before the servers have said that others are ahead, nobody is told so.
func TestTryingBehindALeaderWhoKnowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/l"))
		srv.On(zktest.Match{Op: "create2"}, zktest.Delay(5*time.Second))
		m := locks.NewInterProcessMutex(c, "/l")
		wg := kit.InLine(t, 1, kit.Same(m), func(int, *locks.Hold) {})
		_, err := m.TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, framework.ErrNotConnected)
		wg.Wait()
	})
}
