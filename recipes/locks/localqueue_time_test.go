package locks_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

// exclusively are the locks that have a local queue.
var exclusively = map[string]func(c *framework.Client, opts ...locks.Option) locks.Lock{
	"mutex": func(c *framework.Client, opts ...locks.Option) locks.Lock {
		return locks.NewInterProcessMutex(c, "/l", opts...)
	},
	"write side": func(c *framework.Client, opts ...locks.Option) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, "/l", opts...).WriteLock()
	},
}

func eachExclusive(t *testing.T, fn func(t *testing.T, lock func(c *framework.Client, opts ...locks.Option) locks.Lock)) {
	for name, lock := range exclusively {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { fn(t, lock) }) })
	}
}

func TestThousandsInALocalQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n, bound = 3_000, 16
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		first, err := locks.NewInterProcessMutex(other, "/l").Acquire(t.Context())
		require.NoError(t, err)
		var inside, holds atomic.Int32
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				// Each through a lock object of its own.
				assert.NoError(t, locks.Do(t.Context(), locks.NewInterProcessMutex(c, "/l", locks.LocalHandovers(bound)), func(context.Context) error {
					assert.Equal(t, int32(1), inside.Add(1), "alone")
					holds.Add(1)
					inside.Add(-1)
					return nil
				}))
			})
		}
		time.Sleep(time.Second)
		assert.Len(t, srv.Ephemerals(c.SessionID()), 1, "one node for all who wait")
		watches := 0
		for _, w := range srv.Watches() {
			if w.Session == c.SessionID() {
				watches++
			}
		}
		assert.LessOrEqual(t, watches, 2)
		before := srv.Requests()
		require.NoError(t, first.Release())
		began := time.Now()
		wg.Wait()
		assert.Equal(t, int32(n), holds.Load())
		turns := (n + bound) / (1 + bound) // a node is used by one and so many more
		creations := srv.Requests()["create2"] - before["create2"]
		assert.Equal(t, turns-1, creations)
		// The hand-off from the other client, and a round trip for each turn.
		assert.LessOrEqual(t, time.Since(began), time.Duration(turns+2)*2*d)
		synctest.Wait()
		kit.NothingLeft(t, srv)
	})
}

func TestLocalHandoverAsksNobody(t *testing.T) {
	eachExclusive(t, func(t *testing.T, lock func(*framework.Client, ...locks.Option) locks.Lock) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		h, err := lock(c).Acquire(t.Context())
		require.NoError(t, err)
		node := h.Path()
		var order []int
		var paths []string
		wg := kit.InLine(t, 16, func(int) locks.Lock { return lock(c) }, func(i int, h *locks.Hold) {
			order, paths = append(order, i), append(paths, h.Path())
		})
		before := srv.Requests()
		began := time.Now()
		require.NoError(t, h.Release())
		assert.Zero(t, time.Since(began), "no round trip")
		wg.Wait()
		// The last one finds nobody in the local queue and deletes the node.
		assert.Equal(t, 2*d, time.Since(began))
		assert.Equal(t, before["create2"], srv.Requests()["create2"])
		assert.Equal(t, before["delete"]+1, srv.Requests()["delete"])
		for i := range order {
			assert.Equal(t, i, order[i], "in the order in which they came")
			assert.Equal(t, node, paths[i])
		}
		require.ErrorIs(t, h.Err(), locks.ErrReleased)
	})
}

func TestOthersGetTheirTurn(t *testing.T) {
	for _, tc := range []struct {
		bound, before int
		held          time.Duration
	}{
		{bound: 16, before: 16},
		{bound: 3, before: 3, held: 10 * time.Millisecond},
		{bound: 16, before: 4, held: 230 * time.Millisecond}, // the second is over in the fifth hold
		{bound: 16, before: 0, held: time.Second},
	} {
		t.Run(fmt.Sprint(tc.bound, tc.held), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				m := locks.NewInterProcessMutex(c, "/l", locks.LocalHandovers(tc.bound))
				h, err := m.Acquire(t.Context())
				require.NoError(t, err)
				acquired := time.Now()
				var before atomic.Int32
				ours := kit.InLine(t, 40, kit.Same(m), func(int, *locks.Hold) {
					before.Add(1)
					time.Sleep(tc.held)
				})
				var turn int32
				theirs := kit.InLine(t, 1, kit.Same(locks.NewInterProcessMutex(other, "/l")), func(int, *locks.Hold) { turn = before.Load() })
				time.Sleep(max(tc.held, 100*time.Millisecond) - time.Since(acquired))
				require.NoError(t, h.Release())
				ours.Wait()
				theirs.Wait()
				assert.Equal(t, int32(tc.before), turn, "so many after the first one")
			})
		})
	}
}

// By default a lock that is held for moments goes round for 10 ms before others
// get it, and one that is held for longer sixteen times.
func TestOthersGetTheirTurnByDefault(t *testing.T) {
	t.Parallel()
	for held, before := range map[time.Duration]int32{100 * time.Microsecond: 100, time.Millisecond: 17, 2 * time.Millisecond: 17} {
		t.Run(held.String(), func(t *testing.T) {
			eachExclusive(t, func(t *testing.T, lock func(*framework.Client, ...locks.Option) locks.Lock) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c, first, last := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				h, err := lock(first).Acquire(t.Context())
				require.NoError(t, err)
				var holds atomic.Int32
				ours := kit.InLine(t, 200, kit.Same(lock(c)), func(int, *locks.Hold) {
					holds.Add(1)
					time.Sleep(held)
				})
				time.Sleep(100 * time.Millisecond)
				var turn int32
				theirs := kit.InLine(t, 1, kit.Same(lock(last)), func(int, *locks.Hold) { turn = holds.Load() })
				time.Sleep(100 * time.Millisecond)
				require.NoError(t, h.Release())
				theirs.Wait()
				assert.Equal(t, before, turn)
				ours.Wait()
			})
		})
	}
}

// While a MultiLock is in the queue nothing is handed over, and those who wait have nodes of their
// own, as many as a node would be handed to. With the last MultiLock gone the others wait
// behind one node again.
func TestMultiLocksComeBetween(t *testing.T) {
	eachExclusive(t, func(t *testing.T, lock func(*framework.Client, ...locks.Option) locks.Lock) {
		const n, bound = 12, 8
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		multi := locks.NewInterProcessMultiLock(lock(other), locks.NewInterProcessMutex(other, "/m"))
		h, err := multi.Acquire(t.Context())
		require.NoError(t, err)
		var order []string
		nodes := map[string]bool{}
		wg := kit.InLine(t, n, kit.Same(lock(c, locks.LocalHandovers(bound))), func(i int, h *locks.Hold) {
			order = append(order, fmt.Sprint(i))
			nodes[h.Path()] = true
			time.Sleep(10 * time.Millisecond)
		})
		time.Sleep(100 * time.Millisecond)
		assert.Len(t, srv.Ephemerals(c.SessionID()), 1+bound, "the first, and those beside it")
		require.NoError(t, h.Release())
		h, err = multi.Acquire(t.Context())
		require.NoError(t, err)
		order = append(order, "multi")
		require.NoError(t, h.Release())
		wg.Wait()
		require.Len(t, order, n+1)
		assert.Equal(t, "multi", order[1+bound], "behind those that were there: %v", order)
		assert.Len(t, nodes, n, "nothing was handed over")

		h, err = lock(other).Acquire(t.Context())
		require.NoError(t, err)
		wg = kit.InLine(t, n, kit.Same(lock(c)), func(int, *locks.Hold) {})
		time.Sleep(100 * time.Millisecond)
		assert.Len(t, srv.Ephemerals(c.SessionID()), 1)
		require.NoError(t, h.Release())
		wg.Wait()
	})
}

// One of those with a node of its own gives up, and the next has its place.
func TestWaiterBesideAMultiLockGivesUp(t *testing.T) {
	eachExclusive(t, func(t *testing.T, lock func(*framework.Client, ...locks.Option) locks.Lock) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		h, err := locks.NewInterProcessMultiLock(lock(other), locks.NewInterProcessMutex(other, "/m")).Acquire(t.Context())
		require.NoError(t, err)
		l := lock(c, locks.LocalHandovers(1))
		ctx, cancel := context.WithCancel(t.Context())
		waits := []context.Context{t.Context(), ctx}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { // the front waiter, the one beside it, and two in the local queue, of whom one gives up, too
				hold, err := l.Acquire(waits[i%2])
				if i%2 == 1 {
					assert.ErrorIs(t, err, context.Canceled)
					return
				}
				assert.NoError(t, err)
				assert.NoError(t, hold.Release())
			})
			time.Sleep(100 * time.Millisecond)
		}
		assert.Len(t, srv.Ephemerals(c.SessionID()), 2)
		cancel()
		time.Sleep(100 * time.Millisecond)
		assert.Len(t, srv.Ephemerals(c.SessionID()), 2, "the next has a node")
		require.NoError(t, h.Release())
		wg.Wait()
		assert.Empty(t, srv.Ephemerals(c.SessionID()))
	})
}

func TestLocalHandoversSwitchedOff(t *testing.T) {
	eachExclusive(t, func(t *testing.T, lock func(*framework.Client, ...locks.Option) locks.Lock) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		l := lock(c, locks.LocalHandovers(0))
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		tokens := []int64{h.FencingToken()}
		wg := kit.InLine(t, 5, kit.Same(l), func(_ int, h *locks.Hold) { tokens = append(tokens, h.FencingToken()) })
		assert.Len(t, srv.Ephemerals(0), 6, "a node each")
		require.NoError(t, h.Release())
		wg.Wait()
		assert.IsIncreasing(t, tokens)
	})
}

func TestLocalHandoversBelowZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
		_, err := locks.NewInterProcessMutex(c, "/l", locks.LocalHandovers(-1)).Acquire(t.Context())
		require.ErrorIs(t, err, locks.ErrInvalidLock)
	})
}

// Another node data has another node.
func TestOneLocalQueueForEachKindOfNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		kinds := [][]locks.Option{
			nil, {locks.NodeData([]byte("a"))}, {locks.NodeData([]byte("b"))}, {locks.NodeData(nil)}, {locks.Revocable()},
			{locks.LocalHandovers(1)}, {locks.EndOnSuspended()}, {locks.ReleaseWait(time.Minute)},
		}
		data := make(chan string, 2*len(kinds))
		wg := kit.InLine(t, 2*len(kinds), func(i int) locks.Lock {
			return locks.NewInterProcessMutex(c, "/l", kinds[i%len(kinds)]...)
		}, func(i int, h *locks.Hold) {
			written, _, err := c.Get(t.Context(), h.Path())
			assert.NoError(t, err)
			data <- fmt.Sprint(i%len(kinds), string(written))
		})
		assert.Len(t, srv.Ephemerals(0), 5)
		all, err := locks.NewInterProcessMutex(c, "/l").Participants(t.Context())
		require.NoError(t, err)
		assert.Len(t, all, 5, "participants are nodes")
		assert.True(t, all[0].Holds)
		require.NoError(t, h.Release())
		wg.Wait()
		seen := make(map[string]int)
		for range 2 * len(kinds) {
			seen[<-data]++
		}
		for _, want := range []string{"1a", "2b", "3", "4"} {
			assert.Equal(t, 2, seen[want], "%s of %v", want, seen)
		}
		assert.Empty(t, srv.Ephemerals(0))
	})
}

// Namespaced clients of one session have local queues of their own, as they see other paths. An
// owner that wants a lock under other holds waits in the local queue of the callers that
// come from the same holds. So a MultiLock sees each owner that may hold what it waits
// for.
func TestOneLocalQueueForEachOwner(t *testing.T) {
	eachExclusive(t, func(t *testing.T, lock func(*framework.Client, ...locks.Option) locks.Lock) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		first := kit.Hold(t, lock(c))
		var outer [2]*locks.Hold
		for i := range outer {
			outer[i] = kit.Hold(t, locks.NewInterProcessMutex(c, fmt.Sprint("/outer", i)))
		}
		var mu sync.Mutex
		nodes := make(map[string]int)
		var wg sync.WaitGroup
		for _, ctx := range []context.Context{t.Context(), t.Context(), outer[0].Context(), outer[0].Context(), outer[1].Context(), outer[1].Context()} {
			wg.Go(func() {
				h, err := lock(c).Acquire(ctx)
				if assert.NoError(t, err) {
					mu.Lock()
					nodes[h.Path()]++
					mu.Unlock()
					assert.NoError(t, h.Release())
				}
			})
			synctest.Wait()
		}
		assert.Len(t, srv.Ephemerals(0), 2+3, "what the owners hold, the first one's with two in its local queue, and one for each owner")
		require.NoError(t, first.Release())
		wg.Wait()
		assert.Equal(t, 2, nodes[first.Path()])
		assert.Len(t, nodes, 3)
		for i := range outer {
			require.NoError(t, outer[i].Release())
		}
	})
}

func TestOneLocalQueueForEachNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/n/l").Acquire(t.Context())
		require.NoError(t, err)
		spaced := c.UsingNamespace("n")
		var paths []string
		wg := kit.InLine(t, 2, kit.Same(locks.NewInterProcessMutex(spaced, "/l")), func(_ int, h *locks.Hold) {
			paths = append(paths, h.Path())
			_, _, err := spaced.Get(t.Context(), h.Path())
			assert.NoError(t, err)
		})
		require.NoError(t, h.Release())
		wg.Wait()
		require.Len(t, paths, 2)
		assert.Equal(t, paths[0], paths[1], "handed over")
	})
}

// The lock is not handed over with the node where that would say something
// untrue. Each of these, left out, lets a second hold have the same node.
func TestNodeThatIsNotHandedOver(t *testing.T) {
	t.Parallel()
	type scene struct {
		t     *testing.T
		srv   *zktest.Server
		c     *framework.Client
		first *locks.Hold
	}
	rw := func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, "/l").WriteLock()
	}
	mutex := func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/l") }
	for name, tc := range map[string]struct {
		lock   func(c *framework.Client) locks.Lock
		before func(s scene)
		shared bool // the control: nothing is against it
	}{
		"control":          {mutex, func(scene) {}, true},
		"control, written": {rw, func(scene) {}, true},
		"token shown":      {mutex, func(s scene) { assert.NotZero(s.t, s.first.FencingToken()) }, false},
		"token shown by re-entry": {mutex, func(s scene) {
			h, err := mutex(s.c).Acquire(s.first.Context())
			require.NoError(s.t, err)
			assert.NotZero(s.t, h.FencingToken())
			require.NoError(s.t, h.Release())
		}, false},
		"transaction applied": {mutex, func(s scene) {
			_, err := s.first.Transaction().Commit(s.t.Context())
			require.NoError(s.t, err)
		}, true},
		"transaction on its way": {mutex, func(s scene) {
			s.srv.On(zktest.Match{Op: "multi"}, zktest.Delay(time.Second))
			tx := s.first.Transaction()
			tx.Create("/late", nil, framework.Persistent)
			go func() {
				_, err := tx.Commit(s.t.Context())
				assert.NoError(s.t, err, "it was sent before the release")
			}()
			synctest.Wait()
		}, false},
		"transaction of unknown outcome": {mutex, func(s scene) {
			s.srv.On(zktest.Match{Op: "multi"}, zktest.Delay(time.Second))
			ctx, cancel := context.WithTimeout(s.t.Context(), time.Millisecond)
			defer cancel()
			tx := s.first.Transaction()
			tx.Create("/late", nil, framework.Persistent)
			_, err := tx.Commit(ctx)
			require.ErrorIs(s.t, err, framework.ErrOutcomeUnknown)
		}, false},
		"transaction across connections": {mutex, func(s scene) {
			_, err := s.c.Create(s.t.Context(), "/data", nil, framework.Persistent)
			require.NoError(s.t, err)
			s.srv.On(zktest.Match{Op: "multi", Nth: 1}, zktest.CutBefore())
			tx := s.first.Transaction()
			tx.Set("/data", []byte("x"), 0)
			_, err = tx.Commit(s.t.Context(), framework.Idempotent())
			require.NoError(s.t, err)
			for s.first.State() != locks.Held {
				time.Sleep(time.Second)
			}
		}, false},
		"downgraded": {rw, func(s scene) {
			h, err := locks.NewInterProcessReadWriteLock(s.c, "/l").ReadLock().Acquire(s.first.Context())
			require.NoError(s.t, err)
			time.AfterFunc(time.Second, func() { _ = h.Release() })
		}, false},
		"revocable": {func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMutex(c, "/l", locks.Revocable())
		}, func(scene) {}, false},
		"member of a MultiLock": {func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(mutex(c))
		}, func(scene) {}, false},
		"held again as a member": {mutex, func(s scene) {
			h, err := locks.NewInterProcessMultiLock(mutex(s.c), locks.NewInterProcessMutex(s.c, "/other")).Acquire(s.first.Context())
			require.NoError(s.t, err)
			require.NoError(s.t, h.Release())
		}, false},
		"held for long": {mutex, func(scene) { time.Sleep(time.Second) }, false},
		"suspended": {mutex, func(s scene) {
			s.srv.Refuse()
			require.NoError(s.t, s.srv.Disconnect(s.c.SessionID()))
			synctest.Wait()
			assert.Equal(s.t, locks.Uncertain, s.first.State())
			time.AfterFunc(100*time.Millisecond, s.srv.Accept)
		}, false},
		"connected again, not verified": {mutex, func(s scene) {
			s.srv.On(zktest.Match{Op: "multi"}, zktest.Delay(100*time.Millisecond))
			require.NoError(s.t, s.srv.Disconnect(s.c.SessionID()))
			synctest.Wait()
			require.NoError(s.t, s.c.BlockUntilConnected(s.t.Context()))
			time.Sleep(50 * time.Millisecond)
			assert.Equal(s.t, locks.Uncertain, s.first.State())
		}, false},
		"verified again": {mutex, func(s scene) {
			require.NoError(s.t, s.srv.Disconnect(s.c.SessionID()))
			synctest.Wait()
			require.NoError(s.t, s.c.BlockUntilConnected(s.t.Context()))
			time.Sleep(100 * time.Millisecond)
			assert.Equal(s.t, locks.Held, s.first.State())
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				first, err := tc.lock(c).Acquire(t.Context())
				require.NoError(t, err)
				node := func(h *locks.Hold) string {
					if members := h.Members(); len(members) > 0 {
						return members[0].Path()
					}
					return h.Path()
				}
				held := node(first)
				var next string
				var late bool
				wg := kit.InLine(t, 1, kit.Same(tc.lock(c)), func(_ int, h *locks.Hold) {
					next = node(h)
					late, _, _ = c.Exists(t.Context(), "/late")
					assert.Greater(t, h.FencingToken(), first.FencingToken())
				})
				tc.before(scene{t, srv, c, first})
				require.NoError(t, refusal(first.Release()))
				wg.Wait()
				assert.Equal(t, tc.shared, next == held, "%s, then %s", held, next)
				time.Sleep(time.Minute)
				kit.NothingLeft(t, srv)
				later, _, _ := c.Exists(t.Context(), "/late")
				assert.Equal(t, later, late, "nothing of a former holder is accepted")
			})
		})
	}
}

// refusal is nil for a release that goes on in the background.
func refusal(err error) error {
	if errors.Is(err, locks.ErrReleasePending) {
		return nil
	}
	return err
}

// With little time left the servers are asked, which gives more.
func TestNearDeadlineIsNotHandedOver(t *testing.T) {
	for waited, shared := range map[time.Duration]bool{20 * time.Second: true, 25 * time.Second: false} {
		t.Run(waited.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				h, err := locks.NewInterProcessMutex(other, "/l").Acquire(t.Context())
				require.NoError(t, err)
				var nodes []string
				wg := kit.InLine(t, 2, kit.Same(locks.NewInterProcessMutex(c, "/l")), func(_ int, h *locks.Hold) { nodes = append(nodes, h.Path()) })
				time.Sleep(waited) // of 30 seconds, and a waiter proves nothing
				require.NoError(t, h.Release())
				wg.Wait()
				require.Len(t, nodes, 2)
				assert.Equal(t, shared, nodes[0] == nodes[1], "%q", nodes)
			})
		})
	}
}

// A transaction of who has given the lock back is refused here, without asking
// the servers, which would apply it: the node is there.
func TestFormerHolderIsFencedLocally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l")
		first, err := m.Acquire(t.Context())
		require.NoError(t, err)
		node := first.Path()
		tx := first.Transaction()
		tx.Create("/stale", nil, framework.Persistent)
		done := make(chan struct{})
		wg := kit.InLine(t, 1, kit.Same(m), func(_ int, h *locks.Hold) {
			assert.Equal(t, node, h.Path(), "handed over")
			<-done
			mine := h.Transaction()
			mine.Create("/mine", nil, framework.Persistent)
			_, err := mine.Commit(t.Context())
			assert.NoError(t, err)
		})
		require.NoError(t, first.Release())
		before := srv.Requests()["multi"]
		for range 1000 {
			_, err = tx.Commit(t.Context())
			require.ErrorIs(t, err, locks.ErrReleased)
			_, err = tx.CommitAndRelease(t.Context())
			require.ErrorIs(t, err, locks.ErrReleased)
			require.Zero(t, first.FencingToken())
		}
		assert.Equal(t, before, srv.Requests()["multi"])
		close(done)
		wg.Wait()
		_, _, err = c.Get(t.Context(), "/stale")
		require.ErrorIs(t, err, framework.ErrNoNode)
		_, _, err = c.Get(t.Context(), "/mine")
		require.NoError(t, err)
	})
}

// Tokens that were shown rise from holder to holder, whoever asks.
func TestTokensInALocalQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l")
		h, err := m.Acquire(t.Context())
		require.NoError(t, err)
		var tokens []int64
		wg := kit.InLine(t, 60, kit.Same(m), func(i int, h *locks.Hold) {
			if i%3 == 0 {
				tokens = append(tokens, h.FencingToken())
				assert.Equal(t, tokens[len(tokens)-1], h.FencingToken())
			}
		})
		require.NoError(t, h.Release())
		wg.Wait()
		assert.Len(t, tokens, 20)
		assert.IsIncreasing(t, tokens)
	})
}

func TestLocalQueueAfterCommitAndRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l")
		h, err := m.Acquire(t.Context())
		require.NoError(t, err)
		taken := 0
		wg := kit.InLine(t, 3, kit.Same(m), func(int, *locks.Hold) { taken++ })
		tx := h.Transaction()
		tx.Create("/data", nil, framework.Persistent)
		_, err = tx.CommitAndRelease(t.Context())
		require.NoError(t, err)
		wg.Wait()
		assert.Equal(t, 3, taken)
		assert.Empty(t, srv.Ephemerals(0))
	})
}

func TestTryingInALocalQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l")
		h := kit.Hold(t, m)
		try := func(wait time.Duration) func() error {
			return func() error {
				_, err := m.TryAcquire(t.Context(), wait)
				require.ErrorIs(t, err, locks.ErrNotAcquired)
				return nil
			}
		}
		assert.Zero(t, kit.RoundTrips(t, try(0)), "held here: nobody is asked")
		assert.Equal(t, 100.0, kit.RoundTrips(t, try(100*2*d)), "no longer than asked")
		require.NoError(t, h.Release())

		theirs, err := locks.NewInterProcessMutex(other, "/l").Acquire(t.Context())
		require.NoError(t, err)
		wg := kit.InLine(t, 3, kit.Same(m), func(int, *locks.Hold) {})
		assert.Equal(t, 1.0, kit.RoundTrips(t, try(0)), "somebody here is asking: so do we")
		assert.Equal(t, 100.0, kit.RoundTrips(t, try(100*2*d)))
		srv.Freeze()
		began := time.Now()
		_, err = m.TryAcquire(t.Context(), time.Minute)
		require.ErrorIs(t, err, framework.ErrNotConnected, "nobody could be asked")
		assert.Equal(t, time.Minute, time.Since(began))
		srv.Thaw()
		_ = theirs.Release()
		wg.Wait()
	})
}

// A goroutine that gets the lock from another goroutine of the client finds the contexts
// of the earlier hold ended. So many that it takes some time to end them.
func TestContextsEndBeforeAHandover(t *testing.T) {
	t.Parallel()
	eachExclusive(t, func(t *testing.T, lock func(c *framework.Client, opts ...locks.Option) locks.Lock) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		for range 2 {
			h, err := lock(c).Acquire(t.Context())
			require.NoError(t, err)
			node := h.Path()
			all := make([]context.Context, 20_000)
			cancels := make([]context.CancelFunc, len(all))
			for i := range all {
				all[i], cancels[i] = context.WithCancel(h.Context())
			}
			var next sync.WaitGroup
			next.Go(func() {
				h, err := lock(c).Acquire(t.Context())
				ended := 0
				for _, ctx := range all {
					if ctx.Err() != nil {
						ended++
					}
				}
				assert.Len(t, all, ended)
				if assert.NoError(t, err) {
					assert.Equal(t, node, h.Path(), "handed over")
					assert.NoError(t, h.Release())
				}
			})
			synctest.Wait()
			require.NoError(t, h.Release())
			next.Wait()
			for _, cancel := range cancels {
				cancel()
			}
		}
	})
}
