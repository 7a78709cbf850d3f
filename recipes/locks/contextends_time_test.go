package locks_test

import (
	"context"
	"fmt"
	"net"
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

// allShown are contexts of a hold and of its members.
func allShown(t *testing.T, h *locks.Hold) []context.Context {
	t.Helper()
	all := shown(t, h)
	for _, m := range h.Members() {
		all = append(all, allShown(t, m)...)
	}
	return all
}

// When the servers hear that a lock is given back, the contexts of the hold have
// ended, with whatever is below them.
func TestContextsEndBeforeTheLockIsGivenBack(t *testing.T) {
	for name, lock := range kit.Locks {
		for way, give := range map[string]func(c *framework.Client, h *locks.Hold) error{
			"release": func(_ *framework.Client, h *locks.Hold) error { return h.Release() },
			"close":   func(c *framework.Client, _ *locks.Hold) error { return c.Close() },
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory())
					c := kit.Connect(t, srv)
					h, err := lock(c).Acquire(t.Context())
					require.NoError(t, err)
					looked := endedWhenGiven(t, srv, c.SessionID(), allShown(t, h))
					require.NoError(t, give(c, h))
					assert.Equal(t, int32(1), looked.Load())
				})
			})
		}
	}
}

// The reply to a release may be late: who has it next finds the contexts of the
// hold before ended.
func TestContextsEndAlthoughTheReplyIsLate(t *testing.T) {
	for name, lock := range kit.Locks {
		if name == "read" {
			continue // others may read beside it
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(5*time.Millisecond))
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				h, err := lock(c).Acquire(t.Context())
				require.NoError(t, err)
				all := allShown(t, h)
				granted := make(chan struct{})
				go func() {
					defer close(granted)
					next, err := lock(other).Acquire(t.Context())
					assertEnded(t, all, "granted to another client")
					if assert.NoError(t, err) {
						assert.NoError(t, next.Release())
					}
				}()
				time.Sleep(time.Second)
				srv.Stall(c.SessionID(), zktest.ToClient)
				require.ErrorIs(t, h.Release(), locks.ErrReleasePending)
				<-granted
				srv.Unstall(c.SessionID())
			})
		})
	}
}

// A member that is released early is over by itself; the rest goes on.
func TestContextsOfAMemberEndBeforeItIsGivenBack(t *testing.T) {
	for _, name := range []string{"semaphore", "multi"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				h, err := kit.Locks[name](c).Acquire(t.Context())
				require.NoError(t, err)
				first := h.Members()[0]
				looked := endedWhenGiven(t, srv, c.SessionID(), allShown(t, first))
				require.NoError(t, first.Release())
				assert.Equal(t, int32(1), looked.Load())
				require.NoError(t, h.Context().Err())
				require.NoError(t, h.Members()[1].Context().Err())
				looked = endedWhenGiven(t, srv, c.SessionID(), allShown(t, h))
				require.NoError(t, h.Release())
				assert.Equal(t, int32(1), looked.Load())
			})
		})
	}
}

// The same for locks of users, alone and beside ours.
func TestContextsOfALockOfYours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		var all []context.Context
		released := 0
		theirs := whatever(func(time.Duration) (*locks.Hold, error) {
			h, _ := locks.NewHold(t.Context(), func() error {
				released++
				assertEnded(t, all, "a lock of yours")
				return nil
			})
			return h, nil
		})
		for _, lock := range []locks.Lock{theirs, locks.NewInterProcessMultiLock(theirs, locks.NewInterProcessMutex(c, "/m"))} {
			h, err := lock.Acquire(t.Context())
			require.NoError(t, err)
			all = shown(t, h)
			if members := h.Members(); len(members) > 0 {
				all = append(all, shown(t, members[len(members)-1])...)
			}
			require.NoError(t, h.Release())
		}
		assert.Equal(t, 2, released)
	})
}

// Of holds that share a lock by re-entry, all contexts have ended when the last of
// them gives it back, in whatever order they are released.
func TestContextsOfReenteredHolds(t *testing.T) {
	for _, outerFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory())
			c := kit.Connect(t, srv)
			m := locks.NewInterProcessMutex(c, "/l")
			outer, err := m.Acquire(t.Context())
			require.NoError(t, err)
			bound, cancel := outer.Bind(t.Context())
			defer cancel()
			inner, err := m.Acquire(bound)
			require.NoError(t, err)
			looked := endedWhenGiven(t, srv, c.SessionID(), append(shown(t, outer), shown(t, inner)...))
			first, last := inner, outer
			if outerFirst {
				first, last = outer, inner
			}
			require.NoError(t, first.Release())
			assert.Zero(t, looked.Load())
			require.NoError(t, last.Context().Err())
			require.NoError(t, last.Release())
			assert.Equal(t, int32(1), looked.Load())
		})
	}
}

// A hold under which another lock is held keeps its context for as long as that
// lasts.
func TestContextGoesOnForTheHoldsBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		outer, err := locks.NewInterProcessMutex(c, "/a").Acquire(t.Context())
		require.NoError(t, err)
		inner, err := locks.NewInterProcessMutex(c, "/b").Acquire(outer.Context())
		require.NoError(t, err)
		require.NoError(t, outer.Release())
		require.NoError(t, outer.Context().Err())
		require.NoError(t, inner.Context().Err())
		looked := endedWhenGiven(t, srv, c.SessionID(), append(shown(t, outer), shown(t, inner)...))
		require.NoError(t, inner.Release())
		assert.Equal(t, int32(1), looked.Load())
	})
}

// A goroutine that gets the lock from another goroutine of the client finds the contexts
// of the earlier hold ended. So many that it takes some time to end them.
func TestContextsEndBeforeAHandover(t *testing.T) {
	eachExclusive(t, func(t *testing.T, lock func(c *framework.Client, opts ...locks.Option) locks.Lock) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		for range 10 {
			h, err := lock(c).Acquire(t.Context())
			require.NoError(t, err)
			node := h.Path()
			all := make([]context.Context, 20_000)
			cancels := make([]context.CancelFunc, len(all))
			for i := range all {
				all[i], cancels[i] = context.WithCancel(h.Context())
			}
			var next sync.WaitGroup
			next.Go(func() {
				h, err := lock(c).Acquire(t.Context())
				ended := 0
				for _, ctx := range all {
					if ctx.Err() != nil {
						ended++
					}
				}
				assert.Len(t, all, ended)
				if assert.NoError(t, err) {
					assert.Equal(t, node, h.Path(), "handed over")
					assert.NoError(t, h.Release())
				}
			})
			synctest.Wait()
			require.NoError(t, h.Release())
			next.Wait()
			for _, cancel := range cancels {
				cancel()
			}
		}
	})
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

// closing is a connection that tells when it is closed.
type closing struct {
	net.Conn
	tell func()
}

func (c *closing) Close() error {
	c.tell()
	return c.Conn.Close()
}

// A session that the client gives up is closed on the servers as soon as they can be
// reached. By then, and before the connection is closed, the contexts of all holds
// have ended, however many there are.
func TestContextsEndBeforeASessionIsGivenUp(t *testing.T) {
	for name, giveUp := range map[string]func(srv *zktest.Server, c *framework.Client){
		"no renewal": func(srv *zktest.Server, c *framework.Client) {
			srv.On(zktest.Match{Op: "multi", Session: c.SessionID()}, zktest.Fail(-127))
		},
		"silence": func(srv *zktest.Server, _ *framework.Client) {
			srv.Freeze()
			time.AfterFunc(3*time.Second, srv.Thaw)
		},
		"LostAfter": func(srv *zktest.Server, c *framework.Client) {
			srv.Refuse()
			_ = srv.Disconnect(c.SessionID())
			time.AfterFunc(time.Second, srv.Accept) // at the very time
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(2*time.Millisecond))
				var all []context.Context
				var looking atomic.Bool
				look := func(what string) {
					if !looking.Load() {
						return
					}
					going := 0
					for _, ctx := range all {
						if ctx.Err() == nil {
							going++
						}
					}
					assert.Zero(t, going, "contexts that go on: %s", what)
				}
				c := kit.Connect(t, srv, func(cfg *framework.Config) {
					cfg.SessionTimeout = 4 * time.Second
					if name == "LostAfter" {
						cfg.LostAfter = time.Second
					}
					cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
						nc, err := srv.DialContext(ctx, network, addr)
						if err != nil {
							return nil, err
						}
						return &closing{nc, func() { look("connection closed") }}, nil
					}
				})
				var holds []*locks.Hold
				for i := range 100 {
					h, err := locks.NewInterProcessMutex(c, fmt.Sprint("/l", i)).Acquire(t.Context())
					require.NoError(t, err)
					holds, all = append(holds, h), append(all, shown(t, h)...)
				}
				var looked atomic.Int32
				srv.On(zktest.Match{Op: "closeSession", Session: c.SessionID()}, zktest.Call(func(zktest.Request) {
					looked.Add(1)
					looking.Store(true)
					look("session closed")
				}))
				looking.Store(name != "LostAfter") // which begins with the end of a connection
				giveUp(srv, c)
				time.Sleep(10 * time.Second)
				assert.Equal(t, int32(1), looked.Load())
				for _, h := range holds {
					assert.ErrorIs(t, h.Release(), locks.ErrLockLost)
				}
			})
		})
	}
}

// A goroutine that asks a hold at its deadline ends the contexts, as the session does.
// The second one does not go on before the first has ended them.
func TestContextsEndedByTwoAtOnce(t *testing.T) {
	for name, look := range map[string]func(h *locks.Hold){
		"asked":    func(h *locks.Hold) { assert.Equal(t, locks.Lost, h.State()) },
		"released": func(h *locks.Hold) { assert.ErrorIs(t, h.Release(), locks.ErrLockLost) },
	} {
		t.Run(name, func(t *testing.T) {
			deadline := endsAfter(t, 0, func(*locks.Hold) {})
			for range 10 {
				assert.Equal(t, deadline, endsAfter(t, deadline, look))
			}
		})
	}
}

// endsAfter returns after what time a hold ends whose session is not renewed. look is
// called with it at the time given. So many children has its context that it takes
// some time to end them.
func endsAfter(t *testing.T, at time.Duration, look func(h *locks.Hold)) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(2*time.Millisecond))
		var last context.Context // to be ended
		all := make([]context.Context, 20_000)
		c := kit.Connect(t, srv, func(cfg *framework.Config) {
			cfg.SessionTimeout = 4 * time.Second
			cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				nc, err := srv.DialContext(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return &closing{nc, func() {
					going := 0
					for _, ctx := range all {
						if ctx.Err() == nil {
							going++
						}
					}
					assert.Zero(t, going, "contexts that go on")
				}}, nil
			}
		})
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		last = h.Context()
		cancels := make([]context.CancelFunc, len(all))
		for i := range all {
			all[i], cancels[i] = context.WithCancel(last)
		}
		began := time.Now()
		srv.On(zktest.Match{Op: "multi", Session: c.SessionID()}, zktest.Fail(-127))
		if at > 0 {
			time.Sleep(at)
			look(h)
		}
		<-last.Done()
		took = time.Since(began)
		_ = h.Release()
		for _, cancel := range cancels {
			cancel()
		}
		time.Sleep(time.Second)
	})
	return took
}
