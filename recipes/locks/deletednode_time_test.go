package locks_test

import (
	"context"
	"errors"
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

// Somebody deletes the node of one who waits, or who has just been granted.
func TestWaiterWhoseNodeIsDeleted(t *testing.T) {
	for name, q := range queues {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				holder, operator, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				h, err := mutexAt(q.queue)(holder).Acquire(t.Context())
				require.NoError(t, err)
				a := kit.Acquire(t, q.lock(c))
				require.True(t, a.Waits())
				for _, node := range srv.Ephemerals(c.SessionID()) {
					require.NoError(t, operator.Delete(t.Context(), node, 0))
				}
				require.True(t, a.Waits(), "the holder holds")
				require.NoError(t, h.Release())
				h = a.Soon()
				standsOn(t, operator, h, c.SessionID())
				require.NoError(t, h.Release())
			})
		})
	}
}

// raze deletes a node and all below, in one transaction.
func raze(ctx context.Context, c *framework.Client, path string) error {
	var below func(path string) ([]string, error)
	below = func(path string) ([]string, error) {
		children, _, err := c.Children(ctx, path)
		if err != nil {
			return nil, err
		}
		var all []string
		for _, child := range children {
			more, err := below(path + "/" + child)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return append(all, path), nil
	}
	all, err := below(path)
	if err != nil {
		return err
	}
	tx := c.Transaction()
	for _, path := range all {
		tx.Delete(path, framework.AnyVersion)
	}
	_, err = tx.Commit(ctx)
	return err
}

// A waiter queues again if others delete the lock, with its parent and with all
// nodes in it.
func TestQueueDeletedAtAnyMoment(t *testing.T) {
	t.Parallel()
	for _, inOne := range []bool{true, false} {
		destroy := raze
		if !inOne {
			destroy = func(ctx context.Context, c *framework.Client, path string) error {
				return c.Delete(ctx, path, framework.AnyVersion, framework.Recursive())
			}
		}
		t.Run(fmt.Sprintf("in one transaction=%v", inOne), func(t *testing.T) {
			for name, lock := range swept {
				for _, taken := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s taken=%v", name, taken), func(t *testing.T) {
						for moment := range 52 {
							synctest.Test(t, func(t *testing.T) {
								sweepCall(t, taken, lock, func(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
									h, err := lock.Acquire(ctx)
									if !errors.Is(err, locks.ErrLockLost) { // as the downgrade of a write side that was deleted
										require.NoError(t, err)
									}
									return h, err
								}, func(srv *zktest.Server, _ *framework.Client) context.Context {
									operator := kit.Connect(t, srv)
									time.AfterFunc(time.Duration(moment)*time.Millisecond/2, func() { _ = destroy(context.Background(), operator, "/l") })
									return t.Context()
								})
							})
							if t.Failed() {
								t.Fatalf("at moment %d", moment)
							}
						}
					})
				}
			}
		})
	}
}

// So do many waiters, on this client and on others, and those in a local queue.
func TestCrowdWhoseQueueIsDeleted(t *testing.T) {
	for name, lock := range swept {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				operator := kit.Connect(t, srv)
				_, err := lock(operator).Acquire(t.Context())
				require.NoError(t, err)
				var all sync.WaitGroup
				var errs []error
				var mu sync.Mutex
				for range 3 {
					c := kit.Connect(t, srv)
					for range 4 {
						all.Go(func() {
							h, err := lock(c).Acquire(t.Context())
							if err == nil {
								time.Sleep(10 * time.Millisecond)
								// The second of a queue has the lock when it hears that the first has gone, and
								// loses it when it hears that its own node went as well.
								if err = h.Release(); errors.Is(err, locks.ErrNodeDeleted) {
									err = nil
								}
							}
							mu.Lock()
							defer mu.Unlock()
							errs = append(errs, err)
						})
					}
				}
				time.Sleep(time.Second)
				for raze(t.Context(), operator, "/l") != nil {
					continue // somebody came in between
				}
				all.Wait()
				for _, err := range errs {
					require.NoError(t, err)
				}
				time.Sleep(time.Minute)
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// Somebody deletes the lock over and over: each time just before it is listed, or
// before something is made in it. The waiters do not ask without a pause, and get
// the lock once that is over.
func TestQueueDeletedOverAndOver(t *testing.T) {
	t.Run("listed", func(t *testing.T) {
		deletedOverAndOver(t, zktest.Match{Op: "getChildren"}, zktest.Match{Op: "getChildren2"}, zktest.Match{Op: "multiRead"})
	})
	t.Run("made", func(t *testing.T) { deletedOverAndOver(t, zktest.Match{Op: "createContainer", Path: "/l/*"}) })
}

func deletedOverAndOver(t *testing.T, before ...zktest.Match) {
	t.Helper()
	const long = 20 * time.Second
	for name, lock := range swept {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(100*time.Microsecond))
				operator, c := kit.Connect(t, srv), kit.Connect(t, srv)
				id := c.SessionID()
				var asked atomic.Int32
				rules := []*zktest.Rule{srv.On(zktest.Match{Session: id, Func: func(zktest.Request) bool {
					asked.Add(1)
					return false
				}}, zktest.CutBefore())}
				for _, match := range before {
					match.Session = id
					rules = append(rules, srv.On(match, zktest.Call(func(zktest.Request) {
						_ = raze(context.Background(), operator, "/l")
					})))
				}
				got := kit.Acquire(t, persistent{lock(c)})
				time.Sleep(long)
				assert.True(t, got.Pending())
				assert.Less(t, asked.Load(), int32(2500), "120 in a second, several for each try")
				for _, rule := range rules {
					rule.Remove()
				}
				require.NoError(t, got.Soon().Release())
			})
		})
	}
}

// persistent acquires again when a part of what it has was deleted, as the write
// side of a downgrade.
type persistent struct{ locks.Lock }

func (l persistent) Acquire(ctx context.Context) (*locks.Hold, error) {
	for {
		h, err := l.Lock.Acquire(ctx)
		if !errors.Is(err, locks.ErrLockLost) {
			return h, err
		}
		time.Sleep(time.Second)
	}
}

// Somebody deletes the lock each time when a waiter has seen who is ahead of it,
// and puts another one there. That the waiter got further each time does not make
// it ask without a pause.
func TestWaiterDeletedOverAndOver(t *testing.T) {
	for name, lock := range map[string]func(*framework.Client) locks.Lock{
		"mutex": mutexAt("/l/m"),
		"multi": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(mutexAt("/l/m")(c), mutexAt("/m")(c))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(100*time.Microsecond))
				operator, c := kit.Connect(t, srv), kit.Connect(t, srv)
				ahead := func() {
					_, _ = operator.Create(context.Background(), "/l/m/x-lock-", nil, framework.EphemeralSequential, framework.Parents())
				}
				ahead()
				var asked atomic.Int32
				srv.On(zktest.Match{Session: c.SessionID(), Func: func(zktest.Request) bool {
					asked.Add(1)
					return false
				}}, zktest.CutBefore())
				rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "getData", Path: "/l/m/*"}, zktest.Call(func(zktest.Request) {
					_ = raze(context.Background(), operator, "/l")
					ahead()
				}))
				got := kit.Acquire(t, lock(c))
				time.Sleep(20 * time.Second)
				assert.True(t, got.Pending())
				assert.Less(t, asked.Load(), int32(1000))
				rule.Remove()
				_ = raze(t.Context(), operator, "/l")
				require.NoError(t, got.Soon().Release())
			})
		})
	}
}

// A server that ends a session deletes its nodes first, and whoever watches them
// hears of that before anything else. That a node is gone ends the hold at once,
// but does not say why.
func TestWhyANodeIsGone(t *testing.T) {
	const d = 5 * time.Millisecond
	for name, lock := range swept {
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
				<-h.Gone()
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
