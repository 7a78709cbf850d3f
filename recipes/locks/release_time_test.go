package locks_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestReleaseWaitsAsLongAsItShall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		c := connect(t, srv)
		var holds []*locks.Hold
		limits := []time.Duration{3 * time.Second, 0, time.Second, 2 * time.Second, 10 * time.Millisecond, time.Hour, -1}
		for i, limit := range limits {
			l := locks.NewInterProcessMutex(c, "/l"+string(rune('a'+i)), locks.ReleaseWait(limit))
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			holds = append(holds, h)
		}
		srv.Freeze()
		began := time.Now()
		for i, h := range holds {
			go func() {
				err := h.Release()
				if limits[i] == time.Hour {
					assert.NoError(t, err)
					assert.Less(t, time.Since(began), 5*time.Second)
					return
				}
				assert.ErrorIs(t, err, locks.ErrReleasePending)
				assert.Equal(t, max(0, limits[i]), time.Since(began))
			}()
		}
		time.Sleep(4 * time.Second)
		srv.Thaw()
		for _, h := range holds {
			<-h.Gone()
		}
		synctest.Wait()
		assert.Empty(t, srv.Ephemerals(0), "it went on in the background")
	})
}

func TestReleaseWhileTheClientCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l", locks.ReleaseWait(time.Hour)).Acquire(t.Context())
		require.NoError(t, err)
		srv.Freeze()
		released := make(chan error)
		go func() { released <- h.Release() }()
		synctest.Wait()
		go func() { _ = c.Close() }()
		require.ErrorIs(t, <-released, locks.ErrReleasePending)
		srv.Thaw()
	})
}

// A caller who does not want to wait any more does not wait for the release
// either, which goes on in the background.
func TestCancelledCommitAndReleaseReturnsAtOnce(t *testing.T) {
	for name, lock := range swept {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, connection lost first: %v", name, lost), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
					c := connect(t, srv)
					h, err := lock(c).Acquire(t.Context())
					require.NoError(t, err)
					// The reply is lost first in one case, and then the release waits.
					if lost {
						srv.On(zktest.Match{Op: "multi", Nth: 1}, zktest.Call(func(zktest.Request) {
							_ = srv.Disconnect(c.SessionID())
							srv.Stall(c.SessionID(), zktest.BothWays)
						}))
					} else {
						srv.Stall(c.SessionID(), zktest.BothWays)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					defer cancel()
					began := time.Now()
					_, err = h.Transaction().CommitAndRelease(ctx)
					require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
					assert.Less(t, time.Since(began), 101*time.Millisecond)
					assert.Equal(t, locks.Released, h.State())
					srv.Unstall(c.SessionID())
					time.Sleep(time.Minute)
					assert.Empty(t, srv.Ephemerals(0))
				})
			})
		}
	}
}

// While a hold is being given back by a transaction, those acquired under it may
// go, and the lock is held as before if the transaction is refused.
func TestInnerHoldGoesDuringCommitAndRelease(t *testing.T) {
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprintf("refused: %v", refused), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				c := connect(t, srv)
				lock := func(path string) locks.Lock { return locks.NewInterProcessMutex(c, path) }
				outer, err := lock("/a").Acquire(t.Context())
				require.NoError(t, err)
				middle, err := lock("/b").Acquire(outer.Context())
				require.NoError(t, err)
				inner, _ := holdUnder(middle.Context())
				tx := middle.Transaction()
				if refused {
					tx.Delete("/nobody-has-made-it", framework.AnyVersion)
				}
				srv.Stall(c.SessionID(), zktest.BothWays)
				committed := make(chan error)
				go func() {
					_, err := tx.CommitAndRelease(t.Context())
					committed <- err
				}()
				synctest.Wait()
				require.NoError(t, inner.Release())
				srv.Unstall(c.SessionID())
				err = <-committed
				if refused {
					require.Error(t, err)
					require.ErrorIs(t, context.Cause(middle.Context()), locks.ErrReleased, "nothing kept it")
					bound, cancel := middle.Bind(t.Context())
					defer cancel()
					require.NoError(t, bound.Err())
					require.NoError(t, outer.Context().Err())
					require.NoError(t, middle.Release())
					require.Error(t, bound.Err())
				} else {
					require.NoError(t, err)
				}
				require.ErrorIs(t, context.Cause(middle.Context()), locks.ErrReleased)
				require.NoError(t, outer.Context().Err())
				require.NoError(t, outer.Release())
				require.ErrorIs(t, context.Cause(outer.Context()), locks.ErrReleased)
			})
		})
	}
}

// The other hold of a lock goes while a transaction gives one back that was not
// the last when it began: then that is the last, and the node goes as well.
func TestOtherHoldGoesDuringCommitAndRelease(t *testing.T) {
	for _, inLine := range []bool{false, true} {
		t.Run(fmt.Sprintf("somebody in line: %v", inLine), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				c := connect(t, srv)
				m := locks.NewInterProcessMutex(c, "/l")
				outer, err := m.Acquire(t.Context())
				require.NoError(t, err)
				inner, err := m.Acquire(outer.Context())
				require.NoError(t, err)
				srv.Stall(c.SessionID(), zktest.BothWays)
				committed := make(chan error)
				go func() {
					_, err := inner.Transaction().CommitAndRelease(t.Context())
					committed <- err
				}()
				synctest.Wait()
				require.NoError(t, outer.Release())
				require.Equal(t, locks.Released, outer.State())
				srv.Unstall(c.SessionID())
				if inLine {
					next, err := m.TryAcquire(t.Context(), time.Minute)
					require.NoError(t, err)
					require.NoError(t, next.Release())
				}
				require.NoError(t, <-committed)
				time.Sleep(time.Second)
				assert.Empty(t, srv.Ephemerals(0))
				select {
				case <-inner.Gone():
				default:
					assert.Fail(t, "not said to be gone")
				}
			})
		})
	}
}
