package acquire_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// Everybody in a full queue has the lock half a round trip after
// the servers have applied the release before, however short it was held.
func TestLookAheadHandsOffInHalfARoundTrip(t *testing.T) {
	for _, held := range []time.Duration{0, 1, d / 2, d, 2 * d, 5 * d, time.Second} {
		t.Run(held.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				const clients = 8
				var released time.Time
				var waits []time.Duration
				done := make(chan bool)
				for i := range clients {
					m := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l")
					go func() {
						h, err := m.Acquire(t.Context())
						assert.NoError(t, err)
						if i > 0 {
							waits = append(waits, time.Since(released.Add(d)))
							time.Sleep(held)
						} else {
							time.Sleep(5 * time.Second) // until all have queued
						}
						released = time.Now()
						assert.NoError(t, h.Release())
						done <- true
					}()
					time.Sleep(10 * d)
				}
				for range clients {
					<-done
				}
				assert.Equal(t, slices.Repeat([]time.Duration{d}, clients-1), waits)
				synctest.Wait()
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// A writer that takes the read side before it goes leaves a node right behind its
// own, that no list has shown to who waits for it.
func TestLookAheadBehindADowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		first := locks.NewInterProcessReadWriteLock(kit.Connect(t, srv), "/l")
		write, err := first.WriteLock().Acquire(t.Context())
		require.NoError(t, err)
		got := kit.Acquire(t, locks.NewInterProcessReadWriteLock(kit.Connect(t, srv), "/l").WriteLock())
		time.Sleep(time.Second)
		read, err := first.ReadLock().Acquire(write.Context())
		require.NoError(t, err)
		require.NoError(t, write.Release())
		time.Sleep(time.Second)
		assert.True(t, got.Pending(), "the reader has it")
		require.NoError(t, read.Release())
		require.NoError(t, got.Soon().Release())
	})
}

// nextOwner waits behind a holder, at the second place.
type nextOwner struct {
	srv    *zktest.Server
	holder *locks.Hold
	client *framework.Client // the next owner's
	node   string            // the next owner's
	other  *framework.Client
}

// Each condition for having the lock without a look is missing once; the next owner
// has to look then. The last resort is always a list.
func TestNextOwnerLooksWhenInDoubt(t *testing.T) {
	release := func(t *testing.T, h *nextOwner) { require.NoError(t, h.holder.Release()) }
	for name, tc := range map[string]struct {
		own    bool // the holder is of the next owner's session
		meddle func(t *testing.T, h *nextOwner)
		lists  int
	}{
		"nothing":  {false, release, 0},
		"own head": {true, release, 1},
		"written to the head": {false, func(t *testing.T, h *nextOwner) {
			writeTo(t, h.other, h.holder.Path())
			time.Sleep(time.Second)
			release(t, h)
		}, 1},
		"written to its own node": {false, func(t *testing.T, h *nextOwner) {
			writeTo(t, h.other, h.node)
			time.Sleep(time.Second)
			release(t, h)
		}, 1},
		"own node deleted before": {false, func(t *testing.T, h *nextOwner) {
			require.NoError(t, h.other.Delete(t.Context(), h.node, framework.AnyVersion))
			release(t, h)
		}, 2}, // not there any more, and the new place
		"own node deleted together": {false, func(t *testing.T, h *nextOwner) {
			tx := h.other.Transaction()
			tx.Delete(h.node, framework.AnyVersion)
			tx.Delete(h.holder.Path(), framework.AnyVersion)
			_, err := tx.Commit(t.Context())
			require.NoError(t, err)
		}, 2},
		"cut": {false, func(t *testing.T, h *nextOwner) {
			require.NoError(t, h.srv.Disconnect(h.client.SessionID()))
			release(t, h)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &nextOwner{srv: zktest.Start(t, zktest.InMemory(), zktest.Latency(d))}
				h.client, h.other = kit.Connect(t, h.srv), kit.Connect(t, h.srv)
				by := h.other
				if tc.own {
					by = h.client
				}
				var err error
				h.holder, err = locks.NewInterProcessMutex(by, "/l", locks.ReleaseWait(time.Minute)).Acquire(t.Context())
				require.NoError(t, err)
				got := kit.Acquire(t, locks.NewInterProcessMutex(h.client, "/l"))
				time.Sleep(time.Second)
				for _, name := range kit.Children(t, h.other, "/l") {
					if !strings.HasSuffix(h.holder.Path(), name) {
						h.node = "/l/" + name
					}
				}
				before := h.srv.Requests()["getChildren"]
				tc.meddle(t, h)
				hold := got.Soon()
				assert.Equal(t, tc.lists, h.srv.Requests()["getChildren"]-before, "lists")
				time.Sleep(time.Second)
				assert.Equal(t, locks.Held, hold.State())
				require.NoError(t, hold.Release())
				time.Sleep(time.Second)
				kit.NothingLeft(t, h.srv)
			})
		})
	}
}

// Waiters that give up, and holders of any length: nobody is forgotten, and there are never two.
func TestLookAheadWithWaitersThatGiveUp(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Seed(seed), zktest.LatencyBy(zktest.Uniform(d/10, d)))
				const clients, each = 8, 40
				var inside atomic.Int32
				done := make(chan bool)
				for i := range clients {
					m := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l")
					go func() {
						defer func() { done <- true }()
						for n := range each {
							ctx, cancel := context.Background(), func() {}
							if (i+n)%4 == 0 {
								ctx, cancel = context.WithTimeout(ctx, time.Duration(n)*d)
							}
							h, err := m.Acquire(ctx)
							cancel()
							if err != nil {
								assert.ErrorIs(t, err, context.DeadlineExceeded)
								continue
							}
							assert.EqualValues(t, 1, inside.Add(1))
							time.Sleep(time.Duration((i*n)%7) * d)
							inside.Add(-1)
							assert.NoError(t, h.Release())
						}
					}()
				}
				for range clients {
					<-done
				}
				time.Sleep(time.Minute)
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// The event comes right behind the reply that says that its watch stands.
func TestEventRightBehindTheReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		holder, operator, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
		for range 100 {
			h, err := locks.NewInterProcessMutex(holder, "/l").Acquire(t.Context())
			require.NoError(t, err)
			a := kit.Acquire(t, kit.MutexAt("/l")(c))
			time.Sleep(2 * time.Millisecond) // it has the list, and asks for the watch
			// Both requests reach the server at one time.
			require.NoError(t, operator.Delete(t.Context(), h.Path(), 0))
			require.NoError(t, a.Soon().Release())
		}
	})
}

// After a wait that was longer than what the creation of its node has proved, a
// write comes on top (TestHandOffProvesTheSession).
func TestRoundTripsOfHandOff(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*framework.Config)
		waited time.Duration
	}{
		"by quorum": {func(*framework.Config) {}, 20 * time.Second},
		"by server": {kit.ByServer, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				a, b := kit.Connect(t, srv), kit.Connect(t, srv, tc.change)
				h, err := locks.NewInterProcessMutex(a, "/l").Acquire(t.Context())
				require.NoError(t, err)
				got := make(chan time.Time)
				go func() {
					_, err := locks.NewInterProcessMutex(b, "/l").Acquire(t.Context())
					assert.NoError(t, err)
					got <- time.Now()
				}()
				time.Sleep(tc.waited)
				began := time.Now()
				require.NoError(t, h.Release())
				applied := began.Add(d) // the delete reaches the server
				assert.Equal(t, d, (<-got).Sub(applied), "the event")
			})
		})
	}
}

// A release wakes two at most: who is next has the lock by the event alone, and who is
// next then lists.
func TestWakeUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 40
		srv := zktest.Start(t, zktest.InMemory())
		holder := kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(holder, "/l").Acquire(t.Context())
		require.NoError(t, err)
		got := make(chan *locks.Hold)
		for range waiters {
			c := kit.Connect(t, srv)
			go func() {
				h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				assert.NoError(t, err)
				got <- h
			}()
			synctest.Wait()
		}
		assert.Len(t, srv.Watches(), waiters+1, "one each, and the next one on its own node")
		for i := range waiters {
			before, told := srv.Requests(), srv.Counters().Notifications
			require.NoError(t, h.Release())
			h = <-got
			synctest.Wait()
			looks := min(waiters-1-i, 1)
			assert.Equal(t, looks, srv.Requests()["getChildren"]-before["getChildren"], "lists")
			assert.EqualValues(t, 1+looks+min(i, 1), srv.Counters().Notifications-told, "events, one of them of its own node")
		}
		require.NoError(t, h.Release())
		assert.Empty(t, srv.Watches())
	})
}

// What a lock costs the servers that goes round among clients which always want it.
func TestRequestsOfAHandOff(t *testing.T) {
	for clients, want := range map[int]struct{ requests, events int64 }{
		2: {5, 2}, // create, list, watch two nodes, delete; the next one and the former owner hear of that
		3: {7, 3}, // and watch once more, and list; the one behind hears too
		8: {7, 3},
	} {
		t.Run(fmt.Sprint(clients), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				var over atomic.Bool
				var handOffs atomic.Int64
				var wg sync.WaitGroup
				for range clients {
					m := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l")
					wg.Go(func() {
						for !over.Load() {
							h, err := m.Acquire(t.Context())
							if !assert.NoError(t, err) {
								return
							}
							time.Sleep(5 * d) // so that the others have queued
							assert.NoError(t, h.Release())
							handOffs.Add(1)
						}
					})
				}
				time.Sleep(time.Second)
				before, from := srv.Counters(), handOffs.Load()
				time.Sleep(10 * time.Second)
				after, n := srv.Counters(), handOffs.Load()-from
				over.Store(true)
				wg.Wait()
				others := int64(clients * 10) // renewals of the lease
				assert.Greater(t, n, int64(100))
				assert.InDelta(t, want.requests*n, after.Received-before.Received, float64(others))
				assert.InDelta(t, want.events*n, after.Notifications-before.Notifications, 3)
			})
		})
	}
}

// Who is next hears when its own node is deleted, however short before its turn.
func TestNodeDeletedBeforeItsTurn(t *testing.T) {
	for _, next := range []time.Duration{0, d, 13 * d, time.Hour} {
		t.Run(next.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				first := kit.Hold(t, mutexOf(other))
				a := kit.Acquire(t, mutexOf(c))
				time.Sleep(4*d + next)
				require.NoError(t, other.Delete(t.Context(), srv.Ephemerals(c.SessionID())[0], framework.AnyVersion))
				require.NoError(t, first.Release())
				h := a.Soon()
				time.Sleep(time.Second)
				assert.Equal(t, locks.Held, h.State(), "it has queued again")
				require.NoError(t, h.Release())
				time.Sleep(time.Second)
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// next is one who waits second in a queue.
type next struct {
	t        *testing.T
	srv      *zktest.Server
	c, other *framework.Client
	first    *locks.Hold
	waits    string // our node
}

var mutexOf, readOf, writeOf = kit.MutexAt("/l"), kit.ReadAt("/l"), kit.WriteAt("/l")

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
			writeTo(n.t, n.other, n.waits)
			time.Sleep(time.Second)
		}, 1},
		"node ahead written to": {mutexOf, mutexOf, func(n *next) {
			writeTo(n.t, n.other, n.first.Path())
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
		wg := kit.InLine(t, 1, kit.Same(mutexOf(kit.Connect(t, srv))), func(int, *locks.Hold) {
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
		wg := kit.InLine(t, 1, kit.Same(writeOf(c)), func(int, *locks.Hold) { assert.Equal(t, locks.Released, read.State()) })
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
		wg := kit.InLine(t, 1, kit.Same(m), func(_ int, h *locks.Hold) {
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
		wg := kit.InLine(t, 1, kit.Same(mutexOf(c)), func(int, *locks.Hold) { got = time.Now() })
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

// writeTo writes to a node of somebody else's.
func writeTo(t *testing.T, c *framework.Client, node string) {
	t.Helper()
	_, err := c.Set(t.Context(), node, []byte("x"), framework.AnyVersion)
	require.NoError(t, err)
}
