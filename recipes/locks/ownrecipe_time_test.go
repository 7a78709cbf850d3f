package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/internal/lockopt"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func newLatch(c *framework.Client, path, id string) *latch {
	return &latch{locks.NewInterProcessMutex(c, path, lockopt.Set(func(o *lockopt.Options) {
		o.Kind, o.Data, o.HasData, o.Handovers = "latch-", []byte(id), true, 0
	}))}
}

func TestElectionBuiltUponALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a, b := newLatch(kit.Connect(t, srv), "/leader", "a"), newLatch(kit.Connect(t, srv), "/leader", "b")
		leads, err := a.await(t.Context())
		require.NoError(t, err)
		assert.Regexp(t, `^/leader/_c_[-0-9a-f]{36}-latch-0000000000$`, leads.Path())
		next := make(chan *locks.Hold, 1)
		go func() {
			hold, err := b.await(t.Context())
			assert.NoError(t, err)
			next <- hold
		}()
		time.Sleep(time.Minute)
		ids, err := b.candidates(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b"}, ids)
		require.NoError(t, leads.Release())
		require.NoError(t, (<-next).Release())
	})
}
