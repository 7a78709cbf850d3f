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
}{
	"done":    {fault: zktest.Call(func(zktest.Request) {})},
	"refused": {fault: zktest.Call(func(zktest.Request) {}), want: framework.ErrNoNode},
	"unknown": {fault: zktest.CutAfter(), want: framework.ErrOutcomeUnknown},
	"lost":    {fault: zktest.CutBefore(), want: framework.ErrOutcomeUnknown},
}

// CommitAndRelease ends the contexts before the servers have the transaction, and the hold
// for good, whatever becomes of it. The error says so, and the lock is given back.
func TestCommitAndReleaseEndsTheHold(t *testing.T) {
	t.Parallel()
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
						assert.Equal(t, locks.Released, h.State())
						return answer.fault
					}))
					tx := h.Transaction()
					if what == "refused" {
						tx.Check("/nobody-has-made-it", framework.AnyVersion)
					}
					_, err = tx.CommitAndRelease(t.Context())
					require.ErrorIs(t, err, answer.want)
					assert.Equal(t, int32(1), looked.Load())
					if err != nil {
						require.NotErrorIs(t, err, locks.ErrReleased)
						require.ErrorContains(t, err, "the hold is released")
						require.NoError(t, locks.TryDo(t.Context(), lock(kit.Connect(t, srv)), 10*time.Second, func(context.Context) error { return nil }))
					}
					isOver(t, h, all)
					time.Sleep(time.Minute)
					kit.NothingLeft(t, srv)
				})
			})
		}
	}
}

// isOver says that a hold has ended for good.
func isOver(t *testing.T, h *locks.Hold, all []context.Context) {
	t.Helper()
	assert.Equal(t, locks.Released, h.State())
	for _, ctx := range all {
		assert.ErrorIs(t, context.Cause(ctx), locks.ErrReleased)
	}
	late, cancel := h.Bind(context.Background())
	defer cancel()
	assert.ErrorIs(t, context.Cause(late), locks.ErrReleased)
	_, err := h.Transaction().Commit(context.Background())
	assert.ErrorIs(t, err, locks.ErrReleased)
	_, err = h.Transaction().CommitAndRelease(context.Background())
	assert.ErrorIs(t, err, locks.ErrReleased)
	assert.ErrorIs(t, h.Release(), locks.ErrReleased)
}

// A transaction that is not sent, or that cannot be made, ends the hold as well.
func TestCommitAndReleaseThatSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		all := allShown(t, h)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = h.Transaction().CommitAndRelease(ended)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "the hold is released")
		isOver(t, h, all)

		released := 0
		theirs, _ := locks.NewHold(t.Context(), func() error { released++; return nil })
		all = allShown(t, theirs)
		_, err = theirs.Transaction().CommitAndRelease(t.Context())
		require.ErrorIs(t, err, locks.ErrNoFence)
		require.ErrorContains(t, err, "the hold is released")
		assert.Equal(t, 1, released)
		assert.Equal(t, locks.Released, theirs.State())
		assertEnded(t, all, "theirs")

		both, err := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(other, "/b")).Acquire(t.Context())
		require.NoError(t, err)
		all = allShown(t, both)
		_, err = both.Transaction().CommitAndRelease(t.Context())
		require.ErrorIs(t, err, locks.ErrNoFence)
		isOver(t, both, all)
		time.Sleep(time.Second)
		kit.NothingLeft(t, srv)
	})
}

// After a refusal the next goroutine in the local queue gets the lock.
func TestWaiterAfterARefusedCommitAndRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		m := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l")
		h, err := m.Acquire(t.Context())
		require.NoError(t, err)
		next := kit.Acquire(t, m)
		tx := h.Transaction()
		tx.Check("/nobody-has-made-it", framework.AnyVersion)
		_, err = tx.CommitAndRelease(t.Context())
		require.ErrorIs(t, err, framework.ErrNoNode)
		require.NoError(t, next.Soon().Release())
		time.Sleep(time.Second)
		kit.NothingLeft(t, srv)
	})
}

// If the servers refuse the transaction, and then do not let the node be deleted, the
// error tells of both.
func TestCommitAndReleaseTellsOfARefusedRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		tx := h.Transaction()
		tx.Check("/nobody-has-made-it", framework.AnyVersion)
		rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "delete", Nth: 1}, zktest.Fail(-102))
		_, err = tx.CommitAndRelease(t.Context())
		require.Equal(t, 1, rule.Fired())
		var refused *framework.TransactionError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, framework.ErrNoAuth)
		assert.NotContains(t, err.Error(), "the hold is released")
		time.Sleep(time.Minute)
		kit.NothingLeft(t, srv)
	})
}

// A lock that goes while such a transaction is on its way is given back like any other.
func TestLossDuringCommitAndRelease(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, srv *zktest.Server, c *framework.Client, path string){
		"session": func(_ *testing.T, srv *zktest.Server, c *framework.Client, _ string) {
			id := c.SessionID()
			srv.Stall(id, zktest.BothWays)
			time.Sleep(time.Minute)
			srv.Unstall(id)
		},
		"node": func(t *testing.T, srv *zktest.Server, _ *framework.Client, path string) {
			assert.NoError(t, kit.Connect(t, srv).Delete(t.Context(), path, framework.AnyVersion))
		},
		"connection": func(_ *testing.T, srv *zktest.Server, _ *framework.Client, _ string) { srv.DisconnectAll() },
	} {
		for _, opts := range [][]locks.Option{nil, {locks.EndOnSuspended()}} {
			t.Run(fmt.Sprintf("%s, %d options", name, len(opts)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
					c := kit.Connect(t, srv)
					m := locks.NewInterProcessMutex(c, "/l", opts...)
					h, err := m.Acquire(t.Context())
					require.NoError(t, err)
					all := allShown(t, h)
					time.Sleep(time.Second) // so that its node is watched
					next := kit.Acquire(t, m)
					tx := h.Transaction()
					tx.Check("/nobody-has-made-it", framework.AnyVersion)
					rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "multi", Path: "/nobody-has-made-it"}, zktest.Delay(5*time.Second))
					var losing sync.WaitGroup
					losing.Go(func() {
						time.Sleep(time.Second)
						lose(t, srv, c, h.Path())
					})
					_, err = tx.CommitAndRelease(t.Context())
					require.Error(t, err)
					rule.Remove()
					losing.Wait()
					isOver(t, h, all)
					require.NoError(t, next.Soon().Release())
					time.Sleep(time.Minute)
					assert.Empty(t, srv.Ephemerals(0))
				})
			})
		}
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
	t.Parallel()
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

// A re-entry that commits leaves the node to the hold that it came from.
func TestCommitAndReleaseOfAReentry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l")
		outer, err := m.Acquire(t.Context())
		require.NoError(t, err)
		inner, err := m.Acquire(outer.Context())
		require.NoError(t, err)
		_, err = inner.Transaction().CommitAndRelease(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{outer.Path()}, srv.Ephemerals(c.SessionID()))
		_, err = outer.Transaction().CommitAndRelease(t.Context())
		require.NoError(t, err)
		assert.Empty(t, srv.Ephemerals(c.SessionID()))
	})
}

// The other hold of a lock goes while a transaction gives one back that was not the last
// when it began: then the node goes with the other one, after the transaction.
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
				require.ErrorIs(t, outer.Release(), locks.ErrReleasePending)
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
			})
		})
	}
}
