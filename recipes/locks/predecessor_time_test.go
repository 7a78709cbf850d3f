package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A waiter is woken, and its node goes while a write proves the session.
func TestNodeGoesWhileItIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		holder, operator, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(holder, "/l").Acquire(t.Context())
		require.NoError(t, err)
		a := kit.Acquire(t, mutexAt("/l")(c))
		require.True(t, a.Waits())
		time.Sleep(time.Minute) // what its creation has proved is over
		removed := srv.On(zktest.Match{Op: "multi", Session: c.SessionID(), Nth: 1}, zktest.Call(func(r zktest.Request) {
			assert.NoError(t, operator.Delete(t.Context(), r.Path, 0))
		}))
		require.NoError(t, h.Release())
		h = a.Soon()
		assert.Equal(t, 1, removed.Fired())
		standsOn(t, operator, h, c.SessionID())
		require.NoError(t, h.Release())
	})
}

// The one ahead is another waiter, and gives up.
func TestNodeAheadIsNotTheHolder(t *testing.T) {
	for name, lock := range swept {
		if name == "read" { // readers do not wait for each other
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				holder, ahead, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				h, err := lock(holder).Acquire(t.Context())
				require.NoError(t, err)
				if name == "downgrade" {
					require.NoError(t, h.Release())
					h, err = locks.NewInterProcessReadWriteLock(holder, "/l/rw").WriteLock().Acquire(t.Context())
					require.NoError(t, err)
				}
				ctx, giveUp := context.WithCancel(t.Context())
				go func() { _, _ = lock(ahead).Acquire(ctx) }()
				synctest.Wait()
				a := kit.Acquire(t, lock(c))
				require.True(t, a.Waits())
				giveUp()
				require.True(t, a.Waits(), "the holder holds")
				require.NoError(t, h.Release())
				require.NoError(t, a.Soon().Release())
			})
		})
	}
}

// The node ahead goes after we have seen it and before we watch it.
func TestNodeAheadGoesBeforeItIsWatched(t *testing.T) {
	for name, q := range queues {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				holder, operator, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				_, err := q.lock(holder).Acquire(t.Context())
				require.NoError(t, err)
				srv.On(zktest.Match{Op: "getData", Session: c.SessionID()}, zktest.Call(func(r zktest.Request) {
					_ = operator.Delete(t.Context(), r.Path, 0)
				}))
				h := kit.Acquire(t, q.lock(c)).Soon()
				require.NoError(t, h.Release())
				synctest.Wait()
				assert.Empty(t, srv.Watches())
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
			a := kit.Acquire(t, mutexAt("/l")(c))
			time.Sleep(2 * time.Millisecond) // it has the list, and asks for the watch
			// Both requests reach the server at one time.
			require.NoError(t, operator.Delete(t.Context(), h.Path(), 0))
			require.NoError(t, a.Soon().Release())
		}
	})
}

func TestReadersWaitForTheLastWriterAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		writer, reader := kit.Connect(t, srv), kit.Connect(t, srv)
		var writers []<-chan *locks.Hold
		acquire := func(m *locks.InterProcessMutex) <-chan *locks.Hold {
			got := make(chan *locks.Hold, 1)
			go func() {
				h, err := m.Acquire(t.Context())
				assert.NoError(t, err)
				got <- h
			}()
			synctest.Wait()
			return got
		}
		for range 3 {
			writers = append(writers, acquire(locks.NewInterProcessReadWriteLock(writer, "/l", locks.LocalHandovers(0)).WriteLock()))
		}
		one := acquire(locks.NewInterProcessReadWriteLock(reader, "/l").ReadLock())
		two := acquire(locks.NewInterProcessReadWriteLock(reader, "/l").ReadLock())
		for i, w := range writers {
			before := srv.Requests()["getChildren"]
			require.NoError(t, (<-w).Release())
			synctest.Wait()
			// The next writer looks once; the readers only after the last one.
			want := 1
			if i == len(writers)-1 {
				want = 2
			}
			assert.Equal(t, want, srv.Requests()["getChildren"]-before, "writer %d", i)
		}
		require.NoError(t, (<-one).Release())
		require.NoError(t, (<-two).Release())
		assert.Empty(t, srv.Watches())
	})
}

func TestNodesAreWatchedOnlyWhenTheyLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l")
		for range 100 {
			require.NoError(t, locks.Do(t.Context(), m, func(context.Context) error {
				time.Sleep(time.Millisecond)
				return nil
			}))
		}
		assert.Zero(t, srv.Requests()["getData"], "short holds cost nothing")
		h, err := m.Acquire(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		assert.Len(t, srv.Watches(), 1)
		require.NoError(t, h.Release())
		synctest.Wait()
		kit.NothingLeft(t, srv)
	})
}
