package locks_test

import (
	"context"
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

// registering counts who wants to be told of a context's end.
type registering struct {
	context.Context
	n atomic.Int32
}

func (*registering) Value(any) any { return nil }

func (c *registering) AfterFunc(fn func()) func() bool {
	c.n.Add(1)
	stop := context.AfterFunc(c.Context, fn)
	return func() bool {
		c.n.Add(-1)
		return stop()
	}
}

// A parent forgets the contexts of a lost MultiLock and of its members once it is released.
func TestParentForgetsContextsOfALostHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, operator := kit.Connect(t, srv), kit.Connect(t, srv)
		parent := &registering{Context: t.Context()}
		h, err := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b")).Acquire(parent)
		require.NoError(t, err)
		h.Context()
		_, cancel := h.Bind(parent)
		defer cancel()
		h.Members()[0].Context()
		assert.Positive(t, parent.n.Load())
		time.Sleep(time.Second) // so that its nodes are watched
		require.NoError(t, operator.Delete(t.Context(), h.Members()[0].Path(), framework.AnyVersion))
		synctest.Wait()
		require.ErrorIs(t, h.Release(), locks.ErrLockLost)
		synctest.Wait()
		assert.Zero(t, parent.n.Load())
	})
}

// A listener that blocks or panics delays nobody either.
func TestBlockingListenerAndALostSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		short := func(cfg *framework.Config) { cfg.SessionTimeout = 4 * time.Second }
		c := kit.Connect(t, srv, short)
		gate := make(chan struct{})
		var all []context.Context
		var holds []*locks.Hold
		for _, path := range []string{"/a", "/b"} {
			h, err := locks.NewInterProcessMutex(c, path).Acquire(t.Context())
			require.NoError(t, err)
			h.Listen(func(s locks.HoldState) {
				if s == locks.Lost {
					<-gate
				}
			})
			h.Listen(func(locks.HoldState) { panic("a listener's") })
			context.AfterFunc(h.Context(), func() { <-gate })
			all = append(all, shown(t, h)...)
			holds = append(holds, h)
		}
		srv.On(zktest.Match{Session: c.SessionID()}, zktest.Delay(time.Hour))
		began := time.Now()
		for _, ctx := range all {
			<-ctx.Done()
		}
		assert.Less(t, time.Since(began), 4*time.Second)
		for _, h := range holds {
			require.ErrorIs(t, h.Release(), locks.ErrLockLost)
		}
		close(gate)
	})
}
