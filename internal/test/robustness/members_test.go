//go:build realzk

package robustness

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
)

const tick = 500 * time.Millisecond

// The member that a holder is connected to is killed: the hold survives in the
// same session, and says so.
func TestMemberKilled(t *testing.T) {
	e := realzk.StartT(t, realzk.Options{Servers: 3, Tick: tick})
	c := kit.Connect(t, e, func(cfg *framework.Config) { cfg.SessionTimeout = 8 * time.Second })
	states := c.States().Subscribe()
	defer states.Stop()
	require.Equal(t, listeners.Connected, <-states.C)
	h, err := locks.NewInterProcessMutex(c, "/locks/l").Acquire(t.Context())
	require.NoError(t, err)
	var seen []locks.HoldState
	told := make(chan locks.HoldState, 10)
	h.Listen(func(s locks.HoldState) { told <- s })
	seen = append(seen, <-told)

	id := c.SessionID()
	member, err := e.MemberOf(t.Context(), id)
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, e.Kill(member))
	require.Equal(t, listeners.Suspended, <-states.C)
	require.Equal(t, listeners.Reconnected, <-states.C)
	seen = append(seen, <-told, <-told)
	t.Logf("member %d killed, held again after %v", member, time.Since(began).Round(time.Millisecond))
	assert.Equal(t, []locks.HoldState{locks.Held, locks.Uncertain, locks.Held}, seen)
	assert.Equal(t, id, c.SessionID(), "the same session")
	require.NoError(t, h.Context().Err())
	require.NoError(t, h.Release())
	require.NoError(t, e.Restart(t.Context(), member))
}

// A majority is stopped beyond the session timeout: the hold ends before
// anybody else can have acquired.
func TestMajorityStopped(t *testing.T) {
	e := realzk.StartT(t, realzk.Options{Servers: 3, Tick: tick})
	c, other := kit.Connect(t, e, short), kit.Connect(t, e, short)
	h, err := locks.NewInterProcessMutex(c, "/locks/l").Acquire(t.Context())
	require.NoError(t, err)
	granted := make(chan time.Time, 1)
	failed := make(chan error, 1)
	go func() {
		h, err := locks.NewInterProcessMutex(other, "/locks/l").Acquire(t.Context())
		if err != nil {
			failed <- err
			return
		}
		granted <- time.Now()
		failed <- h.Release()
	}()
	<-time.After(time.Second)

	leader, err := e.Leader(t.Context())
	require.NoError(t, err)
	require.NoError(t, e.Kill(leader))
	follower := (leader + 1) % 3
	require.NoError(t, e.Kill(follower))
	stopped := time.Now()
	<-h.Context().Done()
	ended := time.Now()
	require.ErrorIs(t, context.Cause(h.Context()), locks.ErrLockLost)
	assert.Less(t, ended.Sub(stopped), sessionTimeout+time.Second)
	<-time.After(sessionTimeout)
	select {
	case <-granted:
		require.Fail(t, "granted without a majority")
	default:
	}
	require.NoError(t, e.Restart(t.Context(), leader))
	require.NoError(t, e.Restart(t.Context(), follower))
	passed := <-granted
	t.Logf("the hold ended %v after the majority stopped, %v before the other one was granted",
		ended.Sub(stopped).Round(time.Millisecond), passed.Sub(ended).Round(time.Millisecond))
	assert.True(t, ended.Before(passed))
	require.NoError(t, <-failed)
	require.ErrorIs(t, h.Release(), locks.ErrLockLost)
}

// A member is cut off from the others and goes on answering its clients, while
// the leader's clock for their sessions runs out. The hold ends before the lock
// is given to another client; with the belief of a standalone server it does not.
func TestFollowerCutOff(t *testing.T) {
	for name, tc := range map[string]struct {
		proof     framework.SessionLease
		safe      bool
		observers int
	}{
		"proved by the leader":                           {framework.LeaseByQuorum, true, 0},
		"the control: proved by the server":              {framework.LeaseByServer, false, 0},
		"an observer, proved by the leader":              {framework.LeaseByQuorum, true, 1},
		"the control: an observer, proved by the server": {framework.LeaseByServer, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := realzk.StartT(t, realzk.Options{Servers: 3, Observers: tc.observers, Tick: tick, SyncLimit: 16, Partitions: true})
			leader, err := e.Leader(t.Context())
			require.NoError(t, err)
			follower := (leader + 1) % 3
			if tc.observers > 0 {
				follower = 2 // which cannot lead
			}
			c := kit.Connect(t, e, short, func(cfg *framework.Config) {
				cfg.ConnectString, cfg.SessionLease = e.Addr(follower), tc.proof
			})
			other := kit.Connect(t, e, short, func(cfg *framework.Config) { cfg.ConnectString = e.Addr(leader) })
			h, err := locks.NewInterProcessMutex(c, "/locks/l").Acquire(t.Context())
			require.NoError(t, err)
			granted, released := make(chan time.Time, 1), make(chan error, 1)
			go func() {
				h, err := locks.NewInterProcessMutex(other, "/locks/l").Acquire(t.Context())
				granted <- time.Now()
				if err == nil {
					err = h.Release()
				}
				released <- err
			}()
			<-time.After(3 * time.Second)
			require.NoError(t, h.Err())
			require.NoError(t, e.Partition(follower))
			cut := time.Now()
			var ended, passed time.Time
			for ended.IsZero() || passed.IsZero() {
				gone := h.Context().Done()
				if !ended.IsZero() {
					gone = nil
				}
				select {
				case <-gone:
					ended = time.Now()
				case passed = <-granted:
				}
			}
			t.Logf("the hold ended %v after the cut, the lock passed on after %v: %v before",
				ended.Sub(cut).Round(time.Millisecond), passed.Sub(cut).Round(time.Millisecond), passed.Sub(ended).Round(time.Millisecond))
			assert.Equal(t, tc.safe, ended.Before(passed))
			require.NoError(t, <-released)
			require.ErrorIs(t, h.Release(), locks.ErrLockLost)
			require.NoError(t, e.Heal(follower))
		})
	}
}
