package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Holder and waiter both come through a stop and a restart of the server that
// is shorter than their sessions.
func TestLockThroughARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a, b := connect(t, srv), connect(t, srv)
		for name, lock := range map[string]func(c *framework.Client) locks.Lock{
			"mutex":           func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/m") },
			"semaphore mutex": func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/s") },
			"multi": func(c *framework.Client) locks.Lock {
				return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/x"), locks.NewInterProcessMutex(c, "/y"))
			},
		} {
			held, err := lock(a).Acquire(t.Context())
			require.NoError(t, err, name)
			got := make(chan *locks.Hold, 1)
			go func() {
				h, err := lock(b).Acquire(t.Context())
				assert.NoError(t, err, name)
				got <- h
			}()
			time.Sleep(time.Second)
			require.NoError(t, srv.Stop())
			time.Sleep(5 * time.Second)
			require.Equal(t, locks.Uncertain, held.State(), name)
			select {
			case <-got:
				require.Fail(t, "acquired while no server was there", name)
			default:
			}
			require.NoError(t, srv.Restart())
			time.Sleep(10 * time.Second)
			require.Equal(t, locks.Held, held.State(), name)
			require.NoError(t, held.Context().Err(), name)
			require.NoError(t, held.Release(), name)
			require.NoError(t, (<-got).Release(), name)
		}
	})
}

// The parents that a lock has made are containers, which the server removes.
func TestParentsGoWithTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		for range 2 {
			h, err := locks.NewInterProcessSemaphoreMutex(c, "/app/locks/l").Acquire(t.Context())
			require.NoError(t, err)
			srv.SweepContainers()
			require.NoError(t, h.Err(), "not while it is held")
			require.NoError(t, h.Release())
			for range 4 {
				srv.SweepContainers() // one level at a time
			}
			there, _, err := c.Exists(t.Context(), "/app")
			require.NoError(t, err)
			assert.False(t, there)
		}
	})
}
