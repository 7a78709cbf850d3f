package locks_test

import (
	"context"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// kinds are all locks at one path. Those of one kind stand in one queue.
var kinds = map[string]struct {
	kind string
	lock func(*framework.Client) locks.Lock
	java string // what Curator's lock of that kind makes, below the path
}{
	"mutex": {"mutex", func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/x/y") }, "_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-lock-"},
	"read": {"read/write", func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, "/x/y").ReadLock()
	}, "_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-__READ__"},
	"write": {"read/write", func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, "/x/y").WriteLock()
	}, "_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-__WRIT__"},
	"semaphore":       {"semaphore", func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/x/y", 3) }, "leases/_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-lease-"},
	"semaphore mutex": {"semaphore", func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/x/y") }, "leases/lease-"},
	"mutex in a MultiLock": {"mutex", func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/x/y"), locks.NewInterProcessMutex(c, "/z"))
	}, ""},
	"latch":    {"latch", func(c *framework.Client) locks.Lock { return elects{leader.NewLatch(c, "/x/y")} }, "_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-latch-"},
	"selector": {"mutex", func(c *framework.Client) locks.Lock { return elects{leader.NewSelector(c, "/x/y")} }, ""},
	"semaphore mutex in a MultiLock": {"semaphore", func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessSemaphoreMutex(c, "/x/y"), locks.NewInterProcessMutex(c, "/z"))
	}, ""},
}

// elects is a candidate as a lock.
type elects struct {
	candidate interface {
		Await(ctx context.Context) (*leader.Term, error)
	}
}

func (e elects) Acquire(ctx context.Context) (*locks.Hold, error) {
	term, err := e.candidate.Await(ctx)
	if err != nil {
		return nil, err
	}
	return term.Hold(), nil
}

func (e elects) TryAcquire(ctx context.Context, wait time.Duration) (*locks.Hold, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return e.Acquire(ctx)
}

// refused uses a lock whose path is another's.
func refused(t *testing.T, srv *zktest.Server, c *framework.Client, lock locks.Lock) {
	t.Helper()
	for range 2 {
		_, err := lock.Acquire(t.Context())
		require.ErrorIs(t, err, locks.ErrInvalidLock)
		require.ErrorContains(t, err, "/x/y")
		require.ErrorContains(t, err, "another kind")
		_, err = lock.TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, locks.ErrInvalidLock)
	}
	time.Sleep(time.Minute)
	assert.Empty(t, srv.Ephemerals(c.SessionID()))
}

// A directory full of what others have put there.
func TestForeignChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		names := []string{"!x", "~", "0", "_c_", "_c_x", "lock-", "lock-x", "-lock-0", "lock-00000000000", "lock-x0000000000", "lock-+000000001",
			"lock-99999999999", "lock-000000000", "lock-0000000000x", "LOCK-0000000000", "write-0000000000", "lease-1", "lease-00000000001", "__READ__x", "__WRIT__", "locks"}
		for i := len(names); i < 200; i++ {
			names = append(names, fmt.Sprintf("n%03d-%c", i, rune(' '+i%90)))
		}
		for _, below := range []string{"/l/m", "/l/rw", "/l/a", "/l/b", "/l/s/locks", "/l/s/leases"} {
			for _, name := range names {
				if name[len(name)-1] == '/' {
					continue
				}
				_, err := c.Create(t.Context(), below+"/"+name, nil, framework.Persistent, framework.Parents())
				require.NoError(t, err, "%q", name)
			}
		}
		for name, lock := range kit.Locks {
			h, err := lock(c).TryAcquire(t.Context(), time.Minute)
			require.NoError(t, err, name)
			require.NoError(t, h.Release())
		}
	})
}

// Numbers whose order means nothing are refused, and our node goes.
func TestNumbersAtTheirEnd(t *testing.T) {
	for name, nodes := range map[string][]string{
		"near":     {"_c_x-lock-2147450000"},
		"last":     {"_c_x-lock-2147483647"},
		"negative": {"_c_x-lock--2147483648"},
		"tied":     {"_c_x-lock-0000000007", "_c_y-lock-0000000007"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, operator := kit.Connect(t, srv), kit.Connect(t, srv)
				for _, node := range nodes {
					_, err := operator.Create(t.Context(), "/l/"+node, nil, framework.Ephemeral, framework.Parents())
					require.NoError(t, err)
				}
				_, err := locks.NewInterProcessMutex(c, "/l").TryAcquire(t.Context(), time.Minute)
				require.ErrorIs(t, err, locks.ErrSequenceExhausted)
				synctest.Wait()
				assert.Empty(t, srv.Ephemerals(c.SessionID()))
			})
		})
	}
}

// More stand in the queue than fit into one reply: who comes is told, leaves
// nothing, and keeps its connection.
func TestQueueThatIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		operator := kit.Connect(t, srv)
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.MaxReply = 4 << 10 })
		for _, below := range []string{"/l/m", "/l/rw", "/l/a", "/l/b", "/l/s/locks", "/l/s/leases"} {
			require.NoError(t, operator.EnsurePath(t.Context(), below))
			for range 100 {
				_, err := operator.Create(t.Context(), below+"/_c_00000000-0000-4000-8000-000000000000-lock-", nil, framework.EphemeralSequential)
				require.NoError(t, err)
			}
		}
		for name, lock := range kit.Locks {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := lock(c).Acquire(ctx)
			cancel()
			require.ErrorIs(t, err, framework.ErrReplyTooLarge, name)
			synctest.Wait()
			assert.Empty(t, srv.Ephemerals(c.SessionID()), name)
		}
		_, _, w, err := c.ChildrenW(t.Context(), "/l/m")
		require.ErrorIs(t, err, framework.ErrReplyTooLarge)
		assert.Nil(t, w)
		synctest.Wait()
		assert.Empty(t, srv.Watches())
		assert.Equal(t, 2, srv.Requests()["connect"])
	})
}

// Nothing can be said about the order of a queue whose numbers are used up.
func TestSequenceExhaustedEverywhere(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"mutex": "/l/m/_c_x-lock-", "read": "/l/rw/_c_x-__WRIT__", "multi": "/l/b/_c_x-lock-", "semaphore mutex": "/l/s/locks/_c_x-lock-", "semaphore": "/l/s/leases/_c_x-lease-",
	} {
		for _, wait := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprint(name, " ", wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory())
					c, operator := kit.Connect(t, srv), kit.Connect(t, srv)
					_, err := operator.Create(t.Context(), path+"2147483647", nil, framework.Ephemeral, framework.Parents())
					require.NoError(t, err)
					_, err = kit.Locks[name](c).TryAcquire(t.Context(), wait)
					require.ErrorIs(t, err, locks.ErrSequenceExhausted)
					time.Sleep(time.Minute)
					assert.Empty(t, srv.Ephemerals(c.SessionID()))
				})
			})
		}
	}
}

// Two kinds of lock on one path would not exclude each other. The second is refused,
// and leaves nothing.
func TestTwoKindsOfLockOnOnePath(t *testing.T) {
	t.Parallel()
	for first, one := range kinds {
		for second, two := range kinds {
			if one.kind == two.kind {
				continue
			}
			t.Run(first+", then "+second, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
					c, other := kit.Connect(t, srv), kit.Connect(t, srv)
					h, err := one.lock(other).Acquire(t.Context())
					require.NoError(t, err)
					refused(t, srv, c, two.lock(c))
					require.NoError(t, h.Err())
					require.NoError(t, h.Release())
					again, err := one.lock(other).Acquire(t.Context())
					require.NoError(t, err, "who was refused has left nothing in the way")
					require.NoError(t, again.Release())
				})
			})
			if one.java == "" {
				continue
			}
			t.Run(first+" of Java's, then "+second, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
					c, java := kit.Connect(t, srv), kit.Connect(t, srv)
					kit.Put(t, java, "/x/y/"+one.java)
					refused(t, srv, c, two.lock(c))
				})
			})
		}
	}
}

// Both come at the same time: at most one of them gets its lock.
func TestTwoKindsOfLockAtOnce(t *testing.T) {
	t.Parallel()
	pairs := [][2]string{{"mutex", "semaphore"}, {"write", "semaphore mutex"}, {"mutex", "write"}, {"latch", "mutex"}, {"selector", "latch"}, {"latch", "semaphore"}, {"read", "latch"}, {"mutex in a MultiLock", "semaphore mutex in a MultiLock"}}
	for _, pair := range pairs {
		t.Run(fmt.Sprint(pair), func(t *testing.T) {
			for moment := range kit.Moments(t, 40, *everySweep) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
					one, two := kit.Connect(t, srv), kit.Connect(t, srv)
					first := make(chan error)
					go func() {
						_, err := kinds[pair[0]].lock(one).Acquire(t.Context())
						first <- err
					}()
					time.Sleep(time.Duration(moment) * d / 4)
					_, err := kinds[pair[1]].lock(two).Acquire(t.Context())
					errs := []error{<-first, err}
					for _, err := range errs {
						if err != nil {
							require.ErrorIs(t, err, locks.ErrInvalidLock)
						}
					}
					assert.False(t, errs[0] == nil && errs[1] == nil, "both got it, at moment %d", moment)
				})
			}
		})
	}
}

// A client that uses the wrong kind of lock on a path, over and over, does not harm
// those that use the right one.
func TestTheWrongKindHarmsNobody(t *testing.T) {
	t.Parallel()
	rights, wrongs := []string{"mutex", "read", "write", "semaphore", "latch"}, []string{"mutex", "write", "semaphore mutex", "latch"}
	for i, right := range rights {
		for j, wrong := range wrongs {
			if kinds[right].kind == kinds[wrong].kind || !*everySweep && j != (i+1)%len(wrongs) {
				continue
			}
			t.Run(right+" and "+wrong, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.LatencyBy(zktest.Uniform(d/10, d)))
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					var all sync.WaitGroup
					var taken, refused atomic.Int32
					first, err := kinds[right].lock(kit.Connect(t, srv)).Acquire(t.Context())
					require.NoError(t, err)
					for range 3 {
						lock := kinds[right].lock(kit.Connect(t, srv))
						all.Go(func() {
							for ctx.Err() == nil {
								h, err := lock.Acquire(t.Context()) //nolint:contextcheck // ctx ends the loop, not a wait
								if !assert.NoError(t, err) {
									return
								}
								taken.Add(1)
								time.Sleep(d)
								assert.NoError(t, h.Release())
							}
						})
					}
					time.Sleep(10 * d)
					lock := kinds[wrong].lock(kit.Connect(t, srv))
					until := time.Now().Add(4 * time.Second) // while the path is in use
					all.Go(func() {
						for time.Now().Before(until) {
							_, err := lock.Acquire(ctx)
							if !assert.ErrorIs(t, err, locks.ErrInvalidLock) {
								return
							}
							refused.Add(1)
						}
					})
					if shared := right == "read" || right == "semaphore"; !shared { // else they may all be gone for a moment
						require.NoError(t, first.Release())
					}
					all.Wait()
					assert.Greater(t, taken.Load(), int32(100))
					assert.Greater(t, refused.Load(), int32(100))
				})
			})
		}
	}
}

// Children that are no contenders for another kind of lock are passed over.
func TestWhatStandsBesideALock(t *testing.T) {
	for name, lock := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				for _, path := range []string{
					"/x/y/locks", "/x/y/config", "/x/y/lock-1", "/x/y/lease-", "/x/y/latch-000000001", "/x/y/read-__READ__x", "/x/y/12345",
				} {
					_, err := other.Create(t.Context(), path, []byte("__REVOKE__"), framework.Persistent, framework.Parents())
					require.NoError(t, err)
				}
				_, err := other.Create(t.Context(), "/x/y/1b0e5b3d__party__", nil, framework.EphemeralSequential) // as kazoo's
				require.NoError(t, err)
				h, err := lock.lock(c).Acquire(t.Context())
				require.NoError(t, err)
				require.NoError(t, h.Release())
			})
		})
	}
}

// A node of another kind comes while the path is ours. Its client may get its lock once all
// before it have gone. So who comes behind it waits for that node to go, and is refused if
// it stays.
func TestAnotherKindBetween(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]string{
		"mutex": "__WRIT__", "write": "latch-", "latch": "lock-", "selector": "latch-", "mutex in a MultiLock": "__lock__",
	} {
		for _, goes := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, goes: %t", name, goes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
					a, b, peer := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
					first := kit.Hold(t, kinds[name].lock(a))
					node := kit.Put(t, peer, "/x/y/"+other)
					next := kit.Acquire(t, kinds[name].lock(b))
					time.Sleep(time.Minute)
					require.True(t, next.Pending(), "it waits for the first")
					require.NoError(t, first.Release())
					time.Sleep(20 * d)
					require.True(t, next.Pending(), "the node may hold its lock")
					if goes {
						require.NoError(t, peer.Delete(t.Context(), node, framework.AnyVersion))
					}
					began := time.Now()
					hold, err := next.Result()
					assert.Less(t, time.Since(began), 3*time.Second)
					if goes {
						require.NoError(t, err)
						require.NoError(t, hold.Release())
						return
					}
					require.ErrorIs(t, err, locks.ErrInvalidLock)
					require.ErrorContains(t, err, path.Base(node))
				})
			})
		}
	}
}

// A reader that comes behind a node of another kind does not join the readers before it.
func TestReaderBehindAnotherKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		a, b, peer := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
		first := kit.Hold(t, kinds["read"].lock(a))
		kit.Put(t, peer, "/x/y/lock-")
		_, err := kinds["read"].lock(b).Acquire(t.Context())
		require.ErrorIs(t, err, locks.ErrInvalidLock)
		require.NoError(t, first.Err())
	})
}

// The context of a hold is no way to get a lock of another kind at the same path.
func TestAnotherKindUnderAHold(t *testing.T) {
	t.Parallel()
	for first, one := range kinds {
		for second, two := range kinds {
			if one.kind == two.kind {
				continue
			}
			t.Run(first+", under it "+second, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory())
					c := kit.Connect(t, srv)
					hold := kit.Hold(t, one.lock(c))
					_, err := two.lock(c).Acquire(hold.Context())
					require.ErrorIs(t, err, locks.ErrInvalidLock)
					if lock, can := two.lock(c).(interface {
						HeldBy(ctx context.Context) bool
					}); can {
						assert.False(t, lock.HeldBy(hold.Context()))
					}
					require.NoError(t, hold.Release())
				})
			})
		}
	}
}

// The turns of a semaphore look like the nodes of a mutex. A lock in their folder would
// hold up the semaphore.
func TestFoldersOfASemaphore(t *testing.T) {
	at := func(path string) map[string]func(c *framework.Client) locks.Lock {
		return map[string]func(c *framework.Client) locks.Lock{
			"mutex": func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, path) },
			"MultiLock": func(c *framework.Client) locks.Lock {
				return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, path), locks.NewInterProcessMutex(c, "/z"))
			},
			"selector": func(c *framework.Client) locks.Lock { return elects{leader.NewSelector(c, path)} },
		}
	}
	for name := range at("") {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				folder := at("/app/locks")[name](c)
				require.NoError(t, kit.Hold(t, folder).Release(), "a name that says nothing")
				_, err := locks.NewInterProcessMutex(c, "/app/locks").Participants(t.Context())
				require.NoError(t, err)
				lease := kit.Hold(t, locks.NewInterProcessSemaphore(c, "/app", 3))
				refused := func() {
					_, err := folder.Acquire(t.Context())
					require.ErrorIs(t, err, locks.ErrInvalidLock)
					require.ErrorContains(t, err, "/app is used by a lock of another kind, a semaphore")
					_, err = locks.NewInterProcessMutex(c, "/app/locks").Participants(t.Context())
					require.ErrorIs(t, err, locks.ErrInvalidLock)
					for _, err := range leader.NewSelector(c, "/app/locks").Observe(t.Context()) {
						require.ErrorIs(t, err, locks.ErrInvalidLock)
						break
					}
				}
				refused()
				require.NoError(t, lease.Release())
				refused()
			})
		})
	}
}

// latch is an election as Curator's LeaderLatch holds it: the lock's engine with nodes of
// another kind, which have the candidate's id as data. It shows what recipes can be
// built upon, and is not one.
type latch struct{ lock *locks.InterProcessMutex }

func (l *latch) await(ctx context.Context) (*locks.Hold, error) { return l.lock.Acquire(ctx) }

func (l *latch) candidates(ctx context.Context) (ids []string, err error) {
	all, err := l.lock.Participants(ctx)
	for _, p := range all {
		ids = append(ids, string(p.Data))
	}
	return ids, err
}

func newLatch(c *framework.Client, election, id string) *latch {
	return &latch{locks.NewInterProcessMutex(c, election, func(q *acquire.Queue) {
		q.Kind, q.Data, q.Handovers = "latch-", []byte(id), 0
	})}
}

func TestElectionBuiltUponALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a, b := newLatch(kit.Connect(t, srv), "/leader", "a"), newLatch(kit.Connect(t, srv), "/leader", "b")
		leads, err := a.await(t.Context())
		require.NoError(t, err)
		assert.Regexp(t, `^/leader/_c_[-0-9a-f]{36}-latch-0000000000$`, leads.Path())
		next := make(chan *locks.Hold, 1)
		go func() {
			hold, err := b.await(t.Context())
			assert.NoError(t, err)
			next <- hold
		}()
		time.Sleep(time.Minute)
		ids, err := b.candidates(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b"}, ids)
		require.NoError(t, leads.Release())
		require.NoError(t, (<-next).Release())
	})
}
