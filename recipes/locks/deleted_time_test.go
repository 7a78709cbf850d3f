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
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

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
									operator := connect(t, srv)
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
				operator := connect(t, srv)
				_, err := lock(operator).Acquire(t.Context())
				require.NoError(t, err)
				var all sync.WaitGroup
				var errs []error
				var mu sync.Mutex
				for range 3 {
					c := connect(t, srv)
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
				assert.Empty(t, srv.Ephemerals(0))
				assert.Empty(t, srv.Watches())
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
				operator, c := connect(t, srv), connect(t, srv)
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
				got := acquiring(t, persistent{lock(c)})
				time.Sleep(long)
				assert.Empty(t, got)
				assert.Less(t, asked.Load(), int32(2500), "120 in a second, several for each try")
				for _, rule := range rules {
					rule.Remove()
				}
				require.NoError(t, (<-got).Release())
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
				operator, c := connect(t, srv), connect(t, srv)
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
				got := acquiring(t, lock(c))
				time.Sleep(20 * time.Second)
				assert.Empty(t, got)
				assert.Less(t, asked.Load(), int32(1000))
				rule.Remove()
				_ = raze(t.Context(), operator, "/l")
				require.NoError(t, (<-got).Release())
			})
		})
	}
}
