package acquire_test

import (
	"context"
	"fmt"
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

// A waiter that gives up leaves no watch on the server, however long the lock is held.
func TestGivingUpLeavesNoWatch(t *testing.T) {
	for name, lock := range kit.Locks {
		if name == "downgrade" { // no one lock, whose wait has a limit
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				h, err := lock(other).Acquire(t.Context())
				require.NoError(t, err)
				time.Sleep(time.Second)
				before := srv.Watches()
				for range 20 {
					got, err := lock(c).TryAcquire(t.Context(), 100*time.Millisecond)
					if err == nil { // readers
						require.NoError(t, got.Release())
					}
				}
				synctest.Wait()
				assert.Equal(t, before, srv.Watches())
				require.NoError(t, h.Release())
			})
		})
	}
}

// The one ahead is another waiter, and gives up.
func TestNodeAheadIsNotTheHolder(t *testing.T) {
	for name, lock := range kit.Locks {
		if name == "read" { // readers do not wait for each other
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				holder, ahead, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				h, err := lock(holder).Acquire(t.Context())
				require.NoError(t, err)
				if name == "downgrade" {
					require.NoError(t, h.Release())
					h, err = locks.NewInterProcessReadWriteLock(holder, "/l/rw").WriteLock().Acquire(t.Context())
					require.NoError(t, err)
				}
				ctx, giveUp := context.WithCancel(t.Context())
				go func() { _, _ = lock(ahead).Acquire(ctx) }()
				synctest.Wait()
				a := kit.Acquire(t, lock(c))
				require.True(t, a.Waits())
				giveUp()
				require.True(t, a.Waits(), "the holder holds")
				require.NoError(t, h.Release())
				require.NoError(t, a.Soon().Release())
			})
		})
	}
}

// The node ahead goes after we have seen it and before we watch it.
func TestNodeAheadGoesBeforeItIsWatched(t *testing.T) {
	for name, q := range queues {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				holder, operator, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				_, err := q.lock(holder).Acquire(t.Context())
				require.NoError(t, err)
				srv.On(zktest.Match{Op: "getData", Session: c.SessionID()}, zktest.Call(func(r zktest.Request) {
					_ = operator.Delete(t.Context(), r.Path, 0)
				}))
				h := kit.Acquire(t, q.lock(c)).Soon()
				require.NoError(t, h.Release())
				synctest.Wait()
				assert.Empty(t, srv.Watches())
			})
		})
	}
}

// What a waiter has on the servers outlives the connection that made it.
func TestWaiterIsServedOnAnotherConnection(t *testing.T) {
	for name, lock := range kit.Locks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
				holder, waiter := kit.Connect(t, srv), kit.Connect(t, srv)
				h, err := lock(holder).Acquire(t.Context())
				require.NoError(t, err)
				time.AfterFunc(10*time.Minute, func() { assert.NoError(t, srv.Disconnect(waiter.SessionID())) })
				time.AfterFunc(20*time.Minute, func() { assert.NoError(t, h.Release()) })
				ctx, cancel := context.WithTimeout(t.Context(), 21*time.Minute)
				defer cancel()
				h, err = lock(waiter).Acquire(ctx)
				require.NoError(t, err)
				require.NoError(t, h.Release())
			})
		})
	}
}

// Somebody may write to the node ahead, as revocation does, any number of times.
func TestMultiLockBehindANodeThatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		b, err := locks.NewInterProcessMutex(other, "/b").Acquire(t.Context())
		require.NoError(t, err)
		h, err := locks.NewInterProcessMutex(other, "/a").Acquire(t.Context())
		require.NoError(t, err)
		multi := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/b"), locks.NewInterProcessMutex(c, "/a"))
		got := make(chan error, 1)
		go func() {
			_, err := multi.Acquire(t.Context())
			got <- err
		}()
		for range 3 {
			time.Sleep(time.Minute)
			for _, path := range []string{h.Path(), b.Path()} {
				_, err = other.Set(t.Context(), path, []byte("x"), framework.AnyVersion)
				require.NoError(t, err)
			}
		}
		time.Sleep(time.Minute)
		require.NoError(t, h.Release())
		require.NoError(t, b.Release())
		began := time.Now()
		require.NoError(t, <-got)
		assert.Less(t, time.Since(began), time.Millisecond)
	})
}

// A connection is lost while a MultiLock sets its watches. Each of them is set again, so
// that it hears of each lock's release, and of the end of its client.
func TestMultiLock_SetsItsWatchesAgain(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, c *framework.Client, waits *kit.Acquisition, holds []*locks.Hold){
		"released one by one": func(t *testing.T, _ *framework.Client, waits *kit.Acquisition, holds []*locks.Hold) {
			for _, h := range holds {
				require.NoError(t, h.Release())
				time.Sleep(time.Minute)
			}
			require.NoError(t, waits.Soon().Release())
		},
		"client closed": func(t *testing.T, c *framework.Client, waits *kit.Acquisition, _ []*locks.Hold) {
			require.NoError(t, c.Close())
			synctest.Wait()
			_, err := waits.Result()
			require.ErrorIs(t, err, framework.ErrClosed)
		},
	} {
		for nth := range 3 {
			for cut, fault := range map[string]zktest.Fault{"before": zktest.CutBefore(), "after": zktest.CutAfter()} {
				t.Run(fmt.Sprintf("%s, %s request %d", name, cut, nth+1), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
						c := kit.Connect(t, srv)
						var members []locks.Lock
						var holds []*locks.Hold
						for _, p := range []string{"/l/a", "/l/b", "/l/c"} { // each held by another client
							holds = append(holds, kit.Hold(t, kit.MutexAt(p)(kit.Connect(t, srv))))
							members = append(members, kit.MutexAt(p)(c))
						}
						time.Sleep(time.Second)
						lost := srv.On(zktest.Match{Session: c.SessionID(), Op: "getData", Nth: nth + 1}, fault)
						waits := kit.Acquire(t, locks.NewInterProcessMultiLock(members...))
						require.True(t, waits.Waits())
						require.Equal(t, 1, lost.Fired())
						end(t, c, waits, holds)
					})
				})
			}
		}
	}
}
