package locks_test

import (
	"context"
	"fmt"
	"net"
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

// blocking is a context whose methods block between block and unblock, as those of
// a type of users may.
type blocking struct {
	context.Context
	method string // the one that blocks
	on     atomic.Bool
	gate   chan struct{}
	once   sync.Once
}

func newBlocking(ctx context.Context, method string) *blocking {
	return &blocking{Context: ctx, method: method, gate: make(chan struct{})}
}

func (b *blocking) block() { b.on.Store(true) }

func (b *blocking) unblock() { b.once.Do(func() { close(b.gate) }) }

func (b *blocking) called(method string) {
	if b.on.Load() && b.method == method {
		<-b.gate
	}
}

func (b *blocking) Done() <-chan struct{} { b.called("Done"); return b.Context.Done() }

func (b *blocking) Err() error { b.called("Err"); return b.Context.Err() }

func (b *blocking) Value(key any) any { b.called("Value"); return b.Context.Value(key) }

func (b *blocking) Deadline() (time.Time, bool) { b.called("Deadline"); return b.Context.Deadline() }

// eachBlocking runs a test for each method that can block.
func eachBlocking(t *testing.T, fn func(t *testing.T, ctx *blocking)) {
	for _, method := range []string{"Done", "Err", "Value", "Deadline"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, cancel := context.WithCancel(t.Context())
				defer cancel()
				ctx := newBlocking(parent, method)
				defer ctx.unblock()
				fn(t, ctx)
			})
		})
	}
}

// A context given to Acquire or Bind whose methods block delays no other hold's
// end, nor its own.
func TestBlockingContextAndALostSession(t *testing.T) {
	eachBlocking(t, func(t *testing.T, ctx *blocking) {
		srv := zktest.Start(t, zktest.InMemory())
		short := func(cfg *framework.Config) { cfg.SessionTimeout = 4 * time.Second }
		c, other := kit.Connect(t, srv, short), kit.Connect(t, srv)
		lock := func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessMutex(c, path) }
		odd, err := lock(c, "/odd").Acquire(ctx)
		require.NoError(t, err)
		plain, err := lock(c, "/plain").Acquire(t.Context())
		require.NoError(t, err)
		unasked, err := lock(c, "/unasked").Acquire(ctx)
		require.NoError(t, err)
		bound, cancel := plain.Bind(ctx)
		defer cancel()
		all := append(shown(t, odd), shown(t, plain)...)
		all = append(all, bound)
		var passed sync.WaitGroup
		for _, path := range []string{"/odd", "/plain"} {
			passed.Go(func() {
				h, err := lock(other, path).Acquire(t.Context())
				assertEnded(t, all, path)
				if assert.NoError(t, err) {
					assert.NoError(t, h.Release())
				}
			})
		}
		synctest.Wait()
		ctx.block()
		began := time.Now()
		srv.On(zktest.Match{Session: c.SessionID()}, zktest.Delay(time.Hour))
		for _, ctx := range all {
			<-ctx.Done()
		}
		assert.Less(t, time.Since(began), 4*time.Second)
		passed.Wait()
		ctx.unblock()
		require.ErrorIs(t, odd.Release(), locks.ErrLockLost)
		require.ErrorIs(t, plain.Release(), locks.ErrLockLost)
		require.ErrorIs(t, context.Cause(unasked.Context()), locks.ErrLockLost)
		require.ErrorIs(t, unasked.Release(), locks.ErrLockLost)
	})
}

// What ends one hold is read from the connection, and what comes behind it as well,
// although a context of that hold blocks.
func TestBlockingContextAndADeletedNode(t *testing.T) {
	eachBlocking(t, func(t *testing.T, ctx *blocking) {
		srv := zktest.Start(t, zktest.InMemory())
		c, operator := kit.Connect(t, srv), kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(ctx)
		require.NoError(t, err)
		all := shown(t, h)
		time.Sleep(time.Second) // so that its node is watched
		ctx.block()
		require.NoError(t, operator.Delete(t.Context(), h.Path(), framework.AnyVersion))
		synctest.Wait()
		assertEnded(t, all, "the node is gone")
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err = c.Get(limited, "/")
		require.NoError(t, err, "replies are read")
		ctx.unblock()
		require.ErrorIs(t, h.Release(), locks.ErrLockLost)
	})
}

// Nobody calls Release on a hold that is lost, and still its parent forgets it.
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
		assert.ErrorIs(t, h.Err(), locks.ErrLockLost)
		assert.Zero(t, parent.n.Load())
	})
}

// A release does not wait for the contexts of waiters in the local queue.
func TestBlockingContextInLine(t *testing.T) {
	eachBlocking(t, func(t *testing.T, ctx *blocking) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		m := locks.NewInterProcessMutex(c, "/l")
		first, err := m.Acquire(t.Context())
		require.NoError(t, err)
		var waiters sync.WaitGroup
		for _, waiting := range []context.Context{ctx, t.Context()} {
			waiters.Go(func() {
				h, err := m.Acquire(waiting)
				if assert.NoError(t, err) {
					assert.NoError(t, h.Release())
				}
			})
			synctest.Wait()
		}
		ctx.block()
		released := make(chan error, 1)
		go func() { released <- first.Release() }()
		select {
		case err := <-released:
			assert.NoError(t, err)
		case <-time.After(time.Second):
			assert.Fail(t, "it waits for somebody's context")
		}
		ctx.unblock()
		waiters.Wait()
	})
}

// The lock is given back before the methods of the context that it was acquired
// with are called.
func TestBlockingContextAndARelease(t *testing.T) {
	eachBlocking(t, func(t *testing.T, ctx *blocking) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(ctx)
		require.NoError(t, err)
		shown(t, h)
		ctx.block()
		released := make(chan error, 1)
		go func() { released <- h.Release() }()
		next, err := locks.NewInterProcessMutex(other, "/l").TryAcquire(t.Context(), time.Second)
		require.NoError(t, err)
		require.NoError(t, next.Release())
		ctx.unblock()
		require.NoError(t, <-released)
	})
}

// Close ends the session although a context blocks, and says that it does.
func TestBlockingContextAndClose(t *testing.T) {
	eachBlocking(t, func(t *testing.T, ctx *blocking) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(ctx)
		require.NoError(t, err)
		all := shown(t, h)
		srv.On(zktest.Match{Op: "closeSession"}, zktest.Call(func(zktest.Request) { assertEnded(t, all, "before the session") }))
		ctx.block()
		began := time.Now()
		err = c.Close()
		assert.LessOrEqual(t, time.Since(began), 3*time.Second)
		assert.Empty(t, srv.Sessions())
		select {
		case <-h.Gone():
		default:
			assert.Fail(t, "the servers were told")
		}
		if ctx.method == "Done" || ctx.method == "Value" { // which a context of package context calls as it ends
			require.ErrorContains(t, err, "does not return")
		} else {
			require.NoError(t, err)
		}
		ctx.unblock()
		require.ErrorIs(t, h.Release(), locks.ErrLockLost)
	})
}

// blockedConn is a connection of a user's dialer whose methods block between block
// and unblock.
type blockedConn struct {
	net.Conn
	by *blockedDialer
}

type blockedDialer struct {
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	deadlines bool // setting one blocks as well
	on        atomic.Bool
	gate      chan struct{}
	once      sync.Once
}

func (b *blockedDialer) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := b.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &blockedConn{nc, b}, nil
}

func (b *blockedDialer) unblock() { b.once.Do(func() { close(b.gate) }) }

func (c *blockedConn) Close() error {
	if c.by.on.Load() {
		<-c.by.gate
	}
	return c.Conn.Close()
}

func (c *blockedConn) SetDeadline(t time.Time) error {
	if c.by.on.Load() && c.by.deadlines {
		<-c.by.gate
	}
	return c.Conn.SetDeadline(t)
}

// eachBlockedConn runs a test with a client whose connections can block.
func eachBlockedConn(t *testing.T, fn func(t *testing.T, srv *zktest.Server, c *framework.Client, d *blockedDialer)) {
	for _, deadlines := range []bool{false, true} {
		t.Run(fmt.Sprintf("deadlines too: %v", deadlines), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				d := &blockedDialer{dial: srv.DialContext, deadlines: deadlines, gate: make(chan struct{})}
				c := kit.Connect(t, srv, func(cfg *framework.Config) {
					cfg.SessionTimeout, cfg.CloseTimeout, cfg.DialContext = 4*time.Second, time.Second, d.Dial
				})
				defer d.unblock()
				fn(t, srv, c, d)
			})
		})
	}
}

// A connection whose Close blocks delays no end of a hold.
func TestBlockingCloseAndALostSession(t *testing.T) {
	eachBlockedConn(t, func(t *testing.T, srv *zktest.Server, c *framework.Client, d *blockedDialer) {
		other := kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		all := shown(t, h)
		var passed sync.WaitGroup
		passed.Go(func() {
			next, err := locks.NewInterProcessMutex(other, "/l").Acquire(t.Context())
			assertEnded(t, all, "granted")
			if assert.NoError(t, err) {
				assert.NoError(t, next.Release())
			}
		})
		synctest.Wait()
		d.on.Store(true)
		stalled := srv.On(zktest.Match{Session: c.SessionID()}, zktest.Delay(time.Hour))
		began := time.Now()
		<-h.Context().Done()
		assert.Less(t, time.Since(began), 4*time.Second)
		passed.Wait()
		stalled.Remove()
		if !d.deadlines { // otherwise nothing can end the reading
			limited, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			_, _, err = c.Get(limited, "/")
			require.NoError(t, err, "connected again, although the connection before is not closed")
		}
		d.unblock()
		require.ErrorIs(t, h.Release(), locks.ErrLockLost)
	})
}

// The next connection does not wait until the one before is closed.
func TestBlockingCloseAndTheNextConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(2*time.Millisecond))
		d := &blockedDialer{dial: srv.DialContext, gate: make(chan struct{})}
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.SessionTimeout, cfg.DialContext = 4*time.Second, d.Dial })
		defer d.unblock()
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		d.on.Store(true)
		unrenewed := srv.On(zktest.Match{Op: "multi", Session: c.SessionID()}, zktest.Fail(-127))
		<-h.Context().Done()
		unrenewed.Remove()
		limited, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, _, err = c.Get(limited, "/")
		require.NoError(t, err)
		require.ErrorIs(t, h.Release(), locks.ErrLockLost)
	})
}

// A client with such a connection can be closed, and says that it does not end.
func TestBlockingCloseAndClose(t *testing.T) {
	eachBlockedConn(t, func(t *testing.T, srv *zktest.Server, c *framework.Client, d *blockedDialer) {
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		all := shown(t, h)
		looked := endedWhenGiven(t, srv, c.SessionID(), all)
		d.on.Store(true)
		began := time.Now()
		err = c.Close()
		assert.LessOrEqual(t, time.Since(began), 4*time.Second)
		require.ErrorContains(t, err, "does not")
		assert.Equal(t, int32(1), looked.Load())
		assert.Empty(t, srv.Sessions())
		d.unblock()
		synctest.Wait()
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
