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
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// answers are what can become of a transaction that gives a lock back.
var answers = map[string]struct {
	fault zktest.Fault // of its request
	want  error
	keeps bool // the lock is held as before
}{
	"done":    {fault: zktest.Call(func(zktest.Request) {})},
	"refused": {fault: zktest.Call(func(zktest.Request) {}), want: framework.ErrNoNode, keeps: true},
	"unknown": {fault: zktest.CutAfter(), want: framework.ErrOutcomeUnknown},
	"lost":    {fault: zktest.CutBefore(), want: framework.ErrOutcomeUnknown},
}

// CommitAndRelease ends the contexts before the servers have the transaction,
// whatever becomes of it. If it is refused the lock stays held, and a new context
// can be bound to the hold.
func TestContextsEndBeforeCommitAndRelease(t *testing.T) {
	for name, lock := range kit.Locks {
		for what, answer := range answers {
			t.Run(name+"/"+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
					c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.None() })
					h, err := lock(c).Acquire(t.Context())
					require.NoError(t, err)
					all := allShown(t, h)
					var looked atomic.Int32
					srv.On(zktest.Match{Session: c.SessionID(), Op: "multi", Nth: 1}, zktest.Choose(func(zktest.Request) zktest.Fault {
						looked.Add(1)
						assertEnded(t, all, what)
						late, cancel := h.Bind(context.Background())
						defer cancel()
						assert.ErrorIs(t, context.Cause(late), locks.ErrReleased, "bound while it is on its way")
						return answer.fault
					}))
					tx := h.Transaction()
					if what == "refused" {
						tx.Check("/nobody-has-made-it", framework.AnyVersion)
					}
					_, err = tx.CommitAndRelease(t.Context())
					require.ErrorIs(t, err, answer.want)
					assert.Equal(t, int32(1), looked.Load())
					for _, ctx := range all {
						assert.ErrorIs(t, context.Cause(ctx), locks.ErrReleased)
					}
					if answer.keeps {
						staysHeld(t, srv, c, h)
					} else {
						assert.Equal(t, locks.Released, h.State())
						require.ErrorIs(t, h.Release(), locks.ErrReleased)
					}
					time.Sleep(time.Minute)
					assert.Empty(t, srv.Ephemerals(0))
				})
			})
		}
	}
}

// staysHeld is what can be done with a hold whose transaction was refused.
func staysHeld(t *testing.T, srv *zktest.Server, c *framework.Client, h *locks.Hold) {
	t.Helper()
	assert.Equal(t, locks.Held, h.State())
	require.NoError(t, h.Err())
	require.ErrorIs(t, context.Cause(h.Context()), locks.ErrReleased, "it stays ended")
	assert.Same(t, h.Context(), h.Context())
	bound, cancel := h.Bind(t.Context())
	defer cancel()
	require.NoError(t, bound.Err())
	other, err := locks.NewInterProcessMutex(c, "/below").Acquire(bound)
	require.NoError(t, err)
	require.NoError(t, other.Release())
	_, err = h.Transaction().Commit(t.Context())
	require.NoError(t, err)
	looked := endedWhenGiven(t, srv, c.SessionID(), []context.Context{bound})
	require.NoError(t, h.Release())
	assert.Equal(t, int32(1), looked.Load())
	assert.ErrorIs(t, context.Cause(bound), locks.ErrReleased)
}

// A transaction that is not sent ends the contexts as well, and one that cannot be
// made does not.
func TestContextsAndATransactionThatIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l")
		h, err := m.Acquire(t.Context())
		require.NoError(t, err)
		own := h.Context()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = h.Transaction().CommitAndRelease(ended)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, context.Cause(own), locks.ErrReleased)
		staysHeld(t, srv, c, h)

		theirs, _ := locks.NewHold(t.Context(), func() error { return nil })
		_, err = theirs.Transaction().CommitAndRelease(t.Context())
		require.ErrorIs(t, err, locks.ErrNoFence)
		require.NoError(t, theirs.Context().Err())
		require.NoError(t, theirs.Release())
	})
}

// A goroutine re-enters with a context that was bound after a refusal. It has the same
// ownership, and the last release gives it back.
func TestReentryAfterARefusedTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l")
		h, err := m.Acquire(t.Context())
		require.NoError(t, err)
		tx := h.Transaction()
		tx.Check("/nobody-has-made-it", framework.AnyVersion)
		for range 2 { // with and without a context that was shown before
			_, err = tx.CommitAndRelease(t.Context())
			require.ErrorIs(t, err, framework.ErrNoNode)
		}
		_, err = m.Acquire(h.Context())
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, context.Cause(h.Context()), locks.ErrReleased)
		bound, cancel := h.Bind(t.Context())
		defer cancel()
		inner, err := m.Acquire(bound)
		require.NoError(t, err)
		assert.Equal(t, h.Path(), inner.Path())
		require.NoError(t, h.Release())
		require.NoError(t, bound.Err(), "a hold goes on below it")
		looked := endedWhenGiven(t, srv, c.SessionID(), append(shown(t, inner), bound))
		require.NoError(t, inner.Release())
		assert.Equal(t, int32(1), looked.Load())
	})
}

// A lock that is lost while such a transaction is on its way, or was refused, is
// lost: no context of it goes on.
func TestLossAroundARefusedTransaction(t *testing.T) {
	for _, during := range []bool{true, false} {
		for name, lose := range map[string]func(t *testing.T, srv *zktest.Server, c *framework.Client, path string){
			"session": func(_ *testing.T, srv *zktest.Server, c *framework.Client, _ string) {
				srv.Stall(c.SessionID(), zktest.BothWays)
				time.Sleep(time.Minute)
			},
			"node": func(t *testing.T, srv *zktest.Server, _ *framework.Client, path string) {
				assert.NoError(t, kit.Connect(t, srv).Delete(t.Context(), path, framework.AnyVersion))
			},
		} {
			t.Run(fmt.Sprintf("%s, during: %v", name, during), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
					c := kit.Connect(t, srv)
					h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
					require.NoError(t, err)
					time.Sleep(time.Second) // so that its node is watched
					tx := h.Transaction()
					tx.Check("/nobody-has-made-it", framework.AnyVersion)
					if during {
						rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "multi"}, zktest.Delay(5*time.Second))
						var losing sync.WaitGroup
						losing.Go(func() {
							time.Sleep(time.Second)
							lose(t, srv, c, h.Path())
						})
						_, err = tx.CommitAndRelease(t.Context())
						rule.Remove()
						losing.Wait()
					} else {
						_, err = tx.CommitAndRelease(t.Context())
						lose(t, srv, c, h.Path())
					}
					require.Error(t, err)
					time.Sleep(time.Second)
					bound, cancel := h.Bind(t.Context())
					defer cancel()
					require.Error(t, bound.Err())
					require.ErrorIs(t, context.Cause(h.Context()), locks.ErrReleased, "which came first")
					assert.Error(t, h.Release())
				})
			})
		}
	}
}

// While another hold is held under it, a hold keeps its contexts also while a
// transaction gives its lock back, and if that is refused.
func TestContextsGoOnBelowCommitAndRelease(t *testing.T) {
	for _, refused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory())
			c := kit.Connect(t, srv)
			outer, err := locks.NewInterProcessMutex(c, "/a").Acquire(t.Context())
			require.NoError(t, err)
			inner, err := locks.NewInterProcessMutex(c, "/b").Acquire(outer.Context())
			require.NoError(t, err)
			tx := outer.Transaction()
			if refused {
				tx.Check("/nobody-has-made-it", framework.AnyVersion)
			}
			_, err = tx.CommitAndRelease(t.Context())
			assert.Equal(t, refused, err != nil)
			require.NoError(t, outer.Context().Err())
			require.NoError(t, inner.Release())
			if refused {
				require.NoError(t, outer.Context().Err())
				require.NoError(t, outer.Release())
			}
			require.ErrorIs(t, context.Cause(outer.Context()), locks.ErrReleased)
			time.Sleep(time.Second)
			assert.Empty(t, srv.Ephemerals(0))
		})
	}
}

// A commit with which the node goes cannot begin twice, and nobody can re-enter
// meanwhile.
func TestWhileCommitAndReleaseIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		a, b := locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b")
		for _, lock := range []locks.Lock{a, locks.NewInterProcessMultiLock(a, b)} {
			h, err := lock.Acquire(t.Context())
			require.NoError(t, err)
			rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "multi"}, zktest.Delay(2*time.Second))
			done := make(chan error, 1)
			go func() {
				_, err := h.Transaction().CommitAndRelease(t.Context())
				done <- err
			}()
			time.Sleep(time.Second)
			_, err = h.Transaction().CommitAndRelease(t.Context())
			require.ErrorIs(t, err, locks.ErrReleased)
			_, err = a.Acquire(h.Context())
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, context.Cause(h.Context()), locks.ErrReleased)
			require.NoError(t, <-done)
			rule.Remove()
			require.ErrorIs(t, h.Release(), locks.ErrReleased)
		}
		assert.Empty(t, srv.Ephemerals(c.SessionID()))
	})
}

// A caller who does not want to wait any more does not wait for the release
// either, which goes on in the background.
func TestCancelledCommitAndReleaseReturnsAtOnce(t *testing.T) {
	for name, lock := range kit.Locks {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, connection lost first: %v", name, lost), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
					c := kit.Connect(t, srv)
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
				c := kit.Connect(t, srv)
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
				c := kit.Connect(t, srv)
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
