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

// handOff lets waiter wait behind holder, does something, lets the holder's node
// go, and returns how many lists that has cost, and the waiter's hold.
func handOff(t *testing.T, holder, waiter func(c *framework.Client) locks.Lock, before func(n *next)) (lists int, _ *locks.Hold) {
	t.Helper()
	srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
	n := &next{t: t, srv: srv, c: kit.Connect(t, srv), other: kit.Connect(t, srv)}
	got := make(chan *locks.Hold, 1)
	var err error
	n.first, err = holder(n.other).Acquire(t.Context())
	require.NoError(t, err)
	go func() {
		h, err := waiter(n.c).Acquire(context.Background())
		assert.NoError(t, err)
		got <- h
	}()
	time.Sleep(time.Second)
	n.waits = srv.Ephemerals(n.c.SessionID())[0]
	before(n)
	lists = srv.Requests()["getChildren"]
	_ = n.first.Release()
	h := <-got
	return srv.Requests()["getChildren"] - lists, h
}

func mutexOf(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/l") }

func readOf(c *framework.Client) locks.Lock {
	return locks.NewInterProcessReadWriteLock(c, "/l").ReadLock()
}

func writeOf(c *framework.Client) locks.Lock {
	return locks.NewInterProcessReadWriteLock(c, "/l").WriteLock()
}

// The event alone makes us first, unless one of the conditions does not hold.
func TestHandOffWithoutALook(t *testing.T) {
	type lock = func(*framework.Client) locks.Lock
	for name, tc := range map[string]struct {
		holder, waiter lock
		before         func(n *next)
		lists          int
	}{
		"mutex":                 {mutexOf, mutexOf, func(*next) {}, 0},
		"reader behind writer":  {writeOf, readOf, func(*next) {}, 1},
		"writer behind reader":  {readOf, writeOf, func(*next) {}, 1},
		"writer behind writer":  {writeOf, writeOf, func(*next) {}, 1},
		"disconnected for long": {mutexOf, mutexOf, func(n *next) { require.NoError(n.t, n.srv.Disconnect(n.c.SessionID())); time.Sleep(time.Second) }, 1},
		"disconnected just before": {mutexOf, mutexOf, func(n *next) {
			require.NoError(n.t, n.srv.Disconnect(n.c.SessionID()))
		}, 1},
		"own node written to": {mutexOf, mutexOf, func(n *next) {
			require.NoError(n.t, locks.AttemptRevoke(n.t.Context(), n.other, n.waits))
			time.Sleep(time.Second)
		}, 1},
		"node ahead written to": {mutexOf, mutexOf, func(n *next) {
			require.NoError(n.t, locks.AttemptRevoke(n.t.Context(), n.other, n.first.Path()))
			time.Sleep(time.Second)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lists, h := handOff(t, tc.holder, tc.waiter, tc.before)
				assert.Equal(t, tc.lists, lists)
				assert.Equal(t, locks.Held, h.State())
				require.NoError(t, h.Release())
			})
		})
	}
}

// Somebody between the holder and us gives up: that does not make us first.
func TestHandOffBehindTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		first, err := mutexOf(kit.Connect(t, srv)).Acquire(t.Context())
		require.NoError(t, err)
		second := mutexOf(kit.Connect(t, srv))
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := second.Acquire(ctx)
			assert.ErrorIs(t, err, context.Canceled)
		}()
		time.Sleep(time.Second)
		wg := inLine(t, 1, sameLock(mutexOf(kit.Connect(t, srv))), func(int, *locks.Hold) {
			assert.Equal(t, locks.Released, first.State())
		})
		time.Sleep(time.Second)
		cancel()
		time.Sleep(time.Second)
		require.NoError(t, first.Release())
		wg.Wait()
	})
}

// The read node of a downgrade stands before a writer who waits.
func TestHandOffBehindADowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		write, err := writeOf(other).Acquire(t.Context())
		require.NoError(t, err)
		var read *locks.Hold
		wg := inLine(t, 1, sameLock(writeOf(c)), func(int, *locks.Hold) { assert.Equal(t, locks.Released, read.State()) })
		time.Sleep(time.Second)
		read, err = readOf(other).Acquire(write.Context())
		require.NoError(t, err)
		require.NoError(t, write.Release())
		time.Sleep(time.Second)
		require.NoError(t, read.Release())
		wg.Wait()
	})
}

// Our node goes at the same moment as the one ahead: we are not first, but not
// there. If the server tells of that later, who has the lock already is told.
func TestHandOffToANodeThatIsGone(t *testing.T) {
	for _, ownFirst := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
			c, other := kit.Connect(t, srv), kit.Connect(t, srv)
			first, err := mutexOf(other).Acquire(t.Context())
			require.NoError(t, err)
			got := make(chan *locks.Hold, 1)
			go func() {
				h, err := mutexOf(c).Acquire(t.Context())
				if err != nil {
					assert.False(t, ownFirst)
					assert.ErrorIs(t, err, locks.ErrLockLost)
				}
				got <- h
			}()
			time.Sleep(time.Second)
			own := srv.Ephemerals(c.SessionID())[0]
			tx := other.Transaction()
			if ownFirst {
				tx.Delete(own, framework.AnyVersion)
			}
			tx.Delete(first.Path(), framework.AnyVersion)
			if !ownFirst {
				tx.Delete(own, framework.AnyVersion)
			}
			_, err = tx.Commit(t.Context())
			require.NoError(t, err)
			if h := <-got; h != nil {
				synctest.Wait()
				assert.Equal(t, h.Path() == own, h.State() == locks.Lost)
				_ = h.Release()
			}
			synctest.Wait()
			assert.Empty(t, srv.Ephemerals(0))
		})
	}
}

// Nodes of one session go together when it ends.
func TestHandOffWithinASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l", locks.LocalHandovers(0))
		_, err := m.Acquire(t.Context())
		require.NoError(t, err)
		old := c.SessionID()
		wg := inLine(t, 1, sameLock(m), func(_ int, h *locks.Hold) {
			all, err := m.Participants(t.Context())
			assert.NoError(t, err)
			if assert.Len(t, all, 1) {
				assert.NotEqual(t, old, all[0].Session)
				assert.Equal(t, h.Path(), all[0].Path)
			}
		})
		time.Sleep(time.Second)
		lists := srv.Requests()["getChildren"]
		require.NoError(t, srv.ExpireSession(old))
		wg.Wait()
		assert.Positive(t, srv.Requests()["getChildren"]-lists)
	})
}

// A waiter that has waited for longer than anything proves the session asks the servers.
func TestHandOffProvesTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		first, err := mutexOf(other).Acquire(t.Context())
		require.NoError(t, err)
		var got time.Time
		wg := inLine(t, 1, sameLock(mutexOf(c)), func(int, *locks.Hold) { got = time.Now() })
		time.Sleep(time.Minute)
		before := srv.Requests()
		applied := time.Now().Add(d)
		require.NoError(t, first.Release())
		wg.Wait()
		assert.Equal(t, 3*d, got.Sub(applied), "the event, and a write")
		assert.Equal(t, 1, srv.Requests()["multi"]-before["multi"])
		assert.Equal(t, before["getChildren"], srv.Requests()["getChildren"])
	})
}
