package kit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// LockOf makes a lock of a client.
type LockOf = func(c *framework.Client) locks.Lock

// Locks are all ways to take a lock, over nodes below /l.
var Locks = map[string]LockOf{
	"mutex":     MutexAt("/l/m"),
	"revocable": func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/l/m", locks.Revocable()) },
	"write":     WriteAt("/l/rw"),
	"read":      ReadAt("/l/rw"),
	"downgrade": func(c *framework.Client) locks.Lock { return downgrade{locks.NewInterProcessReadWriteLock(c, "/l/rw")} },
	"semaphore": func(c *framework.Client) locks.Lock { return Leases(locks.NewInterProcessSemaphore(c, "/l/s", 3), 3) },
	"semaphore mutex": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessSemaphoreMutex(c, "/l/s")
	},
	"multi": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l/a"), locks.NewInterProcessMutex(c, "/l/b"),
			locks.NewInterProcessSemaphoreMutex(c, "/l/s"))
	},
}

// EachLock runs a part of a test for every way to take a lock, each in a bubble.
func EachLock(t *testing.T, fn func(t *testing.T, lock LockOf)) {
	t.Helper()
	for name, lock := range Locks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fn(t, lock) })
		})
	}
}

// MutexAt makes mutexes at a path.
func MutexAt(path string) LockOf {
	return func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, path) }
}

// ReadAt makes read sides of a lock at a path.
func ReadAt(path string) LockOf {
	return func(c *framework.Client) locks.Lock { return locks.NewInterProcessReadWriteLock(c, path).ReadLock() }
}

// WriteAt makes write sides of a lock at a path.
func WriteAt(path string) LockOf {
	return func(c *framework.Client) locks.Lock { return locks.NewInterProcessReadWriteLock(c, path).WriteLock() }
}

// MultiAt makes MultiLocks of the mutexes a and b below a path.
func MultiAt(path string) LockOf {
	return func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, path+"/a"), locks.NewInterProcessMutex(c, path+"/b"))
	}
}

// MultiOf makes MultiLocks of n mutexes below /l.
func MultiOf(n int) LockOf {
	return func(c *framework.Client) locks.Lock {
		members := make([]locks.Lock, n)
		for i := range members {
			members[i] = locks.NewInterProcessMutex(c, fmt.Sprintf("/l/%d", i))
		}
		return locks.NewInterProcessMultiLock(members...)
	}
}

// leases takes several leases of a semaphore at once.
type leases struct {
	s *locks.InterProcessSemaphore
	n int
}

// Leases is a lock that takes n leases of a semaphore at once.
func Leases(s *locks.InterProcessSemaphore, n int) locks.Lock { return leases{s, n} }

func (l leases) Acquire(ctx context.Context) (*locks.Hold, error) { return l.s.AcquireN(ctx, l.n) }

func (l leases) TryAcquire(ctx context.Context, wait time.Duration) (*locks.Hold, error) {
	return l.s.TryAcquireN(ctx, l.n, wait)
}

// downgrade takes the write side, then the read side, and gives the write side back.
type downgrade struct {
	l *locks.InterProcessReadWriteLock
}

func (l downgrade) Acquire(ctx context.Context) (r *locks.Hold, err error) {
	w, err := l.l.WriteLock().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if released := w.Release(); r != nil && errors.Is(released, locks.ErrLockLost) {
			_ = r.Release()
			r, err = nil, released
		}
	}()
	return l.l.ReadLock().Acquire(w.Context()) //nolint:contextcheck // the hold's context is ctx's child
}

func (l downgrade) TryAcquire(ctx context.Context, _ time.Duration) (*locks.Hold, error) {
	return l.Acquire(ctx)
}

// Latency is what a message takes each way where RoundTrips counts.
const Latency = 5 * time.Millisecond

// Near is a latency that is short next to what a MultiLock waits before it yields.
const Near = 200 * time.Microsecond

// RoundTrips is how many round trips fn takes.
func RoundTrips(t testing.TB, fn func() error) float64 {
	t.Helper()
	began := time.Now()
	require.NoError(t, fn())
	return float64(time.Since(began)) / float64(2*Latency)
}

// Into acquires a lock into a variable, to be counted by RoundTrips.
func Into(h **locks.Hold, lock locks.Lock) func() error {
	return func() (err error) {
		*h, err = lock.Acquire(context.Background())
		return err
	}
}

// InLine makes n goroutines wait for a lock, one after another, in a bubble. Each tells
// its hold to got, and releases when that has returned.
func InLine(t testing.TB, n int, lock func(i int) locks.Lock, got func(i int, h *locks.Hold)) *sync.WaitGroup {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		l := lock(i)
		wg.Go(func() {
			h, err := l.Acquire(t.Context())
			if !assert.NoError(t, err, "waiter %d", i) {
				return
			}
			got(i, h)
			assert.NoError(t, h.Release(), "waiter %d", i)
		})
		synctest.Wait()
	}
	return &wg
}

// Same is one lock for everybody in a line.
func Same(l locks.Lock) func(int) locks.Lock { return func(int) locks.Lock { return l } }
