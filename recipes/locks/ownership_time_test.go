package locks_test

import (
	"context"
	"errors"
	"net"
	"runtime"
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

// A server that ends a session deletes its nodes first, and whoever watches them
// hears of that before anything else. That a node is gone ends the hold at once,
// but does not say why.
func TestWhyANodeIsGone(t *testing.T) {
	t.Parallel()
	const d = 5 * time.Millisecond
	for name, lock := range kit.Locks {
		for _, held := range []time.Duration{0, 300 * time.Millisecond} {
			for reason, tc := range map[string]struct {
				happens func(t *testing.T, srv *zktest.Server, c, other *framework.Client, nodes []string)
				want    error
			}{
				"expired": {func(t *testing.T, srv *zktest.Server, c, _ *framework.Client, _ []string) {
					require.NoError(t, srv.ExpireSession(c.SessionID()))
				}, framework.ErrSessionExpired},
				"deleted": {func(t *testing.T, _ *zktest.Server, _, other *framework.Client, nodes []string) {
					for _, node := range nodes {
						require.NoError(t, other.Delete(t.Context(), node, framework.AnyVersion))
					}
				}, locks.ErrNodeDeleted},
			} {
				if held == 0 && reason == "deleted" {
					continue // without a watch it is seen late, or on release
				}
				t.Run(name+" "+held.String()+" "+reason, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
						c, other := kit.Connect(t, srv), kit.Connect(t, srv)
						h, err := lock(c).Acquire(t.Context())
						require.NoError(t, err)
						time.Sleep(held)
						ended := h.Context()
						nodes := srv.Ephemerals(c.SessionID())
						tc.happens(t, srv, c, other, nodes)
						gone := time.Now()
						<-ended.Done()
						if held > 0 {
							assert.LessOrEqual(t, time.Since(gone), d, "the end does not wait for the reason")
						}
						cause := context.Cause(ended)
						require.ErrorIs(t, cause, locks.ErrLockLost)
						for _, other := range []error{framework.ErrSessionExpired, locks.ErrNodeDeleted, framework.ErrNoNode} {
							assert.True(t, errors.Is(other, tc.want) || !errors.Is(cause, other), "%v is wrong", cause)
						}
						time.Sleep(time.Second)
						for _, err := range []error{cause, h.Err(), h.Release()} {
							require.ErrorIs(t, err, tc.want)
							require.ErrorContains(t, err, tc.want.Error())
							assert.NotErrorIs(t, err, framework.ErrNoNode)
						}
						assert.False(t, errors.Is(cause, framework.ErrSessionExpired) && errors.Is(cause, locks.ErrNodeDeleted))
					})
				})
			}
		}
	}
}

// What cannot be known is not said.
func TestWhenItIsKnownWhyANodeIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		after func(srv *zktest.Server, c *framework.Client)
		want  string
	}{
		"given up": {func(srv *zktest.Server, _ *framework.Client) {
			srv.Refuse()
			srv.DisconnectAll()
			time.Sleep(time.Minute)
			srv.Accept()
			time.Sleep(time.Minute)
		}, "node gone: deleted, or its session has expired"},
		"closed": {func(_ *zktest.Server, c *framework.Client) { _ = c.Close() }, "node gone: deleted, or its session has expired"},
		"found again": {func(srv *zktest.Server, _ *framework.Client) {
			srv.DisconnectAll()
			time.Sleep(time.Second)
		}, "node deleted"},
		"refused, and then a write": {func(srv *zktest.Server, c *framework.Client) {
			rule := srv.On(zktest.Match{Op: "multi"}, zktest.Fail(-127))
			srv.Unstall(c.SessionID())
			time.Sleep(time.Second)
			assert.Equal(t, 1, rule.Fired(), "not again and again")
			rule.Remove()
			_ = c.Delete(context.Background(), "/none", 0)
		}, "node deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				require.NoError(t, err)
				time.Sleep(300 * time.Millisecond)
				srv.Stall(c.SessionID(), zktest.FromClient) // the event comes, and nobody can be asked
				require.NoError(t, other.Delete(t.Context(), h.Path(), framework.AnyVersion))
				<-h.Context().Done()
				require.EqualError(t, h.Err(), "lock lost: "+h.Path()+": node gone: deleted, or its session has expired")
				if name != "closed" {
					defer srv.Unstall(c.SessionID())
				}
				if name == "found again" {
					srv.Unstall(c.SessionID())
				}
				tc.after(srv, c)
				require.EqualError(t, h.Err(), "lock lost: "+h.Path()+": "+tc.want)
				require.ErrorIs(t, h.Err(), locks.ErrLockLost)
				assert.NotErrorIs(t, h.Err(), framework.ErrSessionExpired)
				assert.Equal(t, tc.want == "node deleted", errors.Is(h.Err(), locks.ErrNodeDeleted))
			})
		})
	}
}

// Many nodes that go at once are asked for together.
func TestManyNodesThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		var holds []*locks.Hold
		for i := range 200 {
			h, err := locks.NewInterProcessMutex(c, "/l/"+string(rune('a'+i/20))+string(rune('a'+i%20))).Acquire(t.Context())
			require.NoError(t, err)
			holds = append(holds, h)
		}
		time.Sleep(time.Second)
		before := srv.Requests()["multi"]
		tx := other.Transaction()
		for _, h := range holds {
			tx.Delete(h.Path(), framework.AnyVersion)
		}
		_, err := tx.Commit(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		for _, h := range holds {
			require.ErrorIs(t, h.Err(), locks.ErrNodeDeleted)
		}
		assert.LessOrEqual(t, srv.Requests()["multi"]-before-1, 3)
	})
}

// When the servers hear that a lock is given back, the contexts of the hold have
// ended, with whatever is below them.
func TestContextsEndBeforeTheLockIsGivenBack(t *testing.T) {
	t.Parallel()
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

// A goroutine that asks a hold at its deadline ends the contexts, as the session does.
// The second one does not go on before the first has ended them.
func TestContextsEndedByTwoAtOnce(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(h *locks.Hold){
		"asked":    func(h *locks.Hold) { assert.Equal(t, locks.Lost, h.State()) },
		"released": func(h *locks.Hold) { assert.ErrorIs(t, h.Release(), locks.ErrLockLost) },
	} {
		t.Run(name, func(t *testing.T) {
			deadline := endsAfter(t, 0, func(*locks.Hold) {})
			for range 10 { // who comes second has little time
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
		all := make([]context.Context, 5_000)
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

// Of many who release at once one does.
func TestReleasedByManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		for range 10 {
			h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
			require.NoError(t, err)
			var released, before atomic.Int32
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					switch err := h.Release(); {
					case err == nil:
						released.Add(1)
					case errors.Is(err, locks.ErrReleased):
						before.Add(1)
					default:
						assert.NoError(t, err)
					}
				})
			}
			wg.Wait()
			assert.Equal(t, int32(1), released.Load())
			assert.Equal(t, int32(99), before.Load())
		}
	})
}

// A listener that panics or ends its goroutine gets the next event, and the hold
// goes on.
func TestListenerOfAHoldThatFails(t *testing.T) {
	for name, fail := range map[string]func(){"panic": func() { panic("mine") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				c := kit.Connect(t, srv)
				var told []error
				c.Errors().Listen(func(err error) { told = append(told, err) })
				h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				require.NoError(t, err)
				var heard []locks.HoldState
				h.Listen(func(s locks.HoldState) {
					heard = append(heard, s)
					fail()
				})
				synctest.Wait()
				require.NoError(t, h.Release())
				synctest.Wait()
				assert.Equal(t, []locks.HoldState{locks.Held, locks.Released}, heard)
				if name == "panic" {
					assert.Len(t, told, 2, "nothing fails in silence")
				}
				h, err = locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				require.NoError(t, err)
				require.NoError(t, h.Release())
				assert.Empty(t, srv.Ephemerals(0))
			})
		})
	}
}

// A creation lost its reply and was applied late, after another one had been granted. When
// that one's hold is over, for whatever reason, the node of the first goes as well.
func TestLateNodeGoesWithTheHold(t *testing.T) {
	for name, over := range map[string]func(t *testing.T, srv *zktest.Server, admin *framework.Client, h *locks.Hold){
		"released": func(*testing.T, *zktest.Server, *framework.Client, *locks.Hold) {},
		"deleted": func(t *testing.T, _ *zktest.Server, admin *framework.Client, h *locks.Hold) {
			require.NoError(t, admin.Delete(t.Context(), h.Path(), framework.AnyVersion))
			time.Sleep(time.Second)
			require.ErrorIs(t, h.Err(), locks.ErrNodeDeleted)
		},
		"suspended": func(t *testing.T, srv *zktest.Server, _ *framework.Client, h *locks.Hold) {
			srv.DisconnectAll()
			time.Sleep(time.Second)
			require.ErrorIs(t, h.Err(), framework.ErrNotConnected)
		},
		"committed": func(t *testing.T, _ *zktest.Server, _ *framework.Client, h *locks.Hold) {
			_, err := h.Transaction().CommitAndRelease(t.Context())
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, admin := kit.Connect(t, srv), kit.Connect(t, srv)
				require.NoError(t, c.EnsurePath(t.Context(), "/l"))
				lost := srv.On(zktest.Match{Session: c.SessionID(), Op: "create2", Nth: 1}, zktest.CutBefore())
				h := kit.Acquire(t, locks.NewInterProcessMutex(c, "/l", locks.EndOnSuspended())).Soon()
				require.Equal(t, 1, lost.Fired())
				late, err := c.Create(t.Context(), h.Path()[:len(h.Path())-len("0000000000")], nil, framework.EphemeralSequential)
				require.NoError(t, err)
				over(t, srv, admin, h)
				_ = h.Release()
				time.Sleep(time.Minute)
				there, _, err := admin.Exists(t.Context(), late)
				require.NoError(t, err)
				assert.False(t, there, "%s is left in the queue", late)
				assert.Empty(t, srv.Ephemerals(c.SessionID()))
			})
		})
	}
}
