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
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestLocalQueueOutlivesItsSession(t *testing.T) {
	for _, held := range []bool{true, false} {
		for _, end := range []string{"expired", "silent"} {
			t.Run(fmt.Sprint(end, held), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
					c, other := kit.Connect(t, srv), kit.Connect(t, srv)
					m := locks.NewInterProcessMutex(c, "/l")
					holder := m
					if !held {
						holder = locks.NewInterProcessMutex(other, "/l")
					}
					h, err := holder.Acquire(t.Context())
					require.NoError(t, err)
					taken := 0
					wg := kit.InLine(t, 5, kit.Same(m), func(_ int, next *locks.Hold) {
						assert.NotEqual(t, locks.Held, h.State())
						taken++
					})
					var failed atomic.Int32
					failing := locks.NewInterProcessMutex(c, "/l", locks.FailOnSessionLoss())
					for range 5 {
						wg.Go(func() {
							h, err := failing.Acquire(t.Context())
							if assert.ErrorIs(t, err, framework.ErrSessionExpired) {
								failed.Add(1)
							} else if err == nil {
								_ = h.Release()
							}
						})
						synctest.Wait()
					}
					time.Sleep(time.Second)
					switch end {
					case "expired":
						require.NoError(t, srv.ExpireSession(c.SessionID()))
					case "silent":
						srv.Freeze()
						time.Sleep(time.Minute)
						srv.Thaw()
						time.Sleep(10 * time.Second)
					}
					time.Sleep(kit.SessionTimeout / 10)
					_ = h.Release()
					wg.Wait()
					assert.Equal(t, int32(5), failed.Load())
					assert.Equal(t, 5, taken, "the others queue again")
					time.Sleep(time.Minute)
					kit.NothingLeft(t, srv)
				})
			})
		}
	}
}

// Another client deletes the node. The front waiter makes a new one, and a holder has
// lost the lock.
func TestNodeOfALocalQueueIsDeleted(t *testing.T) {
	for _, held := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
			c, other := kit.Connect(t, srv), kit.Connect(t, srv)
			m := locks.NewInterProcessMutex(c, "/l")
			holder := m
			if !held {
				holder = locks.NewInterProcessMutex(other, "/l")
			}
			h, err := holder.Acquire(t.Context())
			require.NoError(t, err)
			var taken atomic.Int32
			wg := kit.InLine(t, 5, kit.Same(m), func(int, *locks.Hold) {
				assert.NotEqual(t, locks.Held, h.State())
				taken.Add(1)
			})
			time.Sleep(time.Second)
			node := srv.Ephemerals(c.SessionID())
			require.Len(t, node, 1)
			require.NoError(t, other.Delete(t.Context(), node[0], framework.AnyVersion))
			time.Sleep(time.Second)
			assert.Equal(t, held, h.State() == locks.Lost)
			assert.Equal(t, held, taken.Load() == 5)
			_ = h.Release()
			wg.Wait()
			assert.Equal(t, int32(5), taken.Load())
			synctest.Wait()
			assert.Empty(t, srv.Ephemerals(0))
		})
	}
}

// A waiter that begins while there is no session has lost none.
func TestLocalQueueWithoutSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l", locks.FailOnSessionLoss())
		srv.Refuse()
		require.NoError(t, srv.Disconnect(c.SessionID()))
		time.Sleep(time.Minute)
		assert.Zero(t, c.SessionID())
		wg := kit.InLine(t, 3, kit.Same(m), func(int, *locks.Hold) {})
		srv.Accept()
		wg.Wait()
	})
}

// A waiter that begins while there is no session ends with the one that it gets.
func TestWaiterWithoutSessionLosesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		kit.Hold(t, locks.NewInterProcessMutex(other, "/l"))
		srv.Refuse()
		require.NoError(t, srv.Disconnect(c.SessionID()))
		time.Sleep(time.Minute)
		assert.Zero(t, c.SessionID())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				_, err := locks.NewInterProcessMutex(c, "/l", locks.FailOnSessionLoss()).Acquire(t.Context())
				assert.ErrorIs(t, err, framework.ErrSessionExpired)
			})
			synctest.Wait()
		}
		srv.Accept()
		time.Sleep(time.Minute)
		require.NoError(t, srv.ExpireSession(c.SessionID()))
		wg.Wait()
	})
}

// A waiter is told to ask for itself while its session may go on still, and asks in the next one.
func TestWaiterThatAsksInTheNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		_, err := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(other, "/l"), locks.NewInterProcessMutex(other, "/m")).Acquire(t.Context())
		require.NoError(t, err)
		m := locks.NewInterProcessMutex(c, "/l", locks.FailOnSessionLoss(), locks.LocalHandovers(1))
		ctx, cancel := context.WithCancel(t.Context())
		waits := []context.Context{t.Context(), ctx, t.Context()}
		ends := []error{framework.ErrSessionExpired, context.Canceled, framework.ErrSessionExpired}
		var wg sync.WaitGroup
		for i := range 3 { // the first, the one beside it, and one in the local queue
			wg.Go(func() {
				_, err := m.Acquire(waits[i])
				assert.ErrorIs(t, err, ends[i], "waiter %d", i)
			})
			time.Sleep(time.Second)
		}
		id := c.SessionID()
		srv.Freeze()
		time.Sleep(25 * time.Second)
		cancel()
		time.Sleep(time.Minute)
		srv.Thaw()
		wg.Wait()
		assert.NotEqual(t, id, c.SessionID())
	})
}

// Each of many that wait for a short time is the front waiter for less than a round trip. Together
// they get the lock, also with a node whose creation had its reply lost. And nobody else waits for a
// node that none of them uses.
func TestShortWaitsInALocalQueue(t *testing.T) {
	for _, lost := range []int{0, 4} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
			c, other := kit.Connect(t, srv), kit.Connect(t, srv)
			if lost > 0 {
				srv.On(zktest.Match{Session: c.SessionID(), Op: "create2", Nth: lost}, zktest.CutAfter())
			}
			end := time.Now().Add(time.Second)
			var got, others atomic.Int32
			var wg sync.WaitGroup
			work := func(of *framework.Client, wait time.Duration, got *atomic.Int32) {
				wg.Go(func() {
					for time.Now().Before(end) {
						_ = locks.TryDo(t.Context(), locks.NewInterProcessMutex(of, "/l"), wait, func(context.Context) error {
							got.Add(1)
							time.Sleep(time.Millisecond)
							return nil
						})
					}
				})
			}
			work(other, time.Second, &others)
			for range 20 {
				work(c, 10*time.Millisecond, &got)
			}
			wg.Wait()
			assert.Greater(t, got.Load(), int32(300), "reply lost: %d", lost)
			assert.Greater(t, others.Load(), int32(20), "reply lost: %d", lost)
			time.Sleep(time.Second)
			kit.NothingLeft(t, srv)
		})
	}
}

func TestClosedWithALocalQueue(t *testing.T) {
	for _, held := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory())
			c, other := kit.Connect(t, srv), kit.Connect(t, srv)
			m := locks.NewInterProcessMutex(c, "/l")
			holder := m
			if !held {
				holder = locks.NewInterProcessMutex(other, "/l")
			}
			_, err := holder.Acquire(t.Context())
			require.NoError(t, err)
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					_, err := m.Acquire(t.Context())
					assert.ErrorIs(t, err, framework.ErrClosed)
				})
			}
			synctest.Wait()
			id := c.SessionID()
			require.NoError(t, c.Close())
			wg.Wait()
			assert.Empty(t, srv.Ephemerals(id))
		})
	}
}

func TestSuspendedHoldsEndInALocalQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l", locks.EndOnSuspended())
		h, err := m.Acquire(t.Context())
		require.NoError(t, err)
		held := make(chan *locks.Hold)
		go func() {
			for range 2 {
				h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				assert.NoError(t, err)
				held <- h
			}
		}()
		synctest.Wait()
		require.NoError(t, srv.Disconnect(c.SessionID()))
		next := <-held
		assert.Equal(t, locks.Lost, h.State())
		require.NoError(t, srv.Disconnect(c.SessionID()))
		synctest.Wait()
		assert.NotEqual(t, locks.Lost, next.State(), "its own option counts")
		_ = next.Release()
		_ = (<-held).Release()
	})
}

// sweepLocalQueue does one thing at every moment while several goroutines take a lock in turn,
// and another client wants it too. It looks whether two had it at once, and whether
// anything is left behind. It is not exact if servers do what they do not do: then only
// holds of one client exclude each other.
func sweepLocalQueue(t *testing.T, moments int, exact bool, meddle func(moment int, srv *zktest.Server, c *framework.Client, cancels []context.CancelFunc)) {
	for name, lock := range exclusively {
		t.Run(name, func(t *testing.T) {
			for moment := range kit.Moments(t, moments, *everySweep) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
					c, other := kit.Connect(t, srv), kit.Connect(t, srv)
					require.NoError(t, c.EnsurePath(t.Context(), "/l"))
					var mu sync.Mutex
					var last *locks.Hold
					var lastOf *framework.Client
					var wg sync.WaitGroup
					var cancels []context.CancelFunc
					for i, of := range []*framework.Client{c, c, c, c, other} {
						ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
						cancels = append(cancels, cancel)
						wg.Go(func() {
							time.Sleep(time.Duration(i) * time.Millisecond / 4)
							for range 2 {
								h, err := lock(of, locks.LocalHandovers(3)).Acquire(ctx)
								assert.True(t, (h == nil) != (err == nil), "a hold or an error, never both: %v, %v", h, err)
								if err != nil {
									assert.NotErrorIs(t, err, context.DeadlineExceeded, "waited for nothing")
									continue
								}
								mu.Lock()
								if last != nil && (exact || lastOf == of) {
									assert.Contains(t, []locks.HoldState{locks.Lost, locks.Released}, last.State())
								}
								last, lastOf = h, of
								mu.Unlock()
								select {
								case <-time.After(2 * time.Millisecond):
								case <-h.Context().Done():
								}
								_ = h.Release()
							}
						})
					}
					meddle(moment, srv, c, cancels)
					wg.Wait()
					for _, cancel := range cancels {
						cancel()
					}
					time.Sleep(45 * time.Second)
					kit.NothingLeft(t, srv)
					h, err := lock(other).Acquire(t.Context())
					require.NoError(t, err)
					require.NoError(t, h.Release())
				})
				if t.Failed() {
					t.Fatalf("at moment %d", moment)
				}
			}
		})
	}
}

func TestLocalQueueCancelledAtAnyMoment(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			sweepLocalQueue(t, 60, true, func(moment int, _ *zktest.Server, _ *framework.Client, cancels []context.CancelFunc) {
				after(moment, cancels[i])
			})
		})
	}
	t.Run("all", func(t *testing.T) {
		sweepLocalQueue(t, 60, true, func(moment int, _ *zktest.Server, _ *framework.Client, cancels []context.CancelFunc) {
			after(moment, func() {
				for _, cancel := range cancels {
					cancel()
				}
			})
		})
	})
}

func TestLocalQueueClosedAtAnyMoment(t *testing.T) {
	t.Parallel()
	sweepLocalQueue(t, 60, true, func(moment int, _ *zktest.Server, c *framework.Client, _ []context.CancelFunc) {
		after(moment, func() { _ = c.Close() })
	})
}

func TestLocalQueueDisconnectedAtAnyMoment(t *testing.T) {
	t.Parallel()
	sweepLocalQueue(t, 60, true, func(moment int, srv *zktest.Server, c *framework.Client, _ []context.CancelFunc) {
		id := c.SessionID()
		after(moment, func() { _ = srv.Disconnect(id) })
	})
}

func TestLocalQueueExpiredAtAnyMoment(t *testing.T) {
	t.Parallel()
	sweepLocalQueue(t, 60, false, func(moment int, srv *zktest.Server, c *framework.Client, _ []context.CancelFunc) {
		id := c.SessionID()
		after(moment, func() { _ = srv.ExpireSession(id) })
	})
}

func TestEachRequestOfALocalQueueFails(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"cut before": zktest.CutBefore(), "cut after": zktest.CutAfter(), "overwhelmed": zktest.Fail(-127), "no auth": zktest.Fail(-102),
	} {
		t.Run(name, func(t *testing.T) {
			sweepLocalQueue(t, 30, true, func(moment int, srv *zktest.Server, c *framework.Client, _ []context.CancelFunc) {
				srv.On(zktest.Match{Session: c.SessionID(), Nth: moment + 1}, fault)
			})
		})
	}
}
