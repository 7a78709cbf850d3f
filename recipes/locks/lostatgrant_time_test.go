package locks_test

import (
	"context"
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

// slowContext calls a function when a value is asked for, until the function says that it
// has done its work.
type slowContext struct {
	context.Context
	do func() (done bool)
}

func (c *slowContext) Value(key any) any {
	if do := c.do; do != nil {
		c.do = nil // it may ask for values itself
		if !do() {
			c.do = do
		}
	}
	return c.Context.Value(key)
}

// An acquisition whose nodes are lost between the grant and its return begins again, as one
// does that waits. Nobody has had the lock.
func TestLockThatIsLostAtItsGrant(t *testing.T) {
	t.Parallel()
	losses := map[string]func(t *testing.T, srv *zktest.Server, session int64){
		"node deleted": func(t *testing.T, srv *zktest.Server, session int64) {
			other := kit.Connect(t, srv)
			require.NoError(t, other.Delete(t.Context(), srv.Ephemerals(session)[0], framework.AnyVersion))
		},
		"session expired": func(t *testing.T, srv *zktest.Server, session int64) {
			require.NoError(t, srv.ExpireSession(session))
		},
		"not connected": func(t *testing.T, srv *zktest.Server, session int64) {
			srv.Refuse()
			require.NoError(t, srv.Disconnect(session))
			time.Sleep(time.Minute)
			srv.Accept()
		},
	}
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			kit.EachLock(t, func(t *testing.T, lock kit.LockOf) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				lost := false
				ctx := &slowContext{t.Context(), func() bool {
					if session := c.SessionID(); len(srv.Ephemerals(session)) > 0 {
						lost = true
						lose(t, srv, session)
						time.Sleep(time.Second)
					}
					return lost
				}}
				h, err := lock(c).Acquire(ctx)
				require.NoError(t, err)
				assert.True(t, lost)
				require.NoError(t, h.Err())
				require.NoError(t, h.Release())
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// With FailOnSessionLoss it ends with its session, and with nothing else.
func TestLockThatIsLostAtItsGrantWithItsSession(t *testing.T) {
	t.Parallel()
	goesOn := locks.EndOnSuspended()
	fails := []locks.Option{locks.FailOnSessionLoss(), goesOn}
	kinds := map[string]kit.LockOf{
		"mutex": func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/l", fails...) },
		"semaphore": func(c *framework.Client) locks.Lock {
			return kit.Leases(locks.NewInterProcessSemaphore(c, "/l", 3, fails...), 2)
		},
		"multi": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l", fails...), locks.NewInterProcessMutex(c, "/m", fails...))
		},
		"multi of one": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l", fails...))
		},
		"multi whose first member fails": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l", fails...), locks.NewInterProcessMutex(c, "/m", goesOn))
		},
		"multi whose last member fails": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l", goesOn), locks.NewInterProcessMutex(c, "/m", fails...))
		},
	}
	losses := []struct {
		name string
		lose func(t *testing.T, srv *zktest.Server, c *framework.Client)
		ends error
	}{
		{"expired", func(t *testing.T, srv *zktest.Server, c *framework.Client) {
			require.NoError(t, srv.ExpireSession(c.SessionID()))
			time.Sleep(time.Second)
		}, framework.ErrSessionExpired},
		{"why is not known yet", func(t *testing.T, srv *zktest.Server, c *framework.Client) {
			require.NoError(t, srv.ExpireSession(c.SessionID()))
			time.Sleep(d)
			synctest.Wait()
		}, framework.ErrSessionExpired},
		{"not connected", func(t *testing.T, srv *zktest.Server, c *framework.Client) {
			srv.Refuse()
			require.NoError(t, srv.Disconnect(c.SessionID()))
			time.Sleep(time.Minute)
			srv.Accept()
		}, framework.ErrSessionExpired},
		{"suspended", func(t *testing.T, srv *zktest.Server, c *framework.Client) {
			require.NoError(t, srv.Disconnect(c.SessionID()))
			time.Sleep(d)
			synctest.Wait()
		}, nil},
		{"closed", func(t *testing.T, _ *zktest.Server, c *framework.Client) { require.NoError(t, c.Close()) }, framework.ErrClosed},
	}
	for _, loss := range losses {
		for kind, lock := range kinds {
			t.Run(loss.name+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
					c := kit.Connect(t, srv)
					lost := false
					h, err := lock(c).Acquire(&slowContext{t.Context(), func() bool {
						if !lost && len(srv.Ephemerals(0)) > 0 {
							lost = true
							loss.lose(t, srv, c)
						}
						return lost
					}})
					assert.True(t, lost)
					if loss.ends != nil {
						require.ErrorIs(t, err, loss.ends)
						assert.NotErrorIs(t, err, locks.ErrLockLost, "nobody has had it")
					} else {
						require.NoError(t, err)
						require.NoError(t, h.Err())
						require.NoError(t, h.Release())
					}
					time.Sleep(time.Minute)
					kit.NothingLeft(t, srv)
				})
			})
		}
	}
}

// It begins again in the session in which it has waited, or not at all.
func TestLockThatIsLostAtItsGrantBeginsAgainInItsSession(t *testing.T) {
	t.Parallel()
	fails := []locks.Option{locks.FailOnSessionLoss(), locks.EndOnSuspended()}
	for kind, lock := range map[string]kit.LockOf{
		"mutex": func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/l", fails...) },
		"mutex with a node of its own": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMutex(c, "/l", append(fails[:2:2], locks.LocalHandovers(0))...)
		},
		"semaphore": func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/l", 3, fails...) },
		"leases": func(c *framework.Client) locks.Lock {
			return kit.Leases(locks.NewInterProcessSemaphore(c, "/l", 3, fails...), 2)
		},
		"multi": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l", fails...), locks.NewInterProcessMutex(c, "/m", fails[1:]...))
		},
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c := kit.Connect(t, srv)
				first, suspended := c.SessionID(), false
				_, err := lock(c).Acquire(&slowContext{t.Context(), func() bool {
					switch {
					case suspended:
						require.NoError(t, srv.ExpireSession(first))
						time.Sleep(time.Second)
						return true
					case len(srv.Ephemerals(first)) > 0:
						suspended = true
						require.NoError(t, srv.Disconnect(first))
						time.Sleep(d)
						synctest.Wait()
					}
					return false
				}})
				require.ErrorIs(t, err, framework.ErrSessionExpired)
				assert.NotEqual(t, first, c.SessionID())
				time.Sleep(time.Minute)
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// A MultiLock that takes several steps waits in a later one for as long as others have that
// lock. What it has taken before can be lost meanwhile, and is acquired again as well.
func TestMultiLockThatLosesAMemberWhileItWaits(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, srv *zktest.Server, c, other *framework.Client){
		"node deleted": func(t *testing.T, _ *zktest.Server, _, other *framework.Client) {
			node := kit.Children(t, other, "/a")[0]
			require.NoError(t, other.Delete(t.Context(), "/a/"+node, framework.AnyVersion))
		},
		"session expired": func(t *testing.T, srv *zktest.Server, c, _ *framework.Client) {
			require.NoError(t, srv.ExpireSession(c.SessionID()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				inTheWay := kit.Hold(t, locks.NewInterProcessSemaphore(other, "/s", 1))
				time.AfterFunc(time.Second, func() { lose(t, srv, c, other) })
				time.AfterFunc(time.Minute, func() { assert.NoError(t, inTheWay.Release()) })
				lock := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessSemaphore(c, "/s", 1))
				h, err := lock.Acquire(t.Context())
				require.NoError(t, err)
				require.NoError(t, h.Err())
				require.NoError(t, h.Release())
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// A wait that is limited is so in all, and a member with FailOnSessionLoss ends it.
func TestMultiLockThatLosesAMemberAndWaitsNoMore(t *testing.T) {
	for name, opts := range map[string][]locks.Option{"limited": nil, "fails": {locks.FailOnSessionLoss()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				inTheWay := kit.Hold(t, locks.NewInterProcessSemaphore(other, "/s", 1))
				time.AfterFunc(time.Second, func() { assert.NoError(t, srv.ExpireSession(c.SessionID())) })
				time.AfterFunc(10*time.Second, func() {
					assert.NoError(t, inTheWay.Release())
					kit.Queue(t, locks.NewInterProcessMutex(other, "/a"))
				})
				lock := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a", opts...), locks.NewInterProcessSemaphore(c, "/s", 1))
				began := time.Now()
				h, err := lock.TryAcquire(t.Context(), 20*time.Second)
				assert.LessOrEqual(t, time.Since(began), 20*time.Second)
				if opts != nil {
					require.ErrorIs(t, err, framework.ErrSessionExpired)
					return
				}
				require.NoError(t, err)
				require.NoError(t, h.Release())
			})
		})
	}
}

// What its caller had before is lost for the caller as well, who is told so.
func TestMultiLockUnderAHoldThatIsLostWhileItWaits(t *testing.T) {
	for name, opts := range map[string][]locks.Option{"goes on": nil, "fails": {locks.FailOnSessionLoss()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				inTheWay := kit.Hold(t, locks.NewInterProcessMutex(other, "/b"))
				a := locks.NewInterProcessMutex(c, "/a", opts...)
				outer := kit.Hold(t, a)
				time.AfterFunc(time.Second, func() { assert.NoError(t, srv.ExpireSession(c.SessionID())) })
				time.AfterFunc(5*time.Second, func() { assert.NoError(t, inTheWay.Release()) })
				both := locks.NewInterProcessMultiLock(a, locks.NewInterProcessMutex(c, "/b"))
				_, err := both.Acquire(context.WithoutCancel(outer.Context()))
				require.ErrorIs(t, err, locks.ErrLockLost)
				require.ErrorIs(t, outer.Release(), locks.ErrLockLost)
				time.Sleep(time.Minute)
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// A member that is taken by itself does not begin again in the next session either.
func TestMemberTakenAloneBeginsAgainInItsSession(t *testing.T) {
	fails := []locks.Option{locks.FailOnSessionLoss(), locks.EndOnSuspended()}
	for kind, lock := range map[string]kit.LockOf{
		"mutex":     func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/l", fails...) },
		"semaphore": func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/l", 3, fails...) },
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c := kit.Connect(t, srv)
				first, suspended := c.SessionID(), false
				theirs := lockFunc(func(ctx context.Context) (*locks.Hold, error) {
					hold, _ := locks.NewHold(ctx, nil)
					if !suspended {
						require.NoError(t, srv.Disconnect(first))
						time.Sleep(d)
						synctest.Wait()
						suspended = true
					}
					return hold, nil
				})
				_, err := locks.NewInterProcessMultiLock(lock(c), theirs).Acquire(&slowContext{t.Context(), func() bool {
					if suspended {
						require.NoError(t, srv.ExpireSession(first))
						time.Sleep(time.Second)
					}
					return suspended
				}})
				require.ErrorIs(t, err, framework.ErrSessionExpired)
				assert.NotEqual(t, first, c.SessionID())
				time.Sleep(time.Minute)
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// lockFunc is a lock of a type of the user's.
type lockFunc func(ctx context.Context) (*locks.Hold, error)

func (f lockFunc) Acquire(ctx context.Context) (*locks.Hold, error) { return f(ctx) }

func (f lockFunc) TryAcquire(ctx context.Context, _ time.Duration) (*locks.Hold, error) {
	return f(ctx)
}
