package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

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
