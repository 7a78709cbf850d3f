package conformance

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
)

func rwShared(e *env) {
	clients := []*client{e.client(), e.client(), e.client()}
	var readers, writers atomic.Int32
	var wg sync.WaitGroup
	for i := range 9 {
		wg.Go(func() {
			lock := locks.NewInterProcessReadWriteLock(clients[i%3].Client, "/l")
			for range 6 {
				if i < 3 {
					assert.NoError(e, locks.Do(e.soon(), lock.WriteLock(), func(context.Context) error {
						assert.Equal(e, int32(1), writers.Add(1), "writers alone")
						assert.Zero(e, readers.Load())
						writers.Add(-1)
						return nil
					}))
					continue
				}
				assert.NoError(e, locks.Do(e.soon(), lock.ReadLock(), func(context.Context) error {
					readers.Add(1)
					assert.Zero(e, writers.Load())
					readers.Add(-1)
					return nil
				}))
			}
		})
	}
	wg.Wait()
	e.empties("/l")
}

func rwFair(e *env) {
	a, b := e.client(), e.client()
	lock, other := locks.NewInterProcessReadWriteLock(a.Client, "/l"), locks.NewInterProcessReadWriteLock(b.Client, "/l")
	first, err := lock.ReadLock().Acquire(e.soon())
	require.NoError(e, err)
	second, err := other.ReadLock().Acquire(e.soon())
	require.NoError(e, err, "readers together")
	assert.Zero(e, second.FencingToken(), "a read side has none")
	writer := kit.Acquire(e, other.WriteLock())
	e.queued("/l", 3)
	late := kit.Acquire(e, lock.ReadLock())
	e.queued("/l", 4)
	_, err = lock.ReadLock().TryAcquire(e.soon(), 0)
	require.ErrorIs(e, err, locks.ErrNotAcquired, "a waiting writer is not overtaken")

	a.current()
	all, err := lock.ReadLock().Participants(e.soon())
	require.NoError(e, err)
	require.Len(e, all, 4)
	for i, want := range []struct{ holds, write bool }{{true, false}, {true, false}, {false, true}, {false, false}} {
		assert.Equal(e, want.holds, all[i].Holds, i)
		assert.Equal(e, want.write, all[i].Write, i)
	}
	require.NoError(e, first.Release())
	require.NoError(e, second.Release())
	w := writer.Soon()
	assert.NotZero(e, w.FencingToken())
	require.True(e, late.Pending(), "a reader beside a writer")
	require.NoError(e, w.Release())
	require.NoError(e, late.Soon().Release())
	e.empties("/l")
}

func rwDowngrade(e *env) {
	a, b := e.client(), e.client()
	lock, other := locks.NewInterProcessReadWriteLock(a.Client, "/l"), locks.NewInterProcessReadWriteLock(b.Client, "/l")
	w, err := lock.WriteLock().Acquire(e.soon())
	require.NoError(e, err)
	waiting := kit.Acquire(e, other.WriteLock())
	e.queued("/l", 2)
	beside := kit.Acquire(e, lock.ReadLock()) // not under the write hold
	e.queued("/l", 3)
	r, err := lock.ReadLock().Acquire(w.Context())
	require.NoError(e, err, "at once, though a writer waits")
	assert.Equal(e, w.Path()[strings.LastIndex(w.Path(), "__")+2:], r.Path()[strings.LastIndex(r.Path(), "__")+2:], "with the digits of the write node")
	again, err := lock.ReadLock().Acquire(r.Context())
	require.NoError(e, err)
	assert.Equal(e, r.Path(), again.Path(), "re-entered")
	require.NoError(e, again.Release())
	require.NoError(e, w.Release())
	require.NoError(e, r.Context().Err(), "the read hold remains")
	select {
	case <-waiting.Done():
		require.Fail(e, "a writer beside a downgraded reader")
	case <-time.After(50 * time.Millisecond):
	}
	_, err = lock.WriteLock().Acquire(r.Context())
	require.ErrorIs(e, err, locks.ErrDeadlock, "and does not go up again")
	require.NoError(e, r.Release())
	require.NoError(e, waiting.Soon().Release())
	require.NoError(e, beside.Soon().Release())
	e.empties("/l")
}

func rwUpgrade(e *env) {
	c := e.client()
	lock := locks.NewInterProcessReadWriteLock(c.Client, "/l")
	r, err := lock.ReadLock().Acquire(e.soon())
	require.NoError(e, err)
	began := time.Now()
	_, err = lock.WriteLock().Acquire(r.Context())
	require.ErrorIs(e, err, locks.ErrDeadlock)
	_, err = lock.WriteLock().TryAcquire(r.Context(), patience)
	require.ErrorIs(e, err, locks.ErrDeadlock)
	assert.Less(e, time.Since(began), time.Second, "at once")
	require.NoError(e, r.Release())

	w, err := lock.WriteLock().Acquire(e.soon())
	require.NoError(e, err)
	r, err = lock.ReadLock().Acquire(w.Context())
	require.NoError(e, err)
	again, err := lock.WriteLock().Acquire(r.Context())
	require.NoError(e, err, "unless a write hold is above that")
	for _, h := range []*locks.Hold{again, r, w} {
		require.NoError(e, h.Release())
	}
	e.empties("/l")
}

func semaphoreLimit(e *env) {
	clients := []*client{e.client(), e.client(), e.client()}
	var inside atomic.Int32
	var wg sync.WaitGroup
	for i := range 9 {
		wg.Go(func() {
			s := locks.NewInterProcessSemaphore(clients[i%3].Client, "/s", 3)
			for range 5 {
				assert.NoError(e, locks.Do(e.soon(), s, func(context.Context) error {
					assert.LessOrEqual(e, inside.Add(1), int32(3))
					inside.Add(-1)
					return nil
				}))
			}
		})
	}
	wg.Wait()
	e.empties("/s/locks", "/s/leases")
}

func semaphoreLeases(e *env) {
	a, b := e.client(), e.client()
	s, other := locks.NewInterProcessSemaphore(a.Client, "/s", 4, locks.NodeData([]byte("x"))), locks.NewInterProcessSemaphore(b.Client, "/s", 4)
	three, err := s.AcquireN(e.soon(), 3)
	require.NoError(e, err)
	require.Len(e, three.Members(), 3)
	assert.Empty(e, three.Path())
	one, err := other.TryAcquire(e.soon(), 0)
	require.NoError(e, err)
	assert.NotEmpty(e, one.Path())
	assert.Nil(e, one.Members())
	assert.Zero(e, one.FencingToken(), "it is not alone")
	_, err = other.TryAcquire(e.soon(), 0)
	require.ErrorIs(e, err, locks.ErrNotAcquired)
	e.refused(s, 30*time.Millisecond)
	e.queued("/s/leases", 4)

	a.current()
	all, err := s.Participants(e.soon())
	require.NoError(e, err)
	require.Len(e, all, 4)
	for _, p := range all {
		assert.True(e, p.Holds)
	}
	assert.Equal(e, []byte("x"), all[0].Data)

	two := kit.Begin(e, func() (*locks.Hold, error) { return other.AcquireN(e.soon(), 2) })
	kit.Until(e, "it waits", func() bool { return len(e.b.watches(e, e.chroot+"/s/leases")) > 0 })
	require.NoError(e, three.Members()[1].Release(), "one of them early")
	select {
	case <-two.Done():
		require.Fail(e, "all or none")
	case <-time.After(30 * time.Millisecond):
	}
	require.NoError(e, one.Release())
	h := two.Soon()
	assert.Equal(e, locks.Held, three.State(), "the rest goes on")
	require.NoError(e, three.Release())
	require.NoError(e, h.Release())
	e.empties("/s/locks", "/s/leases")
}

func semaphoreDeadlock(e *env) {
	c := e.client()
	s := locks.NewInterProcessSemaphore(c.Client, "/s", 2)
	one, err := s.Acquire(e.soon())
	require.NoError(e, err)
	two, err := s.Acquire(one.Context())
	require.NoError(e, err, "another lease")
	assert.NotEqual(e, one.Path(), two.Path())
	_, err = s.Acquire(two.Context())
	require.ErrorIs(e, err, locks.ErrDeadlock)
	_, err = s.AcquireN(one.Context(), 2)
	require.ErrorIs(e, err, locks.ErrDeadlock)
	require.NoError(e, two.Release())
	require.NoError(e, one.Release())
	for _, n := range []int{-1, 0, 3} {
		_, err = s.AcquireN(e.soon(), n)
		require.ErrorIs(e, err, locks.ErrInvalidLock)
		_, err = s.TryAcquireN(e.soon(), n, time.Second)
		require.ErrorIs(e, err, locks.ErrInvalidLock)
	}
	both, err := s.AcquireN(e.soon(), 2)
	require.NoError(e, err)
	_, err = s.Acquire(both.Context())
	require.ErrorIs(e, err, locks.ErrDeadlock)
	require.NoError(e, both.Release())
	e.empties("/s/locks", "/s/leases")
}

func semaphoreLost(e *env) {
	c, other := e.client(), e.client()
	s := locks.NewInterProcessSemaphore(c.Client, "/s", 2)
	both, err := s.AcquireN(e.soon(), 2)
	require.NoError(e, err)
	require.NoError(e, other.Delete(e.soon(), both.Members()[0].Path(), framework.AnyVersion))
	e.done(both.Context().Done(), "lost as soon as one is")
	kit.Until(e, "why", func() bool { return errors.Is(both.Err(), locks.ErrNodeDeleted) })
	require.NotErrorIs(e, both.Err(), framework.ErrNoNode, "that is the answer to a call")
	assert.Equal(e, locks.Held, both.Members()[1].State())
	require.ErrorIs(e, both.Release(), locks.ErrLockLost)
	assert.Equal(e, locks.Released, both.Members()[1].State(), "with the other one")
	e.empties("/s/locks", "/s/leases")
}

func semaphoreNodesDeleted(e *env) {
	a, b := e.client(), e.client()
	sa, sb := locks.NewInterProcessSemaphore(a.Client, "/s", 1), locks.NewInterProcessSemaphore(b.Client, "/s", 1)
	h, err := sa.Acquire(e.soon())
	require.NoError(e, err)
	e.queued("/s/locks", 0)
	one := kit.Acquire(e, sb)
	e.queued("/s/leases", 2)
	two := kit.Acquire(e, sa)
	e.queued("/s/locks", 2)
	// Both wait, and an operator deletes a node in the other queue.
	for _, name := range e.children("/s/locks") {
		full := "/s/locks/" + name
		_, stat, err := a.current().Exists(e.soon(), full)
		require.NoError(e, err)
		if stat.EphemeralOwner == b.SessionID() {
			require.NoError(e, a.Delete(e.soon(), full, framework.AnyVersion))
		}
	}
	require.NoError(e, h.Release())
	// Who noticed that its turn has gone queues again, behind the other.
	first, then := one, two
	select {
	case <-one.Done():
	case <-two.Done():
		first, then = two, one
	case <-time.After(patience):
		require.Fail(e, "they wait for each other")
	}
	require.NoError(e, first.Soon().Release())
	require.NoError(e, then.Soon().Release())
	e.empties("/s/locks", "/s/leases")
}

// other is a lock of a caller's own.
type other struct {
	mu       sync.Mutex
	fail     error
	log      *[]string
	name     string
	lost     func(error)
	released error
}

func (o *other) Acquire(ctx context.Context) (*locks.Hold, error) { return o.TryAcquire(ctx, 0) }

func (o *other) TryAcquire(ctx context.Context, _ time.Duration) (*locks.Hold, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fail != nil {
		return nil, o.fail
	}
	*o.log = append(*o.log, "+"+o.name)
	h, lost := locks.NewHold(ctx, func() error {
		*o.log = append(*o.log, "-"+o.name)
		return o.released
	})
	o.lost = lost
	return h, nil
}

func multiRollback(e *env) {
	c := e.client()
	var log []string
	broken := errors.New("broken")
	stuck := errors.New("cannot be given back")
	x, y, z := &other{log: &log, name: "x", released: stuck}, &other{log: &log, name: "y"}, &other{log: &log, name: "z", fail: broken}
	m := locks.NewInterProcessMultiLock(x, locks.NewInterProcessMutex(c.Client, "/b"), y, locks.NewInterProcessMutex(c.Client, "/a"), z)
	_, err := m.Acquire(e.soon())
	require.ErrorIs(e, err, broken)
	require.ErrorIs(e, err, stuck, "joined")
	assert.Equal(e, []string{"+x", "+y", "-y", "-x"}, log, "undone in reverse")
	e.empties("/a", "/b")

	z.fail, x.released, log = nil, nil, nil
	h, err := m.Acquire(e.soon())
	require.NoError(e, err)
	assert.Len(e, h.Members(), 5)
	assert.Empty(e, h.Path())
	assert.Zero(e, h.FencingToken())
	y.lost(broken)
	e.done(h.Context().Done(), "lost as soon as one is")
	require.ErrorIs(e, h.Err(), broken)
	require.ErrorIs(e, h.Err(), locks.ErrLockLost)
	require.ErrorIs(e, h.Release(), locks.ErrLockLost)
	assert.Equal(e, []string{"+x", "+y", "+z", "-z", "-x"}, log, "the others are given back")
	e.empties("/a", "/b")
}

func multiMembers(e *env) {
	c := e.client()
	mutex := func(path string) locks.Lock { return locks.NewInterProcessMutex(c.Client, path) }
	rw := locks.NewInterProcessReadWriteLock(c.Client, "/rw")
	m := locks.NewInterProcessMultiLock(mutex("/a"), locks.NewInterProcessMultiLock(mutex("/b"), mutex("/a")), mutex("/b"),
		rw.ReadLock(), rw.WriteLock(), locks.NewInterProcessSemaphoreMutex(c.Client, "/s"))
	h, err := m.Acquire(e.soon())
	require.NoError(e, err)
	assert.Len(e, h.Members(), 4, "the same lock twice counts once")
	e.queued("/rw", 1)
	assert.True(e, locks.NewInterProcessMutex(c.Client, "/a").HeldBy(h.Context()), "its context owns the members")
	inner, err := mutex("/b").Acquire(h.Context())
	require.NoError(e, err)
	again, err := locks.NewInterProcessMultiLock(mutex("/a"), mutex("/c")).Acquire(h.Context())
	require.NoError(e, err, "members already held are re-entered")
	require.NoError(e, h.Release())
	e.queued("/b", 1)
	e.queued("/a", 1)
	require.NoError(e, inner.Release())
	require.NoError(e, again.Release())
	e.empties("/a", "/b", "/c", "/rw", "/s/locks", "/s/leases")

	early, err := m.Acquire(e.soon())
	require.NoError(e, err)
	require.NoError(e, early.Members()[0].Release())
	assert.Equal(e, locks.Held, early.State(), "one may be released early")
	require.NoError(e, early.Release())
	e.empties("/a", "/b", "/rw", "/s/locks", "/s/leases")
}

func multiOpposite(e *env) {
	clients := []*client{e.client(), e.client()}
	var inside atomic.Int32
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			c := clients[i%2].Client
			lockSet := []locks.Lock{locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b"), locks.NewInterProcessMutex(c, "/c")}
			if i%2 == 1 {
				lockSet[0], lockSet[2] = lockSet[2], lockSet[0]
			}
			m := locks.NewInterProcessMultiLock(lockSet...)
			for range 10 {
				assert.NoError(e, locks.Do(e.soon(), m, func(context.Context) error {
					assert.Equal(e, int32(1), inside.Add(1))
					inside.Add(-1)
					return nil
				}), "no deadlock, in whatever order they are named")
			}
		})
	}
	wg.Wait()
	e.empties("/a", "/b", "/c")
}

func multiTotalWait(e *env) {
	holder, c := e.client(), e.client()
	hb, err := locks.NewInterProcessMutex(holder.Client, "/b").Acquire(e.soon())
	require.NoError(e, err)
	m := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c.Client, "/a"), locks.NewInterProcessMutex(c.Client, "/b"), locks.NewInterProcessMutex(c.Client, "/c"))
	began := time.Now()
	e.refused(m, 100*time.Millisecond)
	assert.Less(e, time.Since(began), 2*time.Second, "for all members together")
	e.empties("/a", "/c")
	require.NoError(e, hb.Release())
	e.empties("/b")
}
