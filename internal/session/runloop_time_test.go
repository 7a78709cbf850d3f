package session_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestRenewalsServeAllHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		c := kit.Connect(t, srv)
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
		c := kit.Connect(t, srv)
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
		c, naive := kit.Connect(t, srv), kit.Connect(t, srv, kit.ByServer)
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

func TestDeadlineCountsAlsoWhenTheTimerIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
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

// A server that refuses gets a request now and then, not one for each round trip.
func TestRefusedRenewalsArePaced(t *testing.T) {
	for name, change := range map[string]func(*framework.Config){"by quorum": kit.Within(4*time.Second, 0), "by server, after a reconnect": kit.ByServer} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(400*time.Millisecond), zktest.Latency(time.Millisecond/2))
				c := kit.Connect(t, srv, kit.Within(4*time.Second, 0), change)
				h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				require.NoError(t, err)
				time.Sleep(8 * time.Second)
				refusing := srv.On(zktest.Match{Op: "multi"}, zktest.Fail(-127))
				if name != "by quorum" {
					require.NoError(t, srv.Disconnect(c.SessionID()))
				}
				before := srv.Requests()["multi"]
				time.Sleep(1200 * time.Millisecond)
				t.Logf("%d refused in 1.2 s", srv.Requests()["multi"]-before)
				assert.LessOrEqual(t, srv.Requests()["multi"]-before, 8)
				refusing.Remove()
				time.Sleep(2 * time.Second)
				assert.Equal(t, locks.Held, h.State(), "repeated in time")
				require.NoError(t, h.Release())
			})
		})
	}
}

func TestNothingIsRenewedWithoutLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		time.Sleep(10 * time.Minute)
		assert.Equal(t, listeners.Connected, c.State())
		assert.Zero(t, srv.Requests()["multi"]+srv.Requests()["sync"])
	})
}
