package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// near is how far away a server is, each way, whose round trips are short next to
// what a MultiLock waits before it yields.
const near = 200 * time.Microsecond

// An ordered MultiLock sees that it is in the way of who has a lock that it has
// not come to yet.
func TestOrderedMultiLockYieldsToOwnersOfLaterLocks(t *testing.T) {
	for name, later := range map[string]func(c *framework.Client) locks.Lock{
		"mutex":           func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/c") },
		"semaphore mutex": func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/c") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(near))
				stranger, nests, c := connect(t, srv), connect(t, srv), connect(t, srv)
				outer, err := later(nests).Acquire(t.Context())
				require.NoError(t, err)
				b, err := locks.NewInterProcessMutex(stranger, "/b").Acquire(t.Context())
				require.NoError(t, err)
				m := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b"), later(c))
				multi := acquiring(t, m.Ordered())
				require.NoError(t, srv.WaitChildren(t.Context(), "/b", 2)) // it has /a
				began := time.Now()
				inner, err := locks.NewInterProcessMutex(nests, "/a").Acquire(outer.Context())
				require.NoError(t, err)
				assert.Less(t, time.Since(began), 15*time.Millisecond, "before it would yield to anybody")
				require.NoError(t, inner.Release())
				require.NoError(t, outer.Release())
				require.NoError(t, b.Release())
				require.NoError(t, (<-multi).Release())
			})
		})
	}
}

// MultiLocks of one client do not take each other for who holds what both wait
// for.
func TestMultiLocksOfOneClientKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(near))
		c := connect(t, srv)
		lock := func(path string) locks.Lock { return locks.NewInterProcessMutex(c, path) }
		b, err := lock("/b").Acquire(t.Context())
		require.NoError(t, err)
		var multis []<-chan *locks.Hold
		for i := range 2 {
			multis = append(multis, acquiring(t, locks.NewInterProcessMultiLock(lock("/a"), lock("/b"))))
			require.NoError(t, srv.WaitChildren(t.Context(), "/b", i+2))
		}
		before := srv.Requests()["multi"]
		time.Sleep(15 * time.Millisecond)
		assert.Equal(t, before, srv.Requests()["multi"], "nobody yielded")
		require.NoError(t, b.Release())
		for _, got := range multis {
			require.NoError(t, (<-got).Release())
		}
	})
}

// Patience with those of whom nothing shows grows with what a MultiLock has
// waited, but not through a fault.
func TestPatienceGrowsWithTheWait(t *testing.T) {
	const young, old = 100 * time.Millisecond, time.Second // backoff, at most and at least
	for name, tc := range map[string]struct {
		waited        time.Duration
		fault         bool
		atLeast, less time.Duration
	}{
		"young":         {less: young},
		"old":           {waited: 10 * time.Second, atLeast: old, less: 2 * old},
		"after a fault": {waited: 10 * time.Second, fault: true, less: young},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(near))
				first, second, third, stranger, c := connect(t, srv), connect(t, srv), connect(t, srv), connect(t, srv), connect(t, srv)
				b, err := locks.NewInterProcessMutex(first, "/b").Acquire(t.Context())
				require.NoError(t, err)
				next := acquiring(t, locks.NewInterProcessMutex(second, "/b"))
				require.NoError(t, srv.WaitChildren(t.Context(), "/b", 2))
				tired, tire := context.WithCancel(t.Context())
				gone := make(chan error, 1)
				go func() {
					_, err := locks.NewInterProcessMutex(third, "/b").Acquire(tired)
					gone <- err
				}()
				require.NoError(t, srv.WaitChildren(t.Context(), "/b", 3))
				multi := acquiring(t, locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b")))
				require.NoError(t, srv.WaitChildren(t.Context(), "/b", 4)) // it has /a
				time.Sleep(tc.waited)
				if tc.fault {
					srv.DisconnectAll()
					synctest.Wait()
					for _, c := range []*framework.Client{first, second, third, stranger, c} {
						require.NoError(t, c.BlockUntilConnected(t.Context()))
					}
				}
				require.NoError(t, b.Release())
				b = <-next // somebody else has it from now on,
				tire()     // as the MultiLock learns when the one ahead of it goes
				require.ErrorIs(t, <-gone, context.Canceled)
				began := time.Now()
				a, err := locks.NewInterProcessMutex(stranger, "/a").Acquire(t.Context())
				require.NoError(t, err)
				assert.GreaterOrEqual(t, time.Since(began), tc.atLeast)
				assert.Less(t, time.Since(began), tc.less)
				require.NoError(t, a.Release())
				require.NoError(t, b.Release())
				require.NoError(t, (<-multi).Release())
			})
		})
	}
}
