package acquire_test

import (
	"context"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// An owner in the queue may still have a lease to make. It must not be overtaken, and
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
				peer, c := kit.Connect(t, srv), kit.Connect(t, srv)
				turn := kit.Put(t, peer, "/s/locks/lock-")
				require.NoError(t, peer.EnsurePath(t.Context(), "/s/leases"))
				require.NoError(t, peer.EnsurePath(t.Context(), "/m"))
				lock := lockOf(c)
				got := kit.Acquire(t, lock)
				time.Sleep(2*d - 1) // made, and the answer is on its way
				assert.Len(t, kit.Children(t, peer, "/s/leases"), 1)
				time.Sleep(10 * d)
				assert.True(t, got.Pending())
				assert.Empty(t, kit.Children(t, peer, "/s/leases"))

				lease := kit.Put(t, peer, "/s/leases/lease-")
				require.NoError(t, peer.Delete(t.Context(), turn, framework.AnyVersion))
				time.Sleep(time.Second)
				assert.True(t, got.Pending())
				assert.Len(t, kit.Children(t, peer, "/s/leases"), 2, "it waits for the one in front of it")
				require.NoError(t, peer.Delete(t.Context(), lease, framework.AnyVersion))
				h := got.Soon()
				require.NoError(t, h.Release())

				// Once it was in nobody's way it is bold again.
				for _, want := range []float64{2, 1} {
					assert.Equal(t, want, kit.RoundTrips(t, kit.Into(&h, lock)))
					assert.Equal(t, 1.0, kit.RoundTrips(t, h.Release))
				}
				time.Sleep(time.Second)
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// Our turn alone says nothing of leases.
func TestLeaseThatIsNotAmongTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		peer, c := kit.Connect(t, srv), kit.Connect(t, srv)
		lease := kit.Put(t, peer, "/s/leases/lease-")
		require.NoError(t, peer.EnsurePath(t.Context(), "/s/locks"))
		one := locks.NewInterProcessSemaphore(c, "/s", 2)
		h, err := one.Acquire(t.Context())
		require.NoError(t, err)
		began := time.Now()
		_, err = one.TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		assert.Equal(t, time.Second, time.Since(began))
		time.Sleep(time.Second)
		assert.Len(t, kit.Children(t, peer, "/s/leases"), 2)
		got := kit.Acquire(t, one)
		time.Sleep(time.Second)
		assert.True(t, got.Pending())
		require.NoError(t, peer.Delete(t.Context(), lease, framework.AnyVersion))
		require.NoError(t, got.Soon().Release())
		require.NoError(t, h.Release())
	})
}

func TestSeveralLeasesTakeOneRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		s := locks.NewInterProcessSemaphore(c, "/s", 10_000)
		h, err := s.Acquire(t.Context()) // makes the parents
		require.NoError(t, err)
		require.NoError(t, h.Release())
		for n, want := range map[int]float64{1: 1, 7: 1, 9000: 5} { // the last are made a few hundred at a time
			assert.Equal(t, want, kit.RoundTrips(t, func() (err error) { h, err = s.AcquireN(t.Context(), n); return err }), n)
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
					c := kit.Connect(t, srv)
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
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// An owner that gives up its turn keeps the tag in its name.
func TestAcquireNKeepsItsTagWhenItYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		theirs := locks.NewInterProcessSemaphore(other, "/s", 2)
		first, err := theirs.Acquire(ctx)
		require.NoError(t, err)
		go func() {
			if h, err := locks.NewInterProcessSemaphore(c, "/s", 2).AcquireN(ctx, 2); err == nil {
				<-ctx.Done()
				_ = h.Release()
			}
		}()
		tags := make(map[string]bool)
		look := func() {
			for _, node := range srv.Ephemerals(c.SessionID()) {
				tag := nodename.TagOf(path.Base(node))
				tags[tag] = true
			}
		}
		time.Sleep(100 * time.Millisecond)
		look()
		second, err := theirs.Acquire(ctx) // when it has yielded
		require.NoError(t, err)
		require.NoError(t, second.Release())
		require.NoError(t, first.Release())
		time.Sleep(time.Second)
		require.Len(t, srv.Ephemerals(c.SessionID()), 2, "its turn comes")
		look()
		assert.Len(t, tags, 1)
		assert.NotContains(t, tags, "000000000000")
	})
}

// An owner whose place in the queue is deleted queues again at its end. It must not keep
// the lease for which those before it wait.
func TestLeaseGoesWithTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		holder, first, second := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		h, err := locks.NewInterProcessSemaphoreMutex(holder, "/x").Acquire(ctx)
		require.NoError(t, err)
		var served sync.WaitGroup
		for _, c := range []*framework.Client{first, second} {
			served.Go(func() {
				h, err := locks.NewInterProcessSemaphoreMutex(c, "/x").Acquire(ctx)
				if assert.NoError(t, err) {
					assert.NoError(t, h.Release())
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		for _, node := range srv.Ephemerals(first.SessionID()) {
			if path.Dir(node) == "/x/locks" {
				require.NoError(t, holder.Delete(ctx, node, framework.AnyVersion))
			}
		}
		// It is interrupted when it looks at the leases, so it looks at the queue again.
		srv.On(zktest.Match{Op: "getChildren2", Session: first.SessionID(), Nth: 1}, zktest.CutBefore())
		require.NoError(t, h.Release())
		served.Wait()
	})
}
