package locks_test

import (
	"context"
	"fmt"
	"sync"
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

// kinds are all locks at one path. Those of one kind stand in one queue.
var kinds = map[string]struct {
	kind string
	lock func(*framework.Client) locks.Lock
	java string // what Curator's lock of that kind makes, below the path
}{
	"mutex": {"mutex", func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/x/y") }, "_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-lock-"},
	"read": {"read/write", func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, "/x/y").ReadLock()
	}, "_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-__READ__"},
	"write": {"read/write", func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, "/x/y").WriteLock()
	}, "_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-__WRIT__"},
	"semaphore":       {"semaphore", func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/x/y", 3) }, "leases/_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-lease-"},
	"semaphore mutex": {"semaphore", func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/x/y") }, "leases/lease-"},
	"mutex in a MultiLock": {"mutex", func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/x/y"), locks.NewInterProcessMutex(c, "/z"))
	}, ""},
	"semaphore mutex in a MultiLock": {"semaphore", func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessSemaphoreMutex(c, "/x/y"), locks.NewInterProcessMutex(c, "/z"))
	}, ""},
}

// Two kinds of lock on one path would not exclude each other. The second is refused,
// and leaves nothing.
func TestTwoKindsOfLockOnOnePath(t *testing.T) {
	for first, one := range kinds {
		for second, two := range kinds {
			if one.kind == two.kind {
				continue
			}
			t.Run(first+", then "+second, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
					c, other := connect(t, srv), connect(t, srv)
					h, err := one.lock(other).Acquire(t.Context())
					require.NoError(t, err)
					refused(t, srv, c, two.lock(c))
					require.NoError(t, h.Err())
					require.NoError(t, h.Release())
					again, err := one.lock(other).Acquire(t.Context())
					require.NoError(t, err, "who was refused has left nothing in the way")
					require.NoError(t, again.Release())
				})
			})
			if one.java == "" {
				continue
			}
			t.Run(first+" of Java's, then "+second, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
					c, java := connect(t, srv), connect(t, srv)
					put(t, java, "/x/y/"+one.java)
					refused(t, srv, c, two.lock(c))
				})
			})
		}
	}
}

// refused uses a lock whose path is another's.
func refused(t *testing.T, srv *zktest.Server, c *framework.Client, lock locks.Lock) {
	t.Helper()
	for range 2 {
		_, err := lock.Acquire(t.Context())
		require.ErrorIs(t, err, locks.ErrInvalidLock)
		require.ErrorContains(t, err, "/x/y")
		require.ErrorContains(t, err, "another kind")
		_, err = lock.TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, locks.ErrInvalidLock)
	}
	time.Sleep(time.Minute)
	assert.Empty(t, srv.Ephemerals(c.SessionID()))
}

// Both come at the same time: at most one of them gets its lock.
func TestTwoKindsOfLockAtOnce(t *testing.T) {
	pairs := [][2]string{{"mutex", "semaphore"}, {"write", "semaphore mutex"}, {"mutex", "write"}, {"mutex in a MultiLock", "semaphore mutex in a MultiLock"}}
	for _, pair := range pairs {
		t.Run(fmt.Sprint(pair), func(t *testing.T) {
			for moment := range 40 {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
					one, two := connect(t, srv), connect(t, srv)
					first := make(chan error)
					go func() {
						_, err := kinds[pair[0]].lock(one).Acquire(t.Context())
						first <- err
					}()
					time.Sleep(time.Duration(moment) * d / 4)
					_, err := kinds[pair[1]].lock(two).Acquire(t.Context())
					errs := []error{<-first, err}
					for _, err := range errs {
						if err != nil {
							require.ErrorIs(t, err, locks.ErrInvalidLock)
						}
					}
					assert.False(t, errs[0] == nil && errs[1] == nil, "both got it, at moment %d", moment)
				})
			}
		})
	}
}

// A client that uses the wrong kind of lock on a path, over and over, does not harm
// those that use the right one.
func TestTheWrongKindHarmsNobody(t *testing.T) {
	for _, right := range []string{"mutex", "read", "write", "semaphore"} {
		for _, wrong := range []string{"mutex", "write", "semaphore mutex"} {
			if kinds[right].kind == kinds[wrong].kind {
				continue
			}
			t.Run(right+" and "+wrong, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.LatencyBy(zktest.Uniform(d/10, d)))
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					var all sync.WaitGroup
					var taken, refused atomic.Int32
					first, err := kinds[right].lock(connect(t, srv)).Acquire(t.Context())
					require.NoError(t, err)
					for range 3 {
						lock := kinds[right].lock(connect(t, srv))
						all.Go(func() {
							for ctx.Err() == nil {
								h, err := lock.Acquire(t.Context()) //nolint:contextcheck // ctx ends the loop, not a wait
								if !assert.NoError(t, err) {
									return
								}
								taken.Add(1)
								time.Sleep(d)
								assert.NoError(t, h.Release())
							}
						})
					}
					time.Sleep(10 * d)
					lock := kinds[wrong].lock(connect(t, srv))
					until := time.Now().Add(4 * time.Second) // while the path is in use
					all.Go(func() {
						for time.Now().Before(until) {
							_, err := lock.Acquire(ctx)
							if !assert.ErrorIs(t, err, locks.ErrInvalidLock) {
								return
							}
							refused.Add(1)
						}
					})
					if shared := right == "read" || right == "semaphore"; !shared { // else they may all be gone for a moment
						require.NoError(t, first.Release())
					}
					all.Wait()
					assert.Greater(t, taken.Load(), int32(100))
					assert.Greater(t, refused.Load(), int32(100))
				})
			})
		}
	}
}

// Children that are no contenders for another kind of lock are passed over.
func TestWhatStandsBesideALock(t *testing.T) {
	for name, lock := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c, other := connect(t, srv), connect(t, srv)
				for _, path := range []string{
					"/x/y/locks", "/x/y/config", "/x/y/lock-1", "/x/y/lease-", "/x/y/latch-0000000001", "/x/y/read-__READ__x", "/x/y/12345",
				} {
					_, err := other.Create(t.Context(), path, []byte("__REVOKE__"), framework.Persistent, framework.Parents())
					require.NoError(t, err)
				}
				_, err := other.Create(t.Context(), "/x/y/1b0e5b3d__lock__", nil, framework.EphemeralSequential) // as kazoo's
				require.NoError(t, err)
				h, err := lock.lock(c).Acquire(t.Context())
				require.NoError(t, err)
				require.NoError(t, h.Release())
			})
		})
	}
}

// To look for another kind costs no round trip.
func TestRoundTripsOfANewSemaphore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := connect(t, srv)
		var h *locks.Hold
		// The creation that finds no parents, two to make both, and the creation.
		assert.Equal(t, 4.0, took(t, hold(locks.NewInterProcessSemaphore(c, "/a/b/c/s", 3), &h)))
		assert.Equal(t, 1.0, took(t, h.Release))
	})
}

// Lock objects of one client that state different numbers of leases are refused
// while one of them is in use.
func TestDifferentNumbersOfLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := connect(t, srv)
		three, two := locks.NewInterProcessSemaphore(c, "/s", 3), locks.NewInterProcessSemaphore(c, "/s", 2)
		one := locks.NewInterProcessSemaphoreMutex(c, "/s")
		both := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/m"), one)
		same := locks.NewInterProcessSemaphore(c, "/s", 3)
		mustRefuse := func(lockSet ...locks.Lock) {
			t.Helper()
			for _, lock := range lockSet {
				before := srv.Requests()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				_, err := lock.Acquire(ctx)
				cancel()
				require.ErrorIs(t, err, locks.ErrInvalidLock)
				require.ErrorContains(t, err, "/s")
				require.ErrorContains(t, err, "leases")
				assert.Equal(t, before, srv.Requests(), "at once")
			}
		}
		all, err := three.AcquireN(t.Context(), 3)
		require.NoError(t, err)
		mustRefuse(two, one, both)
		for _, m := range all.Members()[:2] {
			require.NoError(t, m.Release())
		}
		mustRefuse(two, one)
		again, err := same.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, again.Release())
		require.NoError(t, all.Release())

		h, err := both.Acquire(t.Context())
		require.NoError(t, err, "the other is not in use any more")
		mustRefuse(three, two)
		ctx, cancel := context.WithCancel(t.Context())
		waits := make(chan error, 1)
		go func() {
			_, err := one.Acquire(ctx)
			waits <- err
		}()
		time.Sleep(time.Second)
		require.NoError(t, h.Release())
		synctest.Wait()
		mustRefuse(three)
		require.NoError(t, <-waits)
		cancel()

		require.NoError(t, srv.ExpireSession(c.SessionID()))
		time.Sleep(time.Minute)
		h, err = two.Acquire(t.Context())
		require.NoError(t, err, "the lease of the other is gone")
		require.NoError(t, h.Release())
		h, err = three.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Release())
	})
}
