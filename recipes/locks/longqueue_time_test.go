package locks_test

import (
	"sync"
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

// slow is a server that needs its time for each request of a kind. All that a
// session has sent waits behind it, heartbeats too.
func slow(srv *zktest.Server, session int64, needs time.Duration, ops ...string) {
	for _, op := range ops {
		srv.On(zktest.Match{Session: session, Op: op}, zktest.Delay(needs))
	}
}

// steady fails the test if the client's connection changes its state, or a lock
// that it holds elsewhere is lost, before the function returned is called.
func steady(t *testing.T, c *framework.Client) (done func()) {
	t.Helper()
	other, err := locks.NewInterProcessMutex(c, "/elsewhere").Acquire(t.Context())
	require.NoError(t, err)
	synctest.Wait()
	var mu sync.Mutex
	var states []listeners.State
	remove := c.States().Listen(func(s listeners.State) {
		mu.Lock()
		defer mu.Unlock()
		states = append(states, s)
	})
	return func() {
		t.Helper()
		synctest.Wait()
		remove()
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, []listeners.State{listeners.Connected}, states)
		assert.NoError(t, other.Err())
		assert.NoError(t, other.Release())
	}
}

func shortSession(cfg *framework.Config) { cfg.SessionTimeout = 4 * time.Second }

// What a call asks of a long queue takes the servers longer than a session lasts.
func TestLongQueueIsReadWithinTheSession(t *testing.T) {
	t.Parallel()
	const n = 2_000
	for name, tc := range map[string]struct {
		queue, node string
		lock        func(*framework.Client) listable
	}{
		"mutex":     {"/l", "x-lock-", func(c *framework.Client) listable { return locks.NewInterProcessMutex(c, "/l") }},
		"semaphore": {"/s/leases", "x-lease-", func(c *framework.Client) listable { return locks.NewInterProcessSemaphore(c, "/s", n) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv, shortSession)
				kit.Fill(t, kit.Connect(t, srv), tc.queue, tc.node, n)
				done := steady(t, c)
				slow(srv, c.SessionID(), 4*time.Millisecond, "exists", "getData") // 8 s in all
				all, err := tc.lock(c).Participants(t.Context())
				require.NoError(t, err)
				assert.Len(t, all, n)
				done()
			})
		})
	}
}

// Thousands of leases are made and given back while the session lives on, and no
// request is larger than a server takes.
func TestThousandsOfLeases(t *testing.T) {
	t.Parallel()
	const n = 12_000
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv, shortSession)
		done := steady(t, c)
		before := srv.Requests()
		began := time.Now()
		h, err := locks.NewInterProcessSemaphore(c, "/a/b/s", n).AcquireN(t.Context(), n) // the parents are missing
		require.NoError(t, err)
		assert.Less(t, time.Since(began), time.Second)
		after := srv.Requests()
		assert.Less(t, after["exists"]-before["exists"], 20, "parents are made once")
		assert.Less(t, after["multi"]-before["multi"], 2*n/100)
		require.Len(t, h.Members(), n)
		began = time.Now()
		require.NoError(t, h.Release())
		assert.Less(t, time.Since(began), time.Second)
		assert.Len(t, srv.Ephemerals(c.SessionID()), 1, "the one of elsewhere")
		assert.LessOrEqual(t, srv.Requests()["delete"]-before["delete"], 1, "they go together; the turn is one more")
		done()
	})
}

// Deletions are refused, or one of the nodes is gone already.
func TestThousandsOfLeasesWhoseDeletionFails(t *testing.T) {
	t.Parallel()
	const n = 3000
	for name, meddle := range map[string]func(*testing.T, *zktest.Server, *framework.Client, *locks.Hold){
		"one is gone": func(t *testing.T, _ *zktest.Server, operator *framework.Client, h *locks.Hold) {
			require.NoError(t, operator.Delete(t.Context(), h.Members()[17].Path(), framework.AnyVersion))
		},
		"refused": func(_ *testing.T, srv *zktest.Server, _ *framework.Client, _ *locks.Hold) {
			srv.On(zktest.Match{Op: "multi", Nth: 1}, zktest.Fail(-102))
		},
		"cut before": func(_ *testing.T, srv *zktest.Server, _ *framework.Client, _ *locks.Hold) {
			srv.On(zktest.Match{Op: "multi", Nth: 2}, zktest.CutBefore())
		},
		"cut after": func(_ *testing.T, srv *zktest.Server, _ *framework.Client, _ *locks.Hold) {
			srv.On(zktest.Match{Op: "multi", Nth: 2}, zktest.CutAfter())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				c, operator := kit.Connect(t, srv, shortSession), kit.Connect(t, srv)
				h, err := locks.NewInterProcessSemaphore(c, "/s", n).AcquireN(t.Context(), n)
				require.NoError(t, err)
				meddle(t, srv, operator, h)
				slow(srv, c.SessionID(), 3*time.Millisecond, "delete") // longer than a session in all
				_ = h.Release()
				time.Sleep(time.Minute)
				assert.Empty(t, srv.Ephemerals(c.SessionID()))
				assert.LessOrEqual(t, srv.Requests()["connect"], 3, "a reconnect at most")
			})
		})
	}
}

// One lost reply leaves a thousand creations in doubt. They are looked for with a
// few lists.
func TestSweepsShareTheirLists(t *testing.T) {
	t.Parallel()
	const n = 1000
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv)
		s := locks.NewInterProcessSemaphore(c, "/s", n)
		h, err := s.AcquireN(t.Context(), 2) // makes the parents
		require.NoError(t, err)
		require.NoError(t, h.Release())
		before := srv.Requests()
		srv.On(zktest.Match{Op: "multi", Session: c.SessionID(), Nth: 1}, zktest.CutAfter())
		_, err = s.TryAcquireN(t.Context(), n, 3500*time.Microsecond) // the turn takes 2 ms, the leases are made after 3
		require.ErrorIs(t, err, framework.ErrNotConnected)
		require.NotEmpty(t, srv.Ephemerals(c.SessionID()))
		time.Sleep(time.Minute)
		assert.Empty(t, srv.Ephemerals(0))
		lists := srv.Requests()["getChildren"] - before["getChildren"]
		assert.Positive(t, lists)
		assert.Less(t, lists, 20)
		h, err = s.AcquireN(t.Context(), n)
		require.NoError(t, err)
		require.NoError(t, h.Release())
	})
}

// A MultiLock of many members gives up its contenders together.
func TestMultiLockOfManyMembers(t *testing.T) {
	t.Parallel()
	const n = 1500
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c, other := kit.Connect(t, srv, shortSession), kit.Connect(t, srv)
		lock := kit.MultiOf(n)(c)
		before := srv.Requests()
		h, err := lock.Acquire(t.Context())
		require.NoError(t, err)
		assert.Less(t, srv.Requests()["multi"]-before["multi"], 5)
		require.NoError(t, h.Release())
		taken, err := locks.NewInterProcessMutex(other, "/l/7").Acquire(t.Context())
		require.NoError(t, err)
		done := steady(t, c)
		slow(srv, c.SessionID(), 4*time.Millisecond, "delete", "getData", "removeWatches", "exists")
		_, err = lock.TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		time.Sleep(20 * time.Second)
		assert.Len(t, srv.Ephemerals(0), 2, "that of the other and that of elsewhere")
		done()
		require.NoError(t, taken.Release())
	})
}

// When nothing moves, an acquisition of several leases reads all waiters behind it.
func TestLookingWhetherToGiveWayToMany(t *testing.T) {
	t.Parallel()
	const n = 2_000
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c, others := kit.Connect(t, srv, shortSession), kit.Connect(t, srv)
		one, err := locks.NewInterProcessSemaphore(others, "/s", 3).Acquire(t.Context())
		require.NoError(t, err)
		done := steady(t, c)
		got := kit.Acquire(t, kit.Leases(locks.NewInterProcessSemaphore(c, "/s", 3), 3))
		time.Sleep(100 * time.Millisecond)
		waiting := kit.Connect(t, srv)
		kit.Fill(t, waiting, "/s/locks", "x-lock-", n)
		slow(srv, c.SessionID(), 3*time.Millisecond, "exists", "getData") // 6 s in all
		time.Sleep(20 * time.Second)
		assert.True(t, got.Pending())
		require.NoError(t, waiting.Close())
		require.NoError(t, one.Release())
		require.NoError(t, got.Soon().Release())
		done()
	})
}
