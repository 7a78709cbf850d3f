package locks_test

import (
	"context"
	"fmt"
	"strings"
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

// waitErrorOf is what an acquisition said of its wait.
func waitErrorOf(t *testing.T, err error) *locks.WaitError {
	t.Helper()
	var told *locks.WaitError
	require.ErrorAs(t, err, &told)
	var op *framework.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, "acquire", op.Op)
	return told
}

// inPlace is a client whose paths are below a chroot and a namespace.
func inPlace(t *testing.T, srv *zktest.Server) *framework.Client {
	t.Helper()
	return kit.Connect(t, srv, func(cfg *framework.Config) {
		cfg.ConnectString, cfg.Namespace = srv.ConnectString()+"/root", "app"
	})
}

func acquireWithin(ctx context.Context, lock locks.Lock, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_, err := lock.Acquire(ctx)
	return err
}

// An error of a wait says who was in the way, and for how long.
func TestWhoWasInTheWay(t *testing.T) {
	t.Parallel()
	lockSet := make(map[string]func(c *framework.Client) locks.Lock)
	for name, lock := range kit.Locks {
		if name != "semaphore" && name != "downgrade" {
			lockSet[name] = lock
		}
	}
	lockSet["lease"] = func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/l/s", 1) }
	lockSet["several leases"] = func(c *framework.Client) locks.Lock {
		return kit.Leases(locks.NewInterProcessSemaphore(c, "/l/s", 2), 2)
	}
	lockSet["no local queue"] = func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMutex(c, "/l/m", locks.LocalHandovers(0))
	}
	for name, lock := range lockSet {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				admin := kit.Connect(t, srv)
				require.NoError(t, admin.EnsurePath(t.Context(), "/root/app"))
				c, other := inPlace(t, srv), inPlace(t, srv)
				taken := lock(other)
				if name == "read" {
					taken = locks.NewInterProcessReadWriteLock(other, "/l/rw").WriteLock()
				}
				h, err := taken.Acquire(t.Context())
				require.NoError(t, err)
				first := h
				if members := h.Members(); len(members) > 0 {
					first = members[0]
				}
				holder := "/root/app" + first.Path()
				wanted := strings.TrimSuffix(holder[:strings.LastIndex(holder, "/")], "/leases")

				inWay := func(err error, d time.Duration) *locks.WaitError {
					t.Helper()
					told := waitErrorOf(t, err)
					assert.Equal(t, holder, told.Holder)
					assert.Equal(t, wanted, told.Lock, "in full")
					assert.InDelta(t, d, told.Waited, float64(20*time.Millisecond))
					assert.Equal(t, max(1, len(h.Members())*strings.Count(name, "several")), told.Ahead)
					assert.False(t, told.Local)
					require.NotErrorIs(t, err, framework.ErrNotConnected)
					assert.ErrorContains(t, err, "behind "+holder)
					return told
				}
				began := time.Now()
				err = acquireWithin(t.Context(), lock(c), 3*time.Second)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, locks.ErrNotAcquired)
				assert.Equal(t, 3*time.Second, time.Since(began))
				told := inWay(err, 3*time.Second)
				if told.HolderSession != 0 {
					assert.Equal(t, other.SessionID(), told.HolderSession)
					assert.ErrorContains(t, err, fmt.Sprintf("of session %#x", other.SessionID()))
				}
				if strings.Contains("mutex, revocable, write, read, no local queue", name) {
					assert.NotZero(t, told.HolderSession, "it was read with the watch")
				}

				for _, d := range []time.Duration{0, 2 * time.Second} {
					_, err = lock(c).TryAcquire(t.Context(), d)
					require.ErrorIs(t, err, locks.ErrNotAcquired)
					require.NotErrorIs(t, err, context.DeadlineExceeded)
					inWay(err, d)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(locks.ErrNotAcquired) })
				_, err = lock(c).TryAcquire(ctx, time.Minute)
				require.ErrorIs(t, err, context.Canceled)
				require.NotErrorIs(t, err, locks.ErrNotAcquired)
				inWay(err, time.Second)

				// The connection is lost meanwhile: what was seen is told, and why nobody can be asked.
				time.AfterFunc(time.Second, func() {
					srv.Refuse()
					_ = srv.Disconnect(c.SessionID())
				})
				err = acquireWithin(t.Context(), lock(c), 10*time.Second) // a pause before the next dial may take some
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, framework.ErrNotConnected)
				require.NotErrorIs(t, err, locks.ErrNotAcquired)
				require.ErrorContains(t, err, ": context deadline exceeded: not connected: 127.")
				assert.ErrorContains(t, err, "behind "+holder)
				require.NoError(t, h.Release())
				time.Sleep(time.Minute)
				assert.Empty(t, srv.Ephemerals(0))
			})
		})
	}
}

// Behind several, the first is told, and how many there are.
func TestPlaceInTheQueueIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		holder, err := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l").Acquire(t.Context())
		require.NoError(t, err)
		gone, goAway := context.WithCancel(t.Context())
		for range 3 {
			lock := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l")
			go func() { _, _ = lock.Acquire(gone) }()
			synctest.Wait()
		}
		err = acquireWithin(t.Context(), locks.NewInterProcessMutex(kit.Connect(t, srv), "/l"), 1500*time.Millisecond)
		told := waitErrorOf(t, err)
		assert.Equal(t, 4, told.Ahead)
		assert.Equal(t, holder.Path(), told.Holder)
		assert.Zero(t, told.HolderSession, "not known without asking")
		require.EqualError(t, err, "acquire /l: context deadline exceeded (waited 1.5s behind "+holder.Path()+", 4 ahead)")
		goAway()
		require.NoError(t, holder.Release())
	})
}

// A goroutine of the same client has it: those in the local queue have no node of their own.
func TestHolderOfTheSameClientIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other, last := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
		h := kit.Hold(t, locks.NewInterProcessMutex(c, "/l"))
		_, err := locks.NewInterProcessMutex(c, "/l").TryAcquire(t.Context(), 0)
		require.EqualError(t, err, "acquire /l: lock not acquired (waited 0s behind "+h.Path()+", which this client has)")
		err = acquireWithin(t.Context(), locks.NewInterProcessMutex(c, "/l"), time.Second)
		told := waitErrorOf(t, err)
		assert.True(t, told.Local)
		assert.Equal(t, c.SessionID(), told.HolderSession)
		require.EqualError(t, err, "acquire /l: context deadline exceeded (waited 1s behind "+h.Path()+", which this client has)")

		// Those in a local queue behind one who waits himself know what he has seen.
		leads := make(chan error)
		for i, of := range []*framework.Client{other, last} {
			m := locks.NewInterProcessMutex(of, "/l")
			go func() { leads <- acquireWithin(t.Context(), m, time.Minute) }()
			synctest.Wait()
			err = acquireWithin(t.Context(), m, time.Second)
			told = waitErrorOf(t, err)
			assert.Equal(t, h.Path(), told.Holder)
			assert.Equal(t, 1+i, told.Ahead)
			assert.False(t, told.Local)
			require.ErrorContains(t, err, "acquire /l: context deadline exceeded (waited 1s behind "+h.Path())
		}
		require.ErrorIs(t, <-leads, context.DeadlineExceeded)
		require.ErrorIs(t, <-leads, context.DeadlineExceeded)
		require.NoError(t, h.Release())
	})
}

// Nor does it forget who had the lock while it waited, when another goroutine has just begun to ask.
func TestHolderOfTheSameClientHasJustReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		m := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l")
		h := kit.Hold(t, m)
		h.FencingToken() // its node is handed to nobody
		next := kit.Acquire(t, m)
		require.True(t, next.Waits())
		time.AfterFunc(10*time.Millisecond, func() { assert.NoError(t, h.Release()) })
		_, err := m.TryAcquire(t.Context(), 30*time.Millisecond)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		assert.Equal(t, h.Path(), waitErrorOf(t, err).Holder)
		require.NoError(t, next.Soon().Release())
	})
}

// So it is where the local queue of the lock has no part in it.
func TestHolderOfTheSameClientIsToldWithoutALocalQueue(t *testing.T) {
	for name, lock := range map[string]func(c *framework.Client) locks.Lock{
		"no handovers": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMutex(c, "/l", locks.LocalHandovers(0))
		},
		"write": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessReadWriteLock(c, "/l").WriteLock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				h, err := lock(c).Acquire(t.Context())
				require.NoError(t, err)
				told := waitErrorOf(t, acquireWithin(t.Context(), lock(c), time.Second))
				assert.Equal(t, h.Path(), told.Holder)
				assert.Equal(t, c.SessionID(), told.HolderSession)
				assert.True(t, told.Local)
			})
		})
	}
}

// Nobody could be asked: who waited is told, and why.
func TestNobodyCouldBeAsked(t *testing.T) {
	for name, lock := range kit.Locks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				srv.Refuse()
				srv.DisconnectAll()
				time.Sleep(time.Second)
				err := acquireWithin(t.Context(), lock(c), 5*time.Second)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, framework.ErrNotConnected)
				require.NotErrorIs(t, err, locks.ErrNotAcquired)
				told := waitErrorOf(t, err)
				assert.Equal(t, 5*time.Second, told.Waited)
				assert.Empty(t, told.Holder)
				assert.Zero(t, told.Ahead)
				assert.Regexp(t, `^acquire /l/.*: context deadline exceeded: not connected: 127\.\d+\.\d+\.\d+:1: dial mem 127\.[0-9.:]+: connect: connection refused \(waited 5s for /l/.*\)$`, err.Error())
				if name == "downgrade" {
					return // it does not try
				}
				for _, d := range []time.Duration{0, 5 * time.Second} {
					_, err = lock(c).TryAcquire(t.Context(), d)
					require.ErrorIs(t, err, framework.ErrNotConnected)
					require.NotErrorIs(t, err, context.DeadlineExceeded)
					require.NotErrorIs(t, err, locks.ErrNotAcquired)
					assert.Equal(t, d, waitErrorOf(t, err).Waited)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err = lock(c).TryAcquire(ctx, time.Minute)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, framework.ErrNotConnected, "of TryAcquire none matches two")
				require.ErrorContains(t, err, ": not connected: 127.")
			})
		})
	}
}

// A MultiLock says which of its members could not be had.
func TestMemberThatCouldNotBeHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(other, "/b").Acquire(t.Context())
		require.NoError(t, err)
		members := func() []locks.Lock {
			return []locks.Lock{locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b"), locks.NewInterProcessMutex(c, "/c")}
		}
		for _, lock := range []locks.Lock{locks.NewInterProcessMultiLock(members()...), locks.NewInterProcessMultiLock(members()...).Ordered()} {
			err = acquireWithin(t.Context(), lock, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			told := waitErrorOf(t, err)
			assert.Equal(t, "/b", told.Lock)
			assert.Equal(t, h.Path(), told.Holder)
			require.ErrorContains(t, err, "acquire /a, /b, /c: context deadline exceeded (waited 1s behind "+h.Path())
			_, err = lock.TryAcquire(t.Context(), 0)
			require.ErrorIs(t, err, locks.ErrNotAcquired)
			assert.Equal(t, "/b", waitErrorOf(t, err).Lock)
		}
		require.NoError(t, h.Release())
	})
}

// With members that need steps of their own, the wait counts from the call.
func TestWaitOfAllStepsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		first, err := locks.NewInterProcessSemaphore(other, "/a", 1).Acquire(t.Context())
		require.NoError(t, err)
		last, err := locks.NewInterProcessMutex(other, "/b").Acquire(t.Context())
		require.NoError(t, err)
		lock := locks.NewInterProcessMultiLock(locks.NewInterProcessSemaphore(c, "/a", 1), locks.NewInterProcessMutex(c, "/b"))
		time.AfterFunc(time.Second, func() { assert.NoError(t, first.Release()) })
		err = acquireWithin(t.Context(), lock, 3*time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		told := waitErrorOf(t, err)
		assert.Equal(t, 3*time.Second, told.Waited)
		assert.Equal(t, []string{"/a"}, told.Has)
		require.NoError(t, last.Release())
	})
}

// A member of another type has no path: only those of the others are told.
func TestWaitForAMemberOfAnotherType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(kit.Connect(t, srv), "/b").Acquire(t.Context())
		require.NoError(t, err)
		theirs := whatever(func(wait time.Duration) (*locks.Hold, error) {
			return locks.NewInterProcessMutex(c, "/b").TryAcquire(t.Context(), wait)
		})
		_, err = locks.NewInterProcessMultiLock(theirs, locks.NewInterProcessMutex(c, "/a")).TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		told := waitErrorOf(t, err)
		assert.Equal(t, []string{"/a"}, told.Has)
		assert.Empty(t, told.Wants)
		require.ErrorContains(t, err, "; has /a)")
		require.NoError(t, h.Release())
	})
}

// A client that is closed is not one that is not connected: nothing can be had of it
// later.
func TestTryAcquireOfAClosedClient(t *testing.T) {
	for name, lock := range kit.Locks {
		for _, wait := range []time.Duration{-1, 0, 1, time.Second} {
			t.Run(fmt.Sprint(name, " ", wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
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

// A path that is new takes more time than a call may have. The next one profits from that.
func TestShortWaitsOnANewPath(t *testing.T) {
	for name, lock := range map[string]kit.LockOf{
		"mutex": kit.MutexAt("/p/l"), "multi": kit.MultiAt("/p/l"),
		"semaphore": func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/p/l", 2) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const trip = 10 * time.Millisecond
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(trip/2))
				c := kit.Connect(t, srv)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(trip*3/2, cancel)
				_, err := lock(c).Acquire(ctx)
				require.ErrorIs(t, err, context.Canceled)
				time.Sleep(time.Second)
				exists, _, err := c.Exists(t.Context(), "/p")
				require.NoError(t, err)
				assert.False(t, exists, "nobody has waited for that to the end")
				_, err = lock(c).TryAcquire(t.Context(), trip*3/2)
				require.ErrorIs(t, err, framework.ErrNotConnected)
				time.Sleep(4 * trip)
				h, err := lock(c).TryAcquire(t.Context(), trip*3/2)
				require.NoError(t, err)
				require.NoError(t, h.Release())
			})
		})
	}
}

// A wait that is shorter than a round trip ends before the server has said anything. The error
// names it.
func TestWaitThatIsShorterThanARoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(5*time.Millisecond))
		_, err := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l").TryAcquire(t.Context(), time.Millisecond)
		require.ErrorIs(t, err, framework.ErrNotConnected)
		assert.EqualError(t, err, "acquire /l: not connected: "+srv.ConnectString()+" has not answered yet (waited 1ms for /l)")
		time.Sleep(time.Minute)
		kit.NothingLeft(t, srv)
	})
}
