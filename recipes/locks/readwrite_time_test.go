package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// An owner that has the read side and wants the write side waits for itself.
func TestUpgradeIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		lock := locks.NewInterProcessReadWriteLock(kit.Connect(t, srv), "/l")
		r, err := lock.ReadLock().Acquire(t.Context())
		require.NoError(t, err)
		began := time.Now()
		_, err = lock.WriteLock().TryAcquire(r.Context(), time.Minute)
		require.ErrorIs(t, err, locks.ErrDeadlock)
		assert.Zero(t, time.Since(began))
		require.NoError(t, r.Release())
	})
}
