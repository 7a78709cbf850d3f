package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// kind is a lock for one owner at a time, in all its forms.
type kind struct {
	name      string
	with      func(c *client, path string, opts ...locks.Option) locks.Lock
	queues    []string // where its nodes stand, below its path
	reentrant bool
}

// request is the n-th of one kind.
type request struct {
	op wire.Op
	n  int
}

// creation and deletion are the requests that make and delete the nodes of a
// lock that is free.
func (k kind) creation() request {
	if k.name == "multi" || k.name == "semaphore-mutex" {
		return request{wire.OpMulti, 1}
	}
	return request{wire.OpCreate2, 1}
}

func (k kind) deletion() request {
	if k.name == "multi" {
		return request{wire.OpMulti, 2}
	}
	return request{wire.OpDelete, 1}
}

var exclusive = []kind{
	{"mutex", func(c *client, path string, opts ...locks.Option) locks.Lock {
		return locks.NewInterProcessMutex(c.Client, path, opts...)
	}, []string{""}, true},
	{"write", func(c *client, path string, opts ...locks.Option) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c.Client, path, opts...).WriteLock()
	}, []string{""}, true},
	{"semaphore-mutex", func(c *client, path string, opts ...locks.Option) locks.Lock {
		return locks.NewInterProcessSemaphoreMutex(c.Client, path, opts...)
	}, []string{"/locks", "/leases"}, false},
	{"multi", func(c *client, path string, opts ...locks.Option) locks.Lock {
		return locks.NewInterProcessMultiLock(
			locks.NewInterProcessMutex(c.Client, path+"/b", opts...),
			locks.NewInterProcessMutex(c.Client, path+"/a", opts...))
	}, []string{"/a", "/b"}, true},
}

// make makes a lock whose Release waits for as long as a busy ensemble needs.
func (k kind) make(c *client, path string, opts ...locks.Option) locks.Lock {
	return k.with(c, path, append([]locks.Option{locks.ReleaseWait(patience)}, opts...)...)
}

func (k kind) paths(path string) []string {
	var all []string
	for _, q := range k.queues {
		all = append(all, path+q)
	}
	return all
}

// each runs a part of a case for every kind of exclusive lock.
func each(e *env, fn func(k kind, path string)) {
	for _, k := range exclusive {
		path := "/" + k.name
		fn(k, path)
		e.empties(k.paths(path)...)
	}
}

// queued waits until n nodes stand below a path.
func (e *env) queued(path string, n int) {
	e.Helper()
	kit.Eventually(e, fmt.Sprintf("%d nodes below %s", n, path), func() error {
		if names := e.children(path); len(names) != n {
			return fmt.Errorf("%q", names)
		}
		return nil
	})
}

// taken waits until a lock that was just acquired stands as it will: who got a
// lease gives its turn up in the background. It returns how many nodes are left
// where waiters line up.
func (e *env) taken(k kind, path string) int {
	e.Helper()
	n := 1
	if k.name == "semaphore-mutex" {
		n = 0 // the holder has a lease and no place in the queue
	}
	e.queued(path+k.queues[0], n)
	return n
}

func lockExcludes(e *env) {
	clients := []*client{e.client(), e.client(), e.client(), e.client()}
	each(e, func(k kind, path string) {
		var inside, peak, rounds atomic.Int32
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				lock := k.make(clients[i%4], path)
				for range 10 {
					err := locks.Do(e.soon(), lock, func(context.Context) error {
						if n := inside.Add(1); n > peak.Load() {
							peak.Store(n)
						}
						rounds.Add(1)
						inside.Add(-1)
						return nil
					})
					if !assert.NoError(e, err, k.name) {
						return
					}
				}
			})
		}
		wg.Wait()
		assert.Equal(e, int32(1), peak.Load(), "%s: never two inside", k.name)
		assert.Equal(e, int32(80), rounds.Load())
	})
}

func lockInOrder(e *env) {
	holder := e.client()
	others := []*client{e.client(), e.client(), e.client(), e.client(), e.client()}
	each(e, func(k kind, path string) {
		h, err := k.make(holder, path).Acquire(e.soon())
		require.NoError(e, err)
		ahead := e.taken(k, path)
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i, c := range others {
			wg.Go(func() {
				assert.NoError(e, locks.Do(e.soon(), k.make(c, path), func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
					return nil
				}))
			})
			e.queued(path+k.queues[0], ahead+i+1)
		}
		require.NoError(e, h.Release())
		wg.Wait()
		assert.Equal(e, []int{0, 1, 2, 3, 4}, order, "%s: in the order in which they came", k.name)
	})
}

func lockReentry(e *env) {
	c := e.client()
	each(e, func(k kind, path string) {
		lock := k.make(c, path)
		outer, err := lock.Acquire(e.soon())
		require.NoError(e, err)
		before := c.net.Requests()
		inner, err := k.make(c, path).Acquire(outer.Context()) // another object for the same path
		if !k.reentrant {
			require.ErrorIs(e, err, locks.ErrDeadlock)
			_, err = lock.TryAcquire(outer.Context(), time.Second)
			require.ErrorIs(e, err, locks.ErrDeadlock)
			require.NoError(e, outer.Release())
			return
		}
		require.NoError(e, err)
		third, err := lock.TryAcquire(inner.Context(), 0)
		require.NoError(e, err)
		assert.Equal(e, before[k.creation().op], c.net.Requests()[k.creation().op], "no request")

		require.NoError(e, outer.Release(), "in any order")
		assert.NoError(e, inner.Context().Err())
		require.ErrorIs(e, context.Cause(outer.Context()), locks.ErrReleased)
		_, err = k.make(e.client(), path).TryAcquire(e.soon(), 0)
		require.ErrorIs(e, err, locks.ErrNotAcquired, "still held")
		require.NoError(e, third.Release())
		require.NoError(e, inner.Release())
		require.ErrorIs(e, context.Cause(inner.Context()), locks.ErrReleased)
		require.ErrorIs(e, inner.Release(), locks.ErrReleased)
		assert.Equal(e, locks.Released, inner.State())
		assert.Zero(e, inner.FencingToken())
	})
}

func lockTwoGoroutines(e *env) {
	c := e.client()
	each(e, func(k kind, path string) {
		lock := k.make(c, path)
		h, err := lock.Acquire(e.soon())
		require.NoError(e, err)
		e.refused(lock, 50*time.Millisecond) // the same object and goroutine, another owner
		next := kit.Acquire(e, lock)
		require.NoError(e, h.Release())
		require.NoError(e, next.Soon().Release())
	})
}

func lockTry(e *env) {
	holder, other := e.client(), e.client()
	each(e, func(k kind, path string) {
		h, err := k.make(other, path).TryAcquire(e.soon(), 0)
		require.NoError(e, err, "free")
		require.NoError(e, h.Release())
		h, err = k.make(holder, path).Acquire(e.soon())
		require.NoError(e, err)
		before := other.current().net.Requests()
		for _, wait := range []time.Duration{-time.Second, 0, time.Nanosecond} {
			got, err := k.make(other, path).TryAcquire(e.soon(), wait)
			require.Error(e, err)
			assert.Nil(e, got)
			if wait != time.Nanosecond { // too short to ask anybody
				require.ErrorIs(e, err, locks.ErrNotAcquired, "%v", wait)
				require.NotErrorIs(e, err, framework.ErrNotConnected)
			}
			require.NotErrorIs(e, err, context.DeadlineExceeded, "the caller's context has not ended")
			if wait <= 0 {
				assert.Equal(e, before[k.creation().op], other.net.Requests()[k.creation().op], "no place in the queue")
			}
		}
		e.refused(k.make(other, path), 30*time.Millisecond)
		ctx, cancel := context.WithTimeoutCause(e.Context(), 30*time.Millisecond, locks.ErrNotAcquired)
		_, err = k.make(other, path).Acquire(ctx)
		cancel()
		require.ErrorIs(e, err, context.DeadlineExceeded)
		require.NotErrorIs(e, err, locks.ErrNotAcquired, "though the cause is")
		kit.Eventually(e, "those who gave up have left", func() error {
			for _, q := range k.paths(path) {
				if n := len(e.children(q)); n > 1 {
					return fmt.Errorf("%d in %s", n, q)
				}
			}
			return nil
		})
		waiting := k.make(other, path)
		got := kit.Begin(e, func() (*locks.Hold, error) { return waiting.TryAcquire(e.soon(), patience) })
		kit.Until(e, "it waits", func() bool { return len(e.b.watches(e, e.chroot+path)) > 0 })
		require.NoError(e, h.Release())
		require.NoError(e, got.Soon().Release())
	})
}

func lockWithoutServer(e *env) {
	c := e.client()
	sub := c.States().Subscribe()
	defer sub.Stop()
	c.net.Refuse()
	c.net.CutAll()
	c.awaitState(sub, listeners.Suspended)
	kit.Until(e, "the first dial after the loss, which may wait", func() bool {
		err := c.Stats().LastError
		return err != nil && strings.Contains(err.Error(), "refused by faultnet")
	})
	for _, k := range exclusive {
		lock := k.make(c, "/"+k.name)
		began := time.Now()
		for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
			_, err := lock.TryAcquire(e.soon(), wait)
			require.ErrorIs(e, err, framework.ErrNotConnected)
			require.NotErrorIs(e, err, locks.ErrNotAcquired)
			require.NotErrorIs(e, err, context.DeadlineExceeded)
		}
		assert.Less(e, time.Since(began), 5*time.Second)
		ctx, cancel := context.WithTimeout(e.Context(), 20*time.Millisecond)
		_, err := lock.Acquire(ctx)
		cancel()
		require.ErrorIs(e, err, context.DeadlineExceeded)
		require.ErrorIs(e, err, framework.ErrNotConnected, "why it had to wait")
		require.ErrorContains(e, err, "refused by faultnet", "and why that")
	}
	c.net.Accept()
}

func lockFrozen(e *env) {
	c := e.client()
	each(e, func(k kind, path string) {
		require.NoError(e, locks.Do(e.soon(), k.make(c, path), func(context.Context) error { return nil }))
		c.net.Freeze()
		began := time.Now()
		_, err := k.make(c, path).TryAcquire(e.soon(), 100*time.Millisecond)
		require.ErrorIs(e, err, framework.ErrNotConnected, "nobody could be asked")
		assert.Less(e, time.Since(began), 2*time.Second)
		ctx, cancel := context.WithCancel(e.Context())
		got := kit.AcquireWith(ctx, e, k.make(c, path))
		kit.Until(e, "the request is on its way", func() bool { return c.net.Held() > 0 })
		cancel()
		_, err = got.Result()
		require.ErrorIs(e, err, context.Canceled)
		c.net.Thaw()
	})
}

func lockReplyLost(e *env) {
	c, other := e.client(), e.client()
	each(e, func(k kind, path string) {
		require.NoError(e, locks.Do(e.soon(), k.make(c, path), func(context.Context) error { return nil }))
		for _, req := range []request{k.creation(), {wire.OpGetChildren, 1}, k.deletion()} {
			op := req.op
			for name, fault := range map[string]func(wire.Op, int) any{
				"lost": func(op wire.Op, n int) any { return c.net.LoseReply(op, n) },
				"cut":  func(op wire.Op, n int) any { return c.net.CutBefore(op, n) },
			} {
				fault(op, req.n)
				h, err := k.make(c, path).Acquire(e.soon())
				require.NoError(e, err, "%s %s %v", k.name, name, op)
				require.NoError(e, h.Err())
				names := e.children(path + k.queues[len(k.queues)-1])
				assert.Len(e, names, 1, "one node: %s %s %v, ours %s", k.name, name, op, h.Path())
				_, err = k.make(other, path).TryAcquire(e.soon(), 0)
				require.ErrorIs(e, err, locks.ErrNotAcquired)
				if err := h.Release(); err != nil {
					require.ErrorIs(e, err, locks.ErrReleasePending, "%s %s %v", k.name, name, op)
				}
				h, err = k.make(other, path).Acquire(e.soon())
				require.NoError(e, err, "it is free again")
				require.NoError(e, h.Release())
				e.empties(k.paths(path)...)
			}
		}
	})
}

func lockWaiterReplyLost(e *env) {
	holder, c := e.client(), e.client()
	each(e, func(k kind, path string) {
		listing, watching := wire.OpGetChildren, wire.OpGetData // the node ahead
		switch k.name {
		case "semaphore-mutex":
			watching = wire.OpGetChildren2 // the leases
		case "multi":
			listing = wire.OpMultiRead // all queues
		}
		for _, op := range []wire.Op{k.creation().op, listing, watching} {
			h, err := k.make(holder, path).Acquire(e.soon())
			require.NoError(e, err)
			ahead := e.taken(k, path)
			lost := c.net.LoseReply(op, 1)
			got := kit.Acquire(e, k.make(c, path))
			e.fired(lost)
			kit.Until(e, "it waits", func() bool { return len(e.b.watches(e, e.chroot+path)) > 0 })
			e.queued(path+k.queues[0], ahead+1)
			require.NoError(e, h.Release())
			require.NoError(e, got.Soon().Release())
		}
	})
}

func lockWaiterCut(e *env) {
	holder, first, second := e.client(), e.client(), e.client()
	each(e, func(k kind, path string) {
		h, err := k.make(holder, path).Acquire(e.soon())
		require.NoError(e, err)
		ahead := e.taken(k, path)
		one := kit.Acquire(e, k.make(first, path))
		e.queued(path+k.queues[0], ahead+1)
		two := kit.Acquire(e, k.make(second, path))
		e.queued(path+k.queues[0], ahead+2)
		sub := first.States().Subscribe()
		first.net.CutAll()
		first.awaitState(sub, listeners.Suspended)
		first.awaitState(sub, listeners.Reconnected)
		sub.Stop()
		require.NoError(e, h.Release())
		h = one.Soon() // its place was kept
		require.True(e, two.Pending(), "both")
		require.NoError(e, h.Release())
		require.NoError(e, two.Soon().Release())
	})
}

// A hundred goroutines of one client wait behind one node, and hand it over
// among themselves; who waits elsewhere gets its turn.
func lockLocalQueue(e *env) {
	const n, bound = 100, 10
	holder, c, other := e.client(), e.client(), e.client()
	for _, k := range exclusive[:2] { // those that have a local queue
		path := "/" + k.name
		h, err := k.make(holder, path).Acquire(e.soon())
		require.NoError(e, err)
		var inside, taken, before atomic.Int32
		var wg sync.WaitGroup
		take := func(c *client, opts ...locks.Option) {
			wg.Go(func() {
				assert.NoError(e, locks.Do(e.soon(), k.make(c, path, opts...), func(context.Context) error {
					assert.Equal(e, int32(1), inside.Add(1), "alone")
					if c == other {
						before.Store(taken.Load())
					}
					taken.Add(1)
					inside.Add(-1)
					return nil
				}))
			})
		}
		for range n {
			take(c, locks.LocalHandovers(bound))
		}
		e.queued(path, 2)
		take(other)
		e.queued(path, 3)
		requests := c.net.Requests()
		require.NoError(e, h.Release())
		wg.Wait()
		assert.Equal(e, int32(n+1), taken.Load())
		assert.LessOrEqual(e, before.Load(), int32(1+bound), "the other client's turn")
		nodes := c.net.Requests()[wire.OpCreate2] - requests[wire.OpCreate2]
		// Exact in virtual time. Here some may come when the local queue has just emptied.
		assert.GreaterOrEqual(e, nodes, (n-1)/(1+bound), "a node each so many turns")
		assert.Less(e, nodes, n/2, "and not for each of them")
		e.empties(path)
	}
}

func lockWaiterExpired(e *env) {
	holder, c := e.client(), e.client()
	each(e, func(k kind, path string) {
		h, err := k.make(holder, path).Acquire(e.soon())
		require.NoError(e, err)
		ahead := e.taken(k, path)
		again := kit.Acquire(e, k.make(c, path))
		fails := kit.Acquire(e, k.make(c, path, locks.FailOnSessionLoss(), locks.LocalHandovers(0)))
		e.queued(path+k.queues[0], ahead+2)
		old := c.SessionID()
		c.expire()
		_, err = fails.Result()
		require.ErrorIs(e, err, framework.ErrSessionExpired, k.name)
		kit.Eventually(e, "it queues again", func() error {
			for _, p := range e.ephemerals(e.chroot + path) {
				_, stat, err := e.admin.Exists(e.soon(), p)
				if err == nil && stat != nil && stat.EphemeralOwner == old {
					return errors.New("a node of the old session")
				}
			}
			return nilIf(len(e.children(path+k.queues[0])) == ahead+1)
		})
		require.NoError(e, h.Release())
		require.NoError(e, again.Soon().Release())
	})
}

func lockHolderCut(e *env) {
	c := e.client()
	each(e, func(k kind, path string) {
		h, err := k.make(c, path).Acquire(e.soon())
		require.NoError(e, err)
		strict, err := k.make(c, path+"-strict", locks.EndOnSuspended()).Acquire(e.soon())
		require.NoError(e, err)
		var mu sync.Mutex
		var seen []locks.HoldState
		h.Listen(func(s locks.HoldState) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, s)
		})
		c.net.CutAll()
		kit.Eventually(e, "it was uncertain and is held", func() error {
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(seen) != fmt.Sprint([]locks.HoldState{locks.Held, locks.Uncertain, locks.Held}) {
				return fmt.Errorf("%v", seen)
			}
			return nil
		})
		require.NoError(e, h.Err())
		require.NoError(e, h.Context().Err(), "the work goes on")

		e.done(strict.Context().Done(), "the strict one ends")
		require.ErrorIs(e, context.Cause(strict.Context()), locks.ErrLockLost)
		require.ErrorIs(e, strict.Err(), framework.ErrNotConnected)
		require.ErrorIs(e, strict.Release(), locks.ErrLockLost)
		e.empties(k.paths(path + "-strict")...)
		require.NoError(e, h.Release())
	})
}

func lockHolderExpired(e *env) {
	c, other := e.client(), e.client()
	each(e, func(k kind, path string) {
		h, err := k.make(c, path).Acquire(e.soon())
		require.NoError(e, err)
		var inner *locks.Hold
		if k.reentrant {
			inner, err = k.make(c, path).Acquire(h.Context())
			require.NoError(e, err)
		}
		next := kit.Acquire(e, k.make(other, path))
		c.expire()
		e.done(h.Context().Done(), "the work ends")
		cause := context.Cause(h.Context())
		require.ErrorIs(e, cause, locks.ErrLockLost)
		// Its node may have been seen to go first.
		kit.Until(e, "why", func() bool { return errors.Is(cause, framework.ErrSessionExpired) })
		require.ErrorIs(e, h.Err(), framework.ErrSessionExpired)
		require.NotErrorIs(e, cause, locks.ErrNodeDeleted)
		var lost *locks.LostError
		require.ErrorAs(e, cause, &lost)
		assert.Equal(e, locks.Lost, h.State())
		assert.Zero(e, h.FencingToken())
		if inner != nil {
			_, err = k.make(c, path).Acquire(context.WithoutCancel(inner.Context()))
			require.ErrorIs(e, err, locks.ErrLockLost, "who comes from a lost hold is told")
			require.ErrorIs(e, inner.Release(), locks.ErrLockLost)
		}
		require.ErrorIs(e, h.Release(), locks.ErrLockLost)
		require.ErrorIs(e, h.Release(), locks.ErrReleased)
		require.NoError(e, next.Soon().Release(), "somebody else has it")
		h, err = k.make(c, path).Acquire(e.soon())
		require.NoError(e, err, "and it can be had again")
		require.NoError(e, h.Release())
	})
}

func lockNodeDeleted(e *env) {
	c, other := e.client(), e.client()
	each(e, func(k kind, path string) {
		h, err := k.make(c, path).Acquire(e.soon())
		require.NoError(e, err)
		queue := path + k.queues[len(k.queues)-1]
		for _, name := range e.children(queue) {
			require.NoError(e, other.Delete(e.soon(), queue+"/"+name, framework.AnyVersion))
		}
		e.done(h.Context().Done(), "an operator's hand is noticed")
		require.ErrorIs(e, context.Cause(h.Context()), locks.ErrLockLost)
		kit.Until(e, "why", func() bool { return errors.Is(h.Err(), locks.ErrNodeDeleted) })
		require.NotErrorIs(e, h.Err(), framework.ErrSessionExpired)
		require.NotErrorIs(e, h.Err(), framework.ErrNoNode, "that is the answer to a call")
		require.ErrorIs(e, h.Release(), locks.ErrLockLost)

		// A waiter whose node is deleted queues again.
		h, err = k.make(other, path).Acquire(e.soon())
		require.NoError(e, err)
		got := kit.Acquire(e, k.make(c, path))
		kit.Until(e, "it waits", func() bool { return len(e.b.watches(e, e.chroot+path)) > 0 })
		names := e.children(path + k.queues[0])
		for _, name := range names {
			full := path + k.queues[0] + "/" + name
			_, stat, err := other.current().Exists(e.soon(), full)
			require.NoError(e, err)
			if stat != nil && stat.EphemeralOwner == c.SessionID() {
				require.NoError(e, other.Delete(e.soon(), full, framework.AnyVersion))
			}
		}
		require.NoError(e, h.Release())
		require.NoError(e, got.Soon().Release())
	})
}

func lockShortHoldDeleted(e *env) {
	// Deleted before a watch stood on the node: the release tells.
	c := e.client()
	h, err := locks.NewInterProcessMutex(c.Client, "/l").Acquire(e.soon())
	require.NoError(e, err)
	require.NoError(e, c.Delete(e.soon(), h.Path(), 0))
	err = h.Release()
	require.ErrorIs(e, err, locks.ErrLockLost)
	require.ErrorIs(e, err, locks.ErrNodeDeleted)
	require.NotErrorIs(e, err, framework.ErrNoNode, "that is the answer to a call")
	e.empties("/l")
}

func lockReleaseWhileCut(e *env) {
	c, other := e.client(), e.client()
	each(e, func(k kind, path string) {
		h, err := k.make(c, path, locks.ReleaseWait(20*time.Millisecond)).Acquire(e.soon())
		require.NoError(e, err)
		sub := c.States().Subscribe()
		c.net.Refuse()
		c.net.CutAll()
		c.awaitState(sub, listeners.Suspended)
		sub.Stop()
		began := time.Now()
		require.ErrorIs(e, h.Release(), locks.ErrReleasePending)
		assert.Less(e, time.Since(began), 2*time.Second)
		assert.Equal(e, locks.Released, h.State(), "it has ended here")
		c.net.Accept()
		require.NoError(e, locks.Do(e.soon(), k.make(other, path), func(context.Context) error { return nil }))
	})
}

func lockReleaseRefused(e *env) {
	c := e.client(func(cfg *framework.Config) {
		cfg.ACL = func(path string) []framework.ACL {
			if path == "/"+e.chroot[1:]+"/never" {
				return nil
			}
			return zk.WorldACL(zk.PermAll)
		}
	})
	require.NoError(e, c.EnsurePath(e.soon(), "/l"))
	h, err := locks.NewInterProcessMutex(c.Client, "/l").Acquire(e.soon())
	require.NoError(e, err)
	_, err = c.SetACL(e.soon(), "/l", zk.WorldACL(zk.PermAll&^zk.PermDelete), 0)
	require.NoError(e, err)
	// A follower may answer before the leader has taken the list in, by which it judges.
	_, err = c.Create(e.soon(), "/l/probe", nil, framework.Persistent)
	require.NoError(e, err)
	kit.Until(e, "the leader refuses deletions", func() bool {
		err := c.Delete(e.soon(), "/l/probe", framework.AnyVersion)
		if err == nil {
			_, err = c.Create(e.soon(), "/l/probe", nil, framework.Persistent)
			require.NoError(e, err)
		}
		return errors.Is(err, framework.ErrNoAuth)
	})
	told := c.Errors().Subscribe()
	defer told.Stop()
	err = h.Release()
	require.ErrorIs(e, err, framework.ErrNoAuth)
	require.NotErrorIs(e, err, locks.ErrReleasePending)
	require.ErrorIs(e, <-told.C, framework.ErrNoAuth)
	_, err = c.SetACL(e.soon(), "/l", zk.WorldACL(zk.PermAll), 1)
	require.NoError(e, err)
}

func lockForeignChildren(e *env) {
	c := e.client()
	for _, k := range exclusive {
		path := "/" + k.name
		for _, q := range k.paths(path) {
			for _, name := range []string{"!x", "0", "_c_x", "lock-", "lock-x", "lock-99999999999", "zz", "_c_x-lock-000000000", "lease-1", "__READ__x", "__WRIT__"} {
				_, err := c.Create(e.soon(), q+"/"+name, nil, framework.Persistent, framework.Parents())
				require.NoError(e, err)
			}
		}
		h, err := k.make(c, path).Acquire(e.soon())
		require.NoError(e, err, "%s: passed over", k.name)
		require.NoError(e, h.Release())
	}
}

func lockSequenceExhausted(e *env) {
	c := e.client()
	for i, name := range []string{"_c_x-lock--2147483648", "_c_x-lock-2147483647", "_c_y-lock-2147450000"} {
		path := fmt.Sprintf("/l%d", i)
		_, err := c.Create(e.soon(), path+"/"+name, nil, framework.Persistent, framework.Parents())
		require.NoError(e, err)
		_, err = locks.NewInterProcessMutex(c.Client, path).Acquire(e.soon())
		require.ErrorIs(e, err, locks.ErrSequenceExhausted, name)
		kit.Until(e, "our node has gone", func() bool { return len(e.children(path)) == 1 })
	}
}

func lockNodeData(e *env) {
	c := e.client(func(cfg *framework.Config) { cfg.DefaultData = []byte("default") })
	data := []byte("mine")
	option := locks.NodeData(data)
	data[0] = 'x' // it was copied
	for want, opts := range map[string][]locks.Option{"mine": {option}, "default": nil, "": {option, locks.Revocable()}} {
		h, err := locks.NewInterProcessMutex(c.Client, "/l", opts...).Acquire(e.soon())
		require.NoError(e, err)
		got, _, err := c.Get(e.soon(), h.Path())
		require.NoError(e, err)
		assert.Equal(e, want, string(got))
		require.NoError(e, h.Release())
	}
	e.empties("/l")
}

func lockParticipants(e *env) {
	a, b := e.client(), e.client(func(cfg *framework.Config) { cfg.Namespace = "" })
	m := locks.NewInterProcessMutex(a.Client, "/l", locks.NodeData([]byte("a")))
	all, err := m.Participants(e.soon())
	require.NoError(e, err)
	assert.Empty(e, all, "there is no queue")
	h, err := m.Acquire(e.soon())
	require.NoError(e, err)
	ctx, cancel := context.WithCancel(e.Context())
	got := kit.AcquireWith(ctx, e, locks.NewInterProcessMutex(b.Client, "/l", locks.NodeData([]byte("b"))))
	e.queued("/l", 2)
	a.current()
	all, err = m.Participants(e.soon())
	require.NoError(e, err)
	require.Len(e, all, 2)
	assert.Equal(e, h.Path(), all[0].Path)
	assert.True(e, all[0].Holds)
	assert.False(e, all[1].Holds)
	assert.Equal(e, []byte("a"), all[0].Data)
	assert.Equal(e, []byte("b"), all[1].Data)
	assert.Equal(e, a.SessionID(), all[0].Session)
	assert.Equal(e, b.SessionID(), all[1].Session)
	assert.Equal(e, h.FencingToken(), all[0].Token)
	assert.Greater(e, all[1].Token, all[0].Token)
	assert.WithinDuration(e, time.Now(), all[0].Since, time.Minute)
	cancel()
	<-got.Done()
	require.NoError(e, h.Release())
	e.empties("/l")
}

func lockTokensRise(e *env) {
	clients := []*client{e.client(), e.client()}
	var last int64
	for i := range 10 {
		h, err := locks.NewInterProcessMutex(clients[i%2].Client, "/l").Acquire(e.soon())
		require.NoError(e, err)
		assert.Greater(e, h.FencingToken(), last)
		_, stat, err := clients[i%2].Get(e.soon(), h.Path()) // others may see it later
		require.NoError(e, err)
		assert.Equal(e, stat.Czxid, h.FencingToken())
		last = h.FencingToken()
		require.NoError(e, h.Release())
		if i == 5 { // the parent is made anew and numbers start again
			require.NoError(e, clients[0].Delete(e.soon(), "/l", framework.AnyVersion))
		}
	}
	e.empties("/l")
}

func lockRevocation(e *env) {
	a, b := e.client(), e.client()
	m := locks.NewInterProcessMutex(a.Client, "/l", locks.Revocable())
	h, err := m.Acquire(e.soon())
	require.NoError(e, err)
	waiting := kit.Acquire(e, locks.NewInterProcessMutex(b.Client, "/l", locks.Revocable()))
	e.queued("/l", 2)
	select {
	case <-h.Revoked():
		require.Fail(e, "nobody has asked")
	default:
	}
	a.net.CutAll() // survives a reconnect
	a.current()
	all, err := m.Participants(e.soon())
	require.NoError(e, err)
	for _, p := range all {
		require.NoError(e, locks.AttemptRevoke(e.soon(), b.Client, p.Path))
	}
	e.done(h.Revoked(), "asked for it back")
	require.NoError(e, h.Context().Err(), "complying is up to the holder")
	require.NoError(e, h.Release())
	h = waiting.Soon()
	e.done(h.Revoked(), "who was asked while waiting knows once it holds")
	require.NoError(e, h.Release())
	require.NoError(e, locks.AttemptRevoke(e.soon(), a.Client, "/l/absent"))
	e.empties("/l")

	hold, err := locks.NewInterProcessMutex(a.Client, "/l", locks.NodeData([]byte("precious"))).Acquire(e.soon())
	require.NoError(e, err)
	_, err = a.Create(e.soon(), "/config", []byte("precious"), framework.Persistent)
	require.NoError(e, err)
	for _, path := range []string{"/config", hold.Path()} {
		require.NoError(e, b.Sync(e.soon(), path)) // its server may be behind
		require.ErrorIs(e, locks.AttemptRevoke(e.soon(), b.Client, path), locks.ErrNotRevocable)
		data, _, err := a.Get(e.soon(), path)
		require.NoError(e, err)
		assert.Equal(e, "precious", string(data))
	}
	require.NoError(e, hold.Release())
}

func lockDo(e *env) {
	c, other := e.client(), e.client()
	failed := errors.New("work failed")
	each(e, func(k kind, path string) {
		lock := k.make(c, path)
		require.ErrorIs(e, locks.Do(e.soon(), lock, func(context.Context) error { return failed }), failed)
		assert.PanicsWithValue(e, "boom", func() {
			_ = locks.Do(e.soon(), lock, func(context.Context) error { panic("boom") })
		})
		err := locks.TryDo(e.soon(), lock, time.Second, func(ctx context.Context) error {
			return locks.TryDo(e.soon(), k.make(other, path), 0, func(context.Context) error { return failed })
		})
		require.ErrorIs(e, err, locks.ErrNotAcquired)
		err = locks.Do(e.soon(), lock, func(ctx context.Context) error {
			c.expire()
			<-ctx.Done()
			return nil
		})
		require.ErrorIs(e, err, locks.ErrLockLost, "nil would mean that it was ours throughout")
		err = locks.Do(e.soon(), lock, func(ctx context.Context) error {
			c.expire()
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.ErrorIs(e, err, locks.ErrLockLost)
	})
}

func lockClose(e *env) {
	each(e, func(k kind, path string) {
		c := e.client()
		h, err := k.make(c, path).Acquire(e.soon())
		require.NoError(e, err)
		waiting := kit.Acquire(e, k.make(c, path))
		kit.Until(e, "it waits", func() bool { return len(e.b.watches(e, e.chroot+path)) > 0 })
		require.NoError(e, c.Close())
		_, err = waiting.Result()
		require.ErrorIs(e, err, framework.ErrClosed)
		e.done(h.Context().Done(), "the hold ends")
		require.ErrorIs(e, context.Cause(h.Context()), framework.ErrClosed)
		require.ErrorIs(e, h.Release(), locks.ErrLockLost)
		_, err = k.make(c, path).Acquire(e.soon())
		require.ErrorIs(e, err, framework.ErrClosed)
	})
}

func lockHeldBy(e *env) {
	c := e.client()
	m := locks.NewInterProcessMutex(c.Client, "/l")
	other := locks.NewInterProcessMutex(c.Client, "/m")
	assert.False(e, m.HeldBy(e.Context()))
	h, err := m.Acquire(e.soon())
	require.NoError(e, err)
	ctx, cancel := context.WithCancel(h.Context())
	defer cancel()
	assert.True(e, m.HeldBy(ctx))
	assert.True(e, locks.NewInterProcessMutex(c.Client, "/l").HeldBy(ctx))
	assert.False(e, other.HeldBy(ctx))
	assert.False(e, m.HeldBy(e.Context()))
	bound, free := h.Bind(e.Context())
	assert.True(e, m.HeldBy(bound), "by the other parent")
	under, err := other.Acquire(ctx)
	require.NoError(e, err)
	assert.True(e, m.HeldBy(under.Context()), "both")
	assert.True(e, other.HeldBy(under.Context()))
	require.NoError(e, under.Release())
	require.NoError(e, h.Release())
	e.done(bound.Done(), "it ends with the hold")
	require.ErrorIs(e, context.Cause(bound), locks.ErrReleased)
	assert.False(e, m.HeldBy(ctx))
	free()
	s := locks.NewInterProcessSemaphoreMutex(c.Client, "/s")
	h, err = s.Acquire(e.soon())
	require.NoError(e, err)
	assert.True(e, s.HeldBy(h.Context()))
	require.NoError(e, h.Release())
	assert.False(e, s.HeldBy(h.Context()))
	e.empties("/l", "/m", "/s/locks", "/s/leases")
}
