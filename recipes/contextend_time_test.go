package recipes_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes"
	zktest "github.com/paddock-zk/paddock/testing"
)

// allShown are contexts of a hold and of its members.
func allShown(t *testing.T, h *recipes.Hold) []context.Context {
	t.Helper()
	all := shown(t, h)
	for _, m := range h.Members() {
		all = append(all, allShown(t, m)...)
	}
	return all
}

// endedWhenGiven lets contexts be looked at when the servers have the first request
// that deletes nodes of a session. It returns how often they were.
func endedWhenGiven(t *testing.T, srv *zktest.Server, session int64, all []context.Context) (looked *int) {
	t.Helper()
	looked = new(int)
	giving := func(r zktest.Request) bool { return r.Op == "delete" || r.Op == "multi" || r.Op == "closeSession" }
	srv.On(zktest.Match{Session: session, Func: giving, Nth: 1}, zktest.Call(func(r zktest.Request) {
		*looked++
		assertEnded(t, all, r.Op)
	}))
	return looked
}

// When the servers hear that a lock is given back, the contexts of the hold have
// ended, with whatever is below them.
func TestContextsEndBeforeTheLockIsGivenBack(t *testing.T) {
	for name, lock := range swept {
		for way, give := range map[string]func(c *framework.Client, h *recipes.Hold) error{
			"release": func(_ *framework.Client, h *recipes.Hold) error { return h.Release() },
			"close":   func(c *framework.Client, _ *recipes.Hold) error { return c.Close() },
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory())
					c := connect(t, srv)
					h, err := lock(c).Acquire(t.Context())
					require.NoError(t, err)
					looked := endedWhenGiven(t, srv, c.SessionID(), allShown(t, h))
					require.NoError(t, give(c, h))
					assert.Equal(t, 1, *looked)
				})
			})
		}
	}
}

// The reply to a release may be late: who has it next finds the contexts of the
// hold before ended.
func TestContextsEndAlthoughTheReplyIsLate(t *testing.T) {
	for name, lock := range swept {
		if name == "read" {
			continue // others may read beside it
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(5*time.Millisecond))
				c, other := connect(t, srv), connect(t, srv)
				h, err := lock(c).Acquire(t.Context())
				require.NoError(t, err)
				all := allShown(t, h)
				granted := make(chan struct{})
				go func() {
					defer close(granted)
					next, err := lock(other).Acquire(t.Context())
					assertEnded(t, all, "granted to another client")
					if assert.NoError(t, err) {
						assert.NoError(t, next.Release())
					}
				}()
				time.Sleep(time.Second)
				srv.Stall(c.SessionID(), zktest.ToClient)
				require.ErrorIs(t, h.Release(), recipes.ErrReleasePending)
				<-granted
				srv.Unstall(c.SessionID())
			})
		})
	}
}

// A member that is released early is over by itself; the rest goes on.
func TestContextsOfAMemberEndBeforeItIsGivenBack(t *testing.T) {
	for _, name := range []string{"semaphore", "multi"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := connect(t, srv)
				h, err := swept[name](c).Acquire(t.Context())
				require.NoError(t, err)
				first := h.Members()[0]
				looked := endedWhenGiven(t, srv, c.SessionID(), allShown(t, first))
				require.NoError(t, first.Release())
				assert.Equal(t, 1, *looked)
				require.NoError(t, h.Context().Err())
				require.NoError(t, h.Members()[1].Context().Err())
				looked = endedWhenGiven(t, srv, c.SessionID(), allShown(t, h))
				require.NoError(t, h.Release())
				assert.Equal(t, 1, *looked)
			})
		})
	}
}

// The same for locks of users, alone and beside ours.
func TestContextsOfALockOfYours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		var all []context.Context
		released := 0
		theirs := whatever(func(time.Duration) (*recipes.Hold, error) {
			h, _ := recipes.NewHold(t.Context(), func() error {
				released++
				assertEnded(t, all, "a lock of yours")
				return nil
			})
			return h, nil
		})
		for _, lock := range []recipes.Lock{theirs, recipes.NewInterProcessMultiLock(theirs, recipes.NewInterProcessMutex(c, "/m"))} {
			h, err := lock.Acquire(t.Context())
			require.NoError(t, err)
			all = shown(t, h)
			if members := h.Members(); len(members) > 0 {
				all = append(all, shown(t, members[len(members)-1])...)
			}
			require.NoError(t, h.Release())
		}
		assert.Equal(t, 2, released)
	})
}

// Of holds that share a lock by re-entry, all contexts have ended when the last of
// them gives it back, in whatever order they are released.
func TestContextsOfReenteredHolds(t *testing.T) {
	for _, outerFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory())
			c := connect(t, srv)
			m := recipes.NewInterProcessMutex(c, "/l")
			outer, err := m.Acquire(t.Context())
			require.NoError(t, err)
			bound, cancel := outer.Bind(t.Context())
			defer cancel()
			inner, err := m.Acquire(bound)
			require.NoError(t, err)
			looked := endedWhenGiven(t, srv, c.SessionID(), append(shown(t, outer), shown(t, inner)...))
			first, last := inner, outer
			if outerFirst {
				first, last = outer, inner
			}
			require.NoError(t, first.Release())
			assert.Zero(t, *looked)
			require.NoError(t, last.Context().Err())
			require.NoError(t, last.Release())
			assert.Equal(t, 1, *looked)
		})
	}
}

// A hold under which another lock is held keeps its context for as long as that
// lasts.
func TestContextGoesOnForTheHoldsBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		outer, err := recipes.NewInterProcessMutex(c, "/a").Acquire(t.Context())
		require.NoError(t, err)
		inner, err := recipes.NewInterProcessMutex(c, "/b").Acquire(outer.Context())
		require.NoError(t, err)
		require.NoError(t, outer.Release())
		require.NoError(t, outer.Context().Err())
		require.NoError(t, inner.Context().Err())
		looked := endedWhenGiven(t, srv, c.SessionID(), append(shown(t, outer), shown(t, inner)...))
		require.NoError(t, inner.Release())
		assert.Equal(t, 1, *looked)
	})
}

// Who is handed the lock by another goroutine of the client finds the contexts of
// the hold before ended. So many that it takes some time to end them.
func TestContextsEndBeforeAHandover(t *testing.T) {
	eachExclusive(t, func(t *testing.T, lock func(c *framework.Client, opts ...recipes.Option) recipes.Lock) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connect(t, srv)
		for range 10 {
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
