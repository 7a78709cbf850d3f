package locks_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestHoldEndsBeforeTheServerCanGiveTheLockAway(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 9 * time.Second, 10 * time.Second, 29 * time.Second, 47 * time.Second} {
		for name, change := range map[string]func(*framework.Config){"by server": byServer, "by quorum": func(*framework.Config) {}} {
			t.Run(fmt.Sprintf("%s after %v", name, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
					c, other := connect(t, srv, change), connect(t, srv)
					h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
					require.NoError(t, err)
					granted := make(chan time.Time, 1)
					go func() {
						_, err := locks.NewInterProcessMutex(other, "/l").Acquire(t.Context())
						assert.NoError(t, err)
						granted <- time.Now()
					}()
					time.Sleep(after)
					require.NoError(t, h.Err())
					// Its messages get lost from now on, in both directions.
					srv.On(zktest.Match{Session: c.SessionID()}, zktest.Delay(time.Hour))
					<-h.Context().Done()
					ended := time.Now()
					require.ErrorIs(t, context.Cause(h.Context()), framework.ErrNotConnected)
					assert.Equal(t, locks.Lost, h.State())
					passed := <-granted
					assert.True(t, ended.Before(passed), "ended %v before it passed on", passed.Sub(ended))
					require.ErrorIs(t, h.Release(), locks.ErrLockLost)
				})
			})
		}
	}
}

func TestRenewalsServeAllHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		c := connect(t, srv)
		var holds []*locks.Hold
		for i := range 20 {
			h, err := locks.NewInterProcessMutex(c, fmt.Sprintf("/l%d", i)).Acquire(t.Context())
			require.NoError(t, err)
			holds = append(holds, h)
		}
		before := srv.Requests()["multi"]
		time.Sleep(10 * time.Minute)
		for _, h := range holds {
			require.Equal(t, locks.Held, h.State())
			require.NoError(t, h.Context().Err())
		}
		writes := srv.Requests()["multi"] - before
		assert.GreaterOrEqual(t, writes, 70, "about four in each session timeout")
		assert.LessOrEqual(t, writes, 80, "for the session, not for each hold")
		for _, h := range holds {
			require.NoError(t, h.Release())
		}
		before = srv.Requests()["multi"]
		time.Sleep(10 * time.Minute)
		assert.Equal(t, before, srv.Requests()["multi"], "none without holds")
	})
}

// What the user writes serves renewals as well as writes of ours do.
func TestWritesOfTheUserRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		c := connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		srv.On(zktest.Match{Op: "multi"}, zktest.Fail(-127))
		for range 600 {
			_, err := c.Create(t.Context(), "/x", nil, framework.Persistent, framework.OrSet())
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		require.NoError(t, h.Err())
		require.NoError(t, h.Release())
	})
}

// A server that was cut off from its leader goes on answering pings and reads.
func TestPingsAloneProveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		c, naive := connect(t, srv), connect(t, srv, byServer)
		states := c.States().Subscribe()
		defer states.Stop()
		require.Equal(t, listeners.Connected, <-states.C)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		n, err := locks.NewInterProcessMutex(naive, "/n").Acquire(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Minute)
		const connectionLoss = -4
		srv.On(zktest.Match{Op: "multi"}, zktest.Fail(connectionLoss))
		cut := time.Now()
		select {
		case <-h.Context().Done():
		case <-time.After(time.Hour):
		}
		assert.LessOrEqual(t, time.Since(cut), 30*time.Second, "within the session timeout of the last touch that the leader knows of")
		assert.Equal(t, listeners.Lost, <-states.C, "while the connection stands")
		time.Sleep(time.Hour)
		assert.NoError(t, n.Err(), "the control: by pings alone it lasts for ever")
		require.NoError(t, n.Release())
	})
}

func TestHoldIsVerifiedAfterAReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		c, operator := connect(t, srv), connect(t, srv)
		kept, err := locks.NewInterProcessMutex(c, "/kept").Acquire(t.Context())
		require.NoError(t, err)
		gone, err := locks.NewInterProcessMutex(c, "/gone").Acquire(t.Context())
		require.NoError(t, err)
		var seen []locks.HoldState
		kept.Listen(func(s locks.HoldState) { seen = append(seen, s) })
		var seenGone []locks.HoldState
		gone.Listen(func(s locks.HoldState) { seenGone = append(seenGone, s) })
		time.Sleep(time.Millisecond) // before watches stand on the nodes
		srv.Refuse()
		require.NoError(t, srv.Disconnect(c.SessionID()))
		time.Sleep(50 * time.Millisecond)
		assert.Equal(t, locks.Uncertain, kept.State())
		require.NoError(t, kept.Err())
		require.NoError(t, kept.Context().Err(), "uncertain is not lost")
		require.NoError(t, operator.Delete(t.Context(), gone.Path(), 0))
		srv.Accept()
		<-gone.Context().Done()
		require.ErrorIs(t, gone.Err(), locks.ErrNodeDeleted)
		time.Sleep(time.Second)
		assert.Equal(t, locks.Held, kept.State())
		synctest.Wait()
		assert.Equal(t, []locks.HoldState{locks.Held, locks.Uncertain, locks.Held}, seen)
		assert.Equal(t, []locks.HoldState{locks.Held, locks.Uncertain, locks.Lost}, seenGone)
		require.NoError(t, kept.Release())
	})
}

func TestHoldThatNobodyMayRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		c := connect(t, srv, func(cfg *framework.Config) {
			cfg.ACL = func(path string) []framework.ACL {
				perms := int32(31)
				if len(path) > 3 {
					perms = 8 // delete
				}
				return []framework.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}
			}
		})
		operator := connect(t, srv)
		a, err := locks.NewInterProcessMutex(c, "/a").Acquire(t.Context())
		require.NoError(t, err)
		b, err := locks.NewInterProcessMutex(c, "/b").Acquire(t.Context())
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		require.NoError(t, a.Err(), "the refusals prove as much")
		require.NoError(t, operator.Delete(t.Context(), a.Path(), 0))
		require.NoError(t, srv.Disconnect(c.SessionID()))
		<-a.Context().Done()
		require.ErrorIs(t, a.Err(), locks.ErrLockLost, "seen after the reconnect")
		time.Sleep(time.Second)
		require.ErrorIs(t, a.Err(), locks.ErrNodeDeleted)
		assert.Equal(t, locks.Held, b.State())
		require.NoError(t, b.Release())
	})
}

func TestWaiterRenewsBeforeItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		holder, waiter := connect(t, srv, byServer), connect(t, srv)
		h, err := locks.NewInterProcessMutex(holder, "/l").Acquire(t.Context())
		require.NoError(t, err)
		got := make(chan *locks.Hold, 1)
		go func() {
			h, err := locks.NewInterProcessMutex(waiter, "/l").Acquire(t.Context())
			assert.NoError(t, err)
			got <- h
		}()
		time.Sleep(10 * time.Minute) // nothing was written for it all the while
		assert.Zero(t, srv.Requests()["multi"])
		require.NoError(t, h.Release())
		h = <-got
		assert.Equal(t, 1, srv.Requests()["multi"], "a write renewed the session lease before the hold was returned")
		time.Sleep(10 * time.Minute)
		require.NoError(t, h.Err())
		require.NoError(t, h.Release())
	})
}

func TestNodeThatIsDeletedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		c, operator := connect(t, srv), connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		for range 3 { // somebody writes to it
			_, err = operator.Set(t.Context(), h.Path(), []byte("x"), framework.AnyVersion)
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		require.NoError(t, h.Err())
		require.NoError(t, operator.Delete(t.Context(), h.Path(), framework.AnyVersion))
		time.Sleep(100 * time.Millisecond)
		require.ErrorIs(t, context.Cause(h.Context()), locks.ErrLockLost, "the watch says so at once")
		require.ErrorIs(t, h.Err(), locks.ErrNodeDeleted)
		<-h.Gone()
	})
}

func TestDeadlineCountsAlsoWhenTheTimerIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		srv.Freeze()
		time.Sleep(30 * time.Second) // this goroutine and the timer wake at one instant
		assert.Equal(t, locks.Lost, h.State())
		require.ErrorIs(t, h.Err(), locks.ErrLockLost)
		require.ErrorIs(t, h.Release(), locks.ErrLockLost)
		srv.Thaw()
	})
}

func TestGoneAfterALossThatTheServerDoesNotKnowOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, srv.Stop()) // sessions do not age while it is down
		<-h.Context().Done()
		select {
		case <-h.Gone():
			t.Error("nobody knows that yet")
		default:
		}
		require.NoError(t, srv.Restart())
		<-h.Gone()
		assert.Empty(t, srv.Ephemerals(0), "the lost session was closed where it was found again")
	})
}

// What a waiter has on the servers outlives the connection that made it.
func TestWaiterIsServedOnAnotherConnection(t *testing.T) {
	for name, lock := range swept {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
				holder, waiter := connect(t, srv), connect(t, srv)
				h, err := lock(holder).Acquire(t.Context())
				require.NoError(t, err)
				time.AfterFunc(10*time.Minute, func() { assert.NoError(t, srv.Disconnect(waiter.SessionID())) })
				time.AfterFunc(20*time.Minute, func() { assert.NoError(t, h.Release()) })
				ctx, cancel := context.WithTimeout(t.Context(), 21*time.Minute)
				defer cancel()
				h, err = lock(waiter).Acquire(ctx)
				require.NoError(t, err)
				require.NoError(t, h.Release())
			})
		})
	}
}
