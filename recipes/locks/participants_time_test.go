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
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// listable is a lock that tells who is there.
type listable interface {
	locks.Lock
	Participants(ctx context.Context) ([]locks.Participant, error)
}

func TestParticipants(t *testing.T) {
	for name, tc := range map[string]struct {
		lock  func(c *framework.Client, data string) listable
		holds []string
	}{
		"mutex": {func(c *framework.Client, data string) listable {
			return locks.NewInterProcessMutex(c, "/l", locks.NodeData([]byte(data)))
		}, []string{"a"}},
		"semaphore mutex": {func(c *framework.Client, data string) listable {
			return locks.NewInterProcessSemaphoreMutex(c, "/l", locks.NodeData([]byte(data)))
		}, []string{"a"}},
		"semaphore": {func(c *framework.Client, data string) listable {
			return locks.NewInterProcessSemaphore(c, "/l", 2, locks.NodeData([]byte(data)))
		}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { participants(t, tc.lock, tc.holds) })
		})
	}
}

// participants lets four clients ask for a lock, one after the other.
func participants(t *testing.T, lock func(c *framework.Client, data string) listable, holds []string) {
	t.Helper()
	srv := zktest.Start(t, zktest.InMemory())
	watcher := lock(connect(t, srv), "watcher")
	ctx, cancel := context.WithCancel(t.Context())
	sessions := make(map[int64]string)
	ended := make(chan struct{})
	for _, name := range []string{"a", "b", "c", "d"} {
		c := connect(t, srv)
		sessions[c.SessionID()] = name
		go func() {
			defer func() { ended <- struct{}{} }()
			if hold, err := lock(c, name).Acquire(ctx); err == nil {
				<-ctx.Done()
				_ = hold.Release()
			}
		}()
		time.Sleep(time.Second)
	}
	all, err := watcher.Participants(t.Context())
	require.NoError(t, err)
	var holding, waiting []string
	for _, p := range all {
		who := sessions[p.Session]
		assert.WithinDuration(t, time.Now(), p.Since, 5*time.Second)
		if !p.Holds {
			if len(waiting) == 0 || waiting[len(waiting)-1] != who { // who is being served stands in both queues
				waiting = append(waiting, who)
			}
			continue
		}
		assert.Equal(t, who, string(p.Data))
		holding = append(holding, who)
	}
	assert.Equal(t, holds, holding)
	assert.Equal(t, []string{"a", "b", "c", "d"}[len(holds):], waiting, "in order")

	cancel()
	for range sessions {
		<-ended
	}
	time.Sleep(time.Minute)
	all, err = watcher.Participants(t.Context())
	require.NoError(t, err)
	assert.Empty(t, all)

	// Each request for the list in turn is cut and refused.
	for nth := 1; nth <= 2; nth++ {
		c := connect(t, srv)
		srv.On(zktest.Match{Session: c.SessionID(), Nth: nth}, zktest.CutBefore())
		_, err = lock(c, "x").Participants(t.Context())
		require.NoError(t, err, "asked again")
		c = connect(t, srv)
		rule := srv.On(zktest.Match{Session: c.SessionID(), Nth: nth}, zktest.Fail(-102))
		if _, err = lock(c, "x").Participants(t.Context()); rule.Fired() > 0 {
			require.ErrorIs(t, err, framework.ErrNoAuth)
		}
		rule.Remove()
	}
	_, err = lock(nil, "x").Participants(t.Context())
	require.ErrorIs(t, err, locks.ErrInvalidLock)
}

func TestHoldThatIsNone(t *testing.T) {
	var h locks.Hold
	assert.Empty(t, h.Path())
	assert.Empty(t, h.Members())
	assert.Zero(t, h.FencingToken())
	assert.ErrorIs(t, h.Err(), locks.ErrReleased)
	assert.Nil(t, h.Revoked())
	h.Listen(func(locks.HoldState) { t.Error("there is no state to tell") })()
	bound, cancel := h.Bind(t.Context())
	defer cancel()
	assert.ErrorIs(t, context.Cause(bound), locks.ErrReleased)
	<-h.Gone()
	assert.Equal(t, "RELEASED", h.State().String())
	for state, text := range map[locks.HoldState]string{locks.Held: "HELD", locks.Uncertain: "UNCERTAIN", locks.Lost: "LOST", 0: "NONE"} {
		assert.Equal(t, text, state.String())
	}
}

func TestDowngradeThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := connect(t, srv), connect(t, srv)
		lock := locks.NewInterProcessReadWriteLock(c, "/rw")
		w, err := lock.WriteLock().Acquire(t.Context())
		require.NoError(t, err)
		rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "multi"}, zktest.Fail(-102))
		_, err = lock.ReadLock().Acquire(w.Context())
		require.ErrorIs(t, err, framework.ErrNoAuth)
		require.ErrorContains(t, err, "downgrade")
		rule.Remove()
		require.NoError(t, w.Err(), "the write side goes on")
		assert.Len(t, srv.Ephemerals(0), 1)

		// Its session ends before the node of the read side can be made.
		srv.On(zktest.Match{Session: c.SessionID(), Op: "multi"}, zktest.Call(func(r zktest.Request) { _ = srv.ExpireSession(r.Session) }))
		_, err = lock.ReadLock().Acquire(w.Context())
		require.ErrorIs(t, err, locks.ErrLockLost)
		require.ErrorIs(t, err, framework.ErrSessionExpired)
		require.ErrorIs(t, w.Release(), locks.ErrLockLost)
		_, err = lock.ReadLock().Acquire(context.WithoutCancel(w.Context()))
		require.NoError(t, err, "who comes from a hold that was released is nobody special")
		next, err := locks.NewInterProcessReadWriteLock(other, "/rw").ReadLock().Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, next.Release())
	})
}

// Somebody deletes the node of the write side, and another writer has the lock already. A
// node of the read side with the same number would stand before that writer.
func TestDowngradeOfADeletedNode(t *testing.T) {
	const near = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(near), zktest.TransactionLog())
		c, other, operator := connect(t, srv), connect(t, srv), connect(t, srv)
		lock := locks.NewInterProcessReadWriteLock(c, "/rw")
		w, err := lock.WriteLock().Acquire(t.Context())
		require.NoError(t, err)
		node := srv.Ephemerals(0)[0]
		next := acquiring(t, locks.NewInterProcessReadWriteLock(other, "/rw").WriteLock())
		require.NoError(t, srv.WaitChildren(t.Context(), "/rw", 2))
		deleted := make(chan error, 1)
		go func() { deleted <- operator.Delete(context.Background(), node, -1) }()
		time.Sleep(near * 3 / 2) // it is gone, and the news is on its way
		require.NoError(t, w.Err())
		_, err = lock.ReadLock().Acquire(w.Context())
		require.ErrorIs(t, err, locks.ErrNodeDeleted)
		require.NoError(t, <-deleted)
		h := <-next
		assert.Len(t, srv.Ephemerals(0), 1, "the other writer's")
		log := fmt.Sprint(srv.Transactions())
		assert.Contains(t, log, "__WRIT__")
		assert.NotContains(t, log, "__READ__")
		require.NoError(t, h.Release())
		require.ErrorIs(t, w.Release(), locks.ErrLockLost)
	})
}

// The session is given up while the reply is awaited: no write is answered any
// more, though pings are.
func TestDowngradeWithoutReply(t *testing.T) {
	for name, from := range map[string]func(*locks.Hold) context.Context{
		"its context":              (*locks.Hold).Context,
		"one that does not end it": func(h *locks.Hold) context.Context { return context.WithoutCancel(h.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := connect(t, srv)
				lock := locks.NewInterProcessReadWriteLock(c, "/rw")
				w, err := lock.WriteLock().Acquire(t.Context())
				require.NoError(t, err)
				for _, op := range []string{"create2", "multi"} {
					srv.On(zktest.Match{Session: c.SessionID(), Op: op}, zktest.Delay(time.Hour))
				}
				_, err = lock.ReadLock().Acquire(from(w))
				require.ErrorIs(t, err, locks.ErrLockLost)
				require.NotErrorIs(t, err, framework.ErrOutcomeUnknown)
				require.ErrorIs(t, w.Release(), locks.ErrLockLost)
				r, err := lock.ReadLock().Acquire(t.Context())
				require.NoError(t, err)
				assert.Len(t, srv.Ephemerals(0), 1, "nothing is left of the other")
				require.NoError(t, r.Release())
			})
		})
	}
}
