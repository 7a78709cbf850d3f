package locks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// queued are the locks of which each has its own way through a queue.
var queued = map[string]func(c *framework.Client) locks.Lock{
	"mutex":           swept["mutex"],
	"read":            swept["read"],
	"semaphore mutex": swept["semaphore mutex"],
	"multi":           swept["multi"],
}

// A server that goes on refusing for a while is asked again, with pauses, and
// not without end: the caller's context ends also those.
func TestPausesEndWithTheContext(t *testing.T) {
	const lost, busy = -4, -7
	for name, lock := range swept {
		for _, op := range []string{"", "getChildren", "getChildren2", "create2", "multi"} {
			t.Run(name+" "+op, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory())
					c := connect(t, srv)
					require.NoError(t, c.EnsurePath(t.Context(), "/l"))
					rules := []*zktest.Rule{}
					for _, code := range []int32{lost, busy} {
						rules = append(rules, srv.On(zktest.Match{Session: c.SessionID(), Op: op, Func: func(r zktest.Request) bool {
							return r.Op != "ping" && r.Op != "connect" && (op != "" || r.Op != "delete")
						}}, zktest.Fail(code)))
					}
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					began := time.Now()
					if h, err := lock(c).Acquire(ctx); err == nil { // it needs no such request
						require.NoError(t, h.Release())
					} else {
						require.ErrorIs(t, err, context.DeadlineExceeded)
						assert.Equal(t, 20*time.Second, time.Since(began))
					}
					asked := 0
					for _, rule := range rules {
						asked += rule.Fired()
						rule.Remove()
					}
					assert.Less(t, asked, 250, "with pauses")
					h, err := lock(c).TryAcquire(t.Context(), time.Minute)
					require.NoError(t, err)
					require.NoError(t, h.Release())
				})
			})
		}
	}
}

// Somebody comes between the look at the queue and the contender in it: who does not
// want to wait gives the contender back.
func TestTryAcquireIsOvertaken(t *testing.T) {
	for name, lock := range queued {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				c, other := connect(t, srv), connect(t, srv)
				require.NoError(t, c.EnsurePath(t.Context(), "/l"))
				h, err := lock(other).Acquire(t.Context()) // its parents are there from now on
				require.NoError(t, err)
				require.NoError(t, h.Release())
				writes := func(r zktest.Request) bool { return r.Op == "create2" || r.Op == "create" || r.Op == "multi" }
				late := srv.On(zktest.Match{Session: c.SessionID(), Nth: 1, Func: writes}, zktest.Delay(time.Second))
				before := make(chan *locks.Hold, 1)
				time.AfterFunc(500*time.Millisecond, func() {
					theirs := lock(other)
					if name == "read" {
						theirs = swept["write"](other)
					}
					h, err := theirs.Acquire(t.Context())
					assert.NoError(t, err)
					before <- h
				})
				_, err = lock(c).TryAcquire(t.Context(), 0)
				require.ErrorIs(t, err, locks.ErrNotAcquired)
				assert.Equal(t, 1, late.Fired())
				time.Sleep(time.Minute)
				assert.Empty(t, srv.Ephemerals(c.SessionID()))
				require.NoError(t, (<-before).Release())
				h, err = lock(c).TryAcquire(t.Context(), 0)
				require.NoError(t, err)
				require.NoError(t, h.Release())
			})
		})
	}
}

// Nothing can be said about the order of a queue whose numbers are used up.
func TestSequenceExhaustedEverywhere(t *testing.T) {
	for name, path := range map[string]string{
		"mutex": "/l/m/_c_x-lock-", "read": "/l/rw/_c_x-__WRIT__", "multi": "/l/b/_c_x-lock-", "semaphore mutex": "/l/s/locks/_c_x-lock-", "semaphore": "/l/s/leases/_c_x-lease-",
	} {
		for _, wait := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprint(name, " ", wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory())
					c, operator := connect(t, srv), connect(t, srv)
					_, err := operator.Create(t.Context(), path+"2147483647", nil, framework.Ephemeral, framework.Parents())
					require.NoError(t, err)
					_, err = swept[name](c).TryAcquire(t.Context(), wait)
					require.ErrorIs(t, err, locks.ErrSequenceExhausted)
					time.Sleep(time.Minute)
					assert.Empty(t, srv.Ephemerals(c.SessionID()))
				})
			})
		}
	}
}

// A request that is too large is refused before it is sent, wherever an
// acquisition has got to: here they are large by their paths.
func TestTooLargeAtAnyRequest(t *testing.T) {
	for _, name := range []string{"mutex", "semaphore mutex"} {
		t.Run(name, func(t *testing.T) {
			refused := make(map[int]bool)
			for path := fewestBytes - 100; !t.Failed(); path -= 4 {
				done := false
				synctest.Test(t, func(t *testing.T) { done = tooLarge(t, swept[name], path, refused) })
				if done {
					break
				}
			}
			assert.NotEmpty(t, refused)
		})
	}
}

// fewestBytes is the least that a request may be limited to.
const fewestBytes = 4096

// tooLarge is whether a lock could be taken below a path of so many bytes, and
// notes how many requests were sent until one was refused.
func tooLarge(t *testing.T, lock func(*framework.Client) locks.Lock, path int, refused map[int]bool) bool {
	t.Helper()
	long := func(cfg *framework.Config) { cfg.Namespace = strings.Repeat("x", path) }
	srv := zktest.Start(t, zktest.InMemory())
	h, err := lock(connect(t, srv, long)).Acquire(t.Context()) // who makes the parents
	require.NoError(t, err)
	require.NoError(t, h.Release())
	time.Sleep(time.Minute)
	c := connect(t, srv, long, func(cfg *framework.Config) { cfg.MaxRequest = fewestBytes })
	sent := srv.On(zktest.Match{Session: c.SessionID(), Func: func(r zktest.Request) bool { return r.Op != "ping" }}, zktest.Delay(0))
	h, err = lock(c).TryAcquire(t.Context(), 0)
	if err == nil {
		require.NoError(t, h.Release())
		return true
	}
	require.ErrorIs(t, err, framework.ErrTooLarge)
	refused[sent.Fired()] = true
	if queue, ok := lock(c).(listable); ok {
		if _, err := queue.Participants(t.Context()); err != nil {
			require.ErrorIs(t, err, framework.ErrTooLarge)
		}
	}
	time.Sleep(time.Minute)
	assert.Empty(t, srv.Ephemerals(c.SessionID()))
	return false
}

func TestParticipantsThatComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const forbidden = -102
		srv := zktest.Start(t, zktest.InMemory())
		c, other := connect(t, srv), connect(t, srv)
		for _, lock := range []listable{
			locks.NewInterProcessMutex(c, "/m"), locks.NewInterProcessSemaphoreMutex(c, "/s"), locks.NewInterProcessSemaphore(c, "/p", 2),
		} {
			var theirs locks.Lock = locks.NewInterProcessMutex(other, "/m", locks.NodeData([]byte("them")))
			switch lock.(type) {
			case *locks.InterProcessSemaphoreMutex:
				theirs = locks.NewInterProcessSemaphoreMutex(other, "/s", locks.NodeData([]byte("them")))
			case *locks.InterProcessSemaphore:
				theirs = locks.NewInterProcessSemaphore(other, "/p", 2, locks.NodeData([]byte("them")))
			}
			h, err := theirs.Acquire(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Second) // the contender in the queue of a semaphore goes
			ask := func(op string, code int32) ([]locks.Participant, error) {
				rule := srv.On(zktest.Match{Session: c.SessionID(), Op: op, Nth: 1}, zktest.Fail(code))
				defer rule.Remove()
				all, err := lock.Participants(t.Context())
				synctest.Wait() // answers that were not waited for any more
				assert.Equal(t, 1, rule.Fired())
				return all, err
			}
			all, err := ask("exists", noNode)
			require.NoError(t, err)
			assert.Empty(t, all, "it has gone since it was listed")
			all, err = ask("getData", forbidden)
			require.NoError(t, err)
			require.Len(t, all, 1)
			assert.Nil(t, all[0].Data, "nobody may read it")
			assert.True(t, all[0].Holds)
			all, err = ask("exists", forbidden)
			require.NoError(t, err)
			require.Len(t, all, 1)
			assert.Zero(t, all[0].Session, "nor what it is")
			assert.Equal(t, h.Path(), all[0].Path)
			require.NoError(t, h.Release())
		}
		require.NoError(t, c.Close())
		_, err := locks.NewInterProcessMutex(c, "/m").Participants(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
		_, err = locks.NewInterProcessSemaphore(c, "/p", 2).Participants(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
	})
	var none *locks.InterProcessSemaphoreMutex
	_, err := none.Participants(t.Context())
	require.ErrorIs(t, err, locks.ErrInvalidLock)
	_, err = new(locks.InterProcessSemaphore).Participants(t.Context())
	require.ErrorIs(t, err, locks.ErrInvalidLock)
	assert.False(t, none.HeldBy(t.Context()))
}

// whatever is a lock of the user's.
type whatever func(wait time.Duration) (*locks.Hold, error)

func (l whatever) Acquire(context.Context) (*locks.Hold, error) { return l(-1) }

func (l whatever) TryAcquire(_ context.Context, wait time.Duration) (*locks.Hold, error) {
	return l(wait)
}

func TestMultiLockMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		var none *locks.InterProcessMultiLock
		assert.Nil(t, none.Ordered())
		_, err := none.Acquire(t.Context())
		require.ErrorIs(t, err, locks.ErrInvalidLock)

		rw := locks.NewInterProcessReadWriteLock(c, "/rw")
		m := locks.NewInterProcessMutex(c, "/m")
		for name, sides := range map[string][]locks.Lock{"read first": {rw.ReadLock(), rw.WriteLock()}, "write first": {rw.WriteLock(), rw.ReadLock()}} {
			h, err := locks.NewInterProcessMultiLock(append(sides, m)...).Acquire(t.Context())
			require.NoError(t, err)
			assert.Len(t, h.Members(), 2, name)
			_, err = rw.ReadLock().TryAcquire(t.Context(), 0)
			require.ErrorIs(t, err, locks.ErrNotAcquired, "it has the write side")
			require.NoError(t, h.Release())
		}

		write, err := rw.WriteLock().Acquire(t.Context())
		require.NoError(t, err)
		under, err := locks.NewInterProcessMultiLock(rw.ReadLock(), m, locks.NewInterProcessMutex(c, "/n")).Acquire(write.Context())
		require.NoError(t, err, "the downgrade as a member")
		require.NoError(t, write.Release())
		_, err = locks.NewInterProcessReadWriteLock(c, "/rw").WriteLock().TryAcquire(t.Context(), 0)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		require.NoError(t, under.Release())

		var waits []time.Duration
		theirs := whatever(func(wait time.Duration) (*locks.Hold, error) {
			waits = append(waits, wait)
			h, _ := locks.NewHold(t.Context(), func() error { return nil })
			return h, nil
		})
		both := locks.NewInterProcessMultiLock(theirs, m)
		for _, wait := range []time.Duration{0, time.Hour} {
			h, err := both.TryAcquire(t.Context(), wait)
			require.NoError(t, err)
			tx := h.Transaction()
			_, err = tx.Commit(t.Context())
			require.ErrorIs(t, err, locks.ErrNoFence, "a member is none of ours")
			_, err = tx.CommitAndRelease(t.Context())
			require.ErrorIs(t, err, locks.ErrNoFence)
			require.NoError(t, h.Release())
		}
		assert.Equal(t, []time.Duration{0, time.Hour}, waits)

		_, err = locks.NewInterProcessMultiLock(m, whatever(func(time.Duration) (*locks.Hold, error) { return nil, nil })).Acquire(t.Context())
		require.ErrorIs(t, err, locks.ErrInvalidLock, "neither a hold nor an error")
		time.Sleep(time.Minute)
		assert.Empty(t, srv.Ephemerals(c.SessionID()))
	})
}

// One member may not be had at all: the error says which, and nothing is left of
// the others.
func TestMultiLockMemberIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, operator := connect(t, srv), connect(t, srv)
		_, err := operator.Create(t.Context(), "/forbidden", nil, framework.Persistent, framework.ACLs(zk.WorldACL(zk.PermRead)...))
		require.NoError(t, err)
		_, err = locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/forbidden")).Acquire(t.Context())
		require.ErrorIs(t, err, framework.ErrNoAuth)
		require.ErrorContains(t, err, "/forbidden")
		time.Sleep(time.Minute)
		assert.Empty(t, srv.Ephemerals(c.SessionID()))
	})
}

func TestHoldThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		rw := locks.NewInterProcessReadWriteLock(c, "/rw")
		both := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b"))
		write, err := rw.WriteLock().Acquire(t.Context())
		require.NoError(t, err)
		group, err := both.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, srv.ExpireSession(c.SessionID()))
		<-write.Context().Done()
		<-group.Context().Done()
		require.NoError(t, c.BlockUntilConnected(t.Context()))

		assert.Zero(t, write.FencingToken())
		assert.Zero(t, group.FencingToken())
		for _, h := range []*locks.Hold{write, group} {
			bound, cancel := h.Bind(t.Context())
			require.ErrorIs(t, context.Cause(bound), locks.ErrLockLost)
			cancel()
			var told []locks.HoldState
			stop := h.Listen(func(s locks.HoldState) { told = append(told, s) })
			synctest.Wait()
			stop()
			assert.Equal(t, []locks.HoldState{locks.Lost}, told)
		}
		// Who works on under a context without an end has lost it as well.
		_, err = rw.ReadLock().Acquire(context.WithoutCancel(write.Context()))
		require.ErrorIs(t, err, locks.ErrLockLost)
		_, err = rw.WriteLock().Acquire(context.WithoutCancel(write.Context()))
		require.ErrorIs(t, err, locks.ErrLockLost)
		require.ErrorIs(t, write.Release(), locks.ErrLockLost)
		require.ErrorIs(t, group.Release(), locks.ErrLockLost)

		group, err = both.Acquire(t.Context())
		require.NoError(t, err)
		for _, member := range group.Members() {
			require.NoError(t, member.Release())
		}
		_, err = group.Transaction().Commit(t.Context())
		require.ErrorIs(t, err, locks.ErrReleased, "nothing is left that could prove anything")
		require.NoError(t, group.Release())
	})
}

// What is committed while the node goes with it cannot be begun twice, and
// nobody can re-enter.
func TestWhileCommitAndReleaseIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
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

// A node that its own client may not read proves nothing.
func TestNodeThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv, func(cfg *framework.Config) {
			cfg.ACL = func(path string) []framework.ACL {
				if path == "/m" || path == "/data" {
					return zk.WorldACL(zk.PermAll)
				}
				return zk.WorldACL(zk.PermAll &^ zk.PermRead)
			}
		})
		_, err := c.Create(t.Context(), "/data", nil, framework.Persistent)
		require.NoError(t, err)
		h, err := locks.NewInterProcessMutex(c, "/m").Acquire(t.Context())
		require.NoError(t, err)
		tx := h.Transaction()
		tx.Set("/data", []byte("x"), framework.AnyVersion)
		_, err = tx.Commit(t.Context())
		require.ErrorIs(t, err, locks.ErrNoFence)
		require.ErrorIs(t, err, framework.ErrNoAuth)
		require.NoError(t, h.Release())
	})
}

// The reply to a write is lost and, before it can be sent again, the lock as
// well: then nobody knows whether it was done.
func TestCommitOfUnknownOutcomeMeetsTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.NTimes(3, time.Second) })
		operator := connect(t, srv)
		_, err := operator.Create(t.Context(), "/data", nil, framework.Persistent)
		require.NoError(t, err)
		for nth, fault := range []zktest.Fault{zktest.CutBefore(), zktest.CutAfter()} {
			h, err := locks.NewInterProcessMutex(c, fmt.Sprint("/m", nth)).Acquire(t.Context())
			require.NoError(t, err)
			srv.On(zktest.Match{Session: c.SessionID(), Op: "multi", Nth: 1}, fault)
			tx := h.Transaction()
			tx.Set("/data", []byte("x"), 0)
			time.AfterFunc(500*time.Millisecond, func() { _ = operator.Delete(context.Background(), h.Path(), framework.AnyVersion) })
			_, err = tx.Commit(t.Context(), framework.Idempotent())
			require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
			require.NotErrorIs(t, err, locks.ErrFenced)
			require.NotErrorIs(t, err, locks.ErrLockLost)
			require.NotErrorIs(t, err, framework.ErrNoNode)
			require.ErrorIs(t, h.Release(), locks.ErrLockLost)
		}
	})
}

// A client that is closed is not one that is not connected: nothing can be had of it
// later.
func TestTryAcquireOfAClosedClient(t *testing.T) {
	for name, lock := range swept {
		for _, wait := range []time.Duration{-1, 0, 1, time.Second} {
			t.Run(fmt.Sprint(name, " ", wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := connect(t, zktest.Start(t, zktest.InMemory()))
					require.NoError(t, c.Close())
					h, err := lock(c).TryAcquire(t.Context(), wait)
					require.ErrorIs(t, err, framework.ErrClosed)
					require.NotErrorIs(t, err, framework.ErrNotConnected)
					assert.False(t, framework.Retryable(err))
					assert.Nil(t, h)
				})
			})
		}
	}
}
