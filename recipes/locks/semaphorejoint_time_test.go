package locks_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// put makes a node as a peer of another library would.
func put(t *testing.T, c *framework.Client, path string) (node string) {
	t.Helper()
	node, err := c.Create(t.Context(), path, nil, framework.EphemeralSequential, framework.Protected(), framework.Parents())
	require.NoError(t, err)
	return node
}

func children(t *testing.T, c *framework.Client, path string) []string {
	t.Helper()
	names, _, err := c.Children(t.Context(), path)
	require.NoError(t, err)
	return names
}

func acquiring(t *testing.T, lock locks.Lock) <-chan *locks.Hold {
	t.Helper()
	got := make(chan *locks.Hold, 1)
	go func() {
		h, err := lock.Acquire(t.Context())
		assert.NoError(t, err)
		got <- h
	}()
	return got
}

// Who is in the queue with a lease still to be made must not be overtaken, and
// must find no lease of those behind it.
func TestLeaseIsNotKeptBehindAnothersTurn(t *testing.T) {
	for name, lockOf := range map[string]func(c *framework.Client) locks.Lock{
		"alone": func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/s") },
		"in a MultiLock": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(locks.NewInterProcessSemaphoreMutex(c, "/s"), locks.NewInterProcessMutex(c, "/m"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				peer, c := connect(t, srv), connect(t, srv)
				turn := put(t, peer, "/s/locks/lock-")
				require.NoError(t, peer.EnsurePath(t.Context(), "/s/leases"))
				require.NoError(t, peer.EnsurePath(t.Context(), "/m"))
				lock := lockOf(c)
				got := acquiring(t, lock)
				time.Sleep(2*d - 1) // made, and the answer is on its way
				assert.Len(t, children(t, peer, "/s/leases"), 1)
				time.Sleep(10 * d)
				assert.Empty(t, got)
				assert.Empty(t, children(t, peer, "/s/leases"))

				lease := put(t, peer, "/s/leases/lease-")
				require.NoError(t, peer.Delete(t.Context(), turn, framework.AnyVersion))
				time.Sleep(time.Second)
				assert.Empty(t, got)
				assert.Len(t, children(t, peer, "/s/leases"), 2, "it waits for the one in front of it")
				require.NoError(t, peer.Delete(t.Context(), lease, framework.AnyVersion))
				h := <-got
				require.NoError(t, h.Release())

				// Once it was in nobody's way it is bold again.
				for _, want := range []float64{2, 1} {
					assert.Equal(t, want, took(t, hold(lock, &h)))
					assert.Equal(t, 1.0, took(t, h.Release))
				}
				time.Sleep(time.Second)
				assert.Empty(t, srv.Ephemerals(0))
				assert.Empty(t, srv.Watches())
			})
		})
	}
}

// Our turn alone says nothing of leases.
func TestLeaseThatIsNotAmongTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		peer, c := connect(t, srv), connect(t, srv)
		lease := put(t, peer, "/s/leases/lease-")
		require.NoError(t, peer.EnsurePath(t.Context(), "/s/locks"))
		one := locks.NewInterProcessSemaphore(c, "/s", 2)
		h, err := one.Acquire(t.Context())
		require.NoError(t, err)
		began := time.Now()
		_, err = one.TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		assert.Equal(t, time.Second, time.Since(began))
		time.Sleep(time.Second)
		assert.Len(t, children(t, peer, "/s/leases"), 2)
		got := acquiring(t, one)
		time.Sleep(time.Second)
		assert.Empty(t, got)
		require.NoError(t, peer.Delete(t.Context(), lease, framework.AnyVersion))
		require.NoError(t, (<-got).Release())
		require.NoError(t, h.Release())
	})
}

func TestSeveralLeasesTakeOneRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := connect(t, srv)
		s := locks.NewInterProcessSemaphore(c, "/s", 10_000)
		h, err := s.Acquire(t.Context()) // makes the parents
		require.NoError(t, err)
		require.NoError(t, h.Release())
		for n, want := range map[int]float64{1: 1, 7: 1, 9000: 4} { // the last are made a few hundred at a time
			assert.Equal(t, want, took(t, func() (err error) { h, err = s.AcquireN(t.Context(), n); return err }), n)
			require.NoError(t, h.Release())
			time.Sleep(time.Second)
			assert.Empty(t, srv.Ephemerals(0))
		}
	})
}

// In whatever order they come, there are never more owners than leases, nobody
// who waits is passed by one that came later, and everybody gets a lease.
func TestBoldAndOrdinaryTogether(t *testing.T) {
	for _, total := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(total), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Seed(uint64(total)), zktest.LatencyBy(zktest.Uniform(d/10, d)))
				var inside, rounds atomic.Int32
				done := make(chan bool)
				const clients, each = 6, 60
				for i := range clients {
					c := connect(t, srv)
					go func() {
						for n := range each {
							// A new object each time is always bold.
							s := locks.NewInterProcessSemaphore(c, "/s", total)
							h, err := s.AcquireN(t.Context(), 1+(i+n)%total)
							if !assert.NoError(t, err) {
								break
							}
							now := inside.Add(int32(1 + (i+n)%total))
							assert.LessOrEqual(t, int(now), total)
							time.Sleep(time.Duration(n%4) * d / 2)
							inside.Add(-int32(1 + (i+n)%total))
							assert.NoError(t, h.Release())
							rounds.Add(1)
							time.Sleep(time.Duration((i*7+n)%5) * d)
						}
						done <- true
					}()
				}
				for range clients {
					<-done
				}
				assert.EqualValues(t, clients*each, rounds.Load())
				time.Sleep(time.Minute)
				assert.Empty(t, srv.Ephemerals(0))
				assert.Empty(t, srv.Watches())
			})
		})
	}
}
