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

func TestParticipantsThatComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const forbidden = -102
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
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
			all, err := ask("getData", -101)
			require.NoError(t, err)
			assert.Empty(t, all, "it has gone since it was listed")
			all, err = ask("getData", forbidden)
			require.NoError(t, err)
			require.Len(t, all, 1)
			assert.Nil(t, all[0].Data, "nobody may read it")
			assert.True(t, all[0].Holds)
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

// listable is a lock that tells who is there.
type listable interface {
	locks.Lock
	Participants(ctx context.Context) ([]locks.Participant, error)
}

func TestParticipants(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lock   func(c *framework.Client, data string) listable
		holds  []string
		folder string // whose children are looked at for other kinds of locks, if they may be read
	}{
		"mutex": {func(c *framework.Client, data string) listable {
			return locks.NewInterProcessMutex(c, "/l", locks.NodeData([]byte(data)))
		}, []string{"a"}, ""},
		"semaphore mutex": {func(c *framework.Client, data string) listable {
			return locks.NewInterProcessSemaphoreMutex(c, "/l", locks.NodeData([]byte(data)))
		}, []string{"a"}, "/l"},
		"semaphore": {func(c *framework.Client, data string) listable {
			return locks.NewInterProcessSemaphore(c, "/l", 2, locks.NodeData([]byte(data)))
		}, []string{"a", "b"}, "/l"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { participants(t, tc.lock, tc.holds, tc.folder) })
		})
	}
}

// participants lets four clients ask for a lock, one after the other.
func participants(t *testing.T, lock func(c *framework.Client, data string) listable, holds []string, folder string) {
	t.Helper()
	srv := zktest.Start(t, zktest.InMemory())
	watcher := lock(kit.Connect(t, srv), "watcher")
	ctx, cancel := context.WithCancel(t.Context())
	sessions := make(map[int64]string)
	ended := make(chan struct{})
	for _, name := range []string{"a", "b", "c", "d"} {
		c := kit.Connect(t, srv)
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
	for nth := 1; nth <= 3; nth++ {
		c := kit.Connect(t, srv)
		srv.On(zktest.Match{Session: c.SessionID(), Nth: nth}, zktest.CutBefore())
		_, err = lock(c, "x").Participants(t.Context())
		require.NoError(t, err, "asked again")
		c = kit.Connect(t, srv)
		queues := func(r zktest.Request) bool { return r.Path != folder }
		rule := srv.On(zktest.Match{Session: c.SessionID(), Nth: nth, Func: queues}, zktest.Fail(-102))
		if _, err = lock(c, "x").Participants(t.Context()); rule.Fired() > 0 {
			require.ErrorIs(t, err, framework.ErrNoAuth)
		}
		rule.Remove()
	}
	_, err = lock(nil, "x").Participants(t.Context())
	require.ErrorIs(t, err, locks.ErrInvalidLock)
}
