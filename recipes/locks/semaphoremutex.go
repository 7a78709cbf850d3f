package locks

import (
	"context"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// InterProcessSemaphoreMutex is a lock for one owner at a time that is not
// reentrant: an owner that asks for it again gets ErrDeadlock at once. Otherwise
// it is like InterProcessMutex. It is a semaphore with one lease.
//
// Source: Curator's InterProcessSemaphoreMutex.
type InterProcessSemaphoreMutex struct {
	_         noCopy
	semaphore *InterProcessSemaphore
}

// NewInterProcessSemaphoreMutex returns the mutex at path. No other kind of lock may use
// that path. Like NewInterProcessMutex it sends nothing and cannot fail.
func NewInterProcessSemaphoreMutex(c *framework.Client, path string, opts ...Option) *InterProcessSemaphoreMutex {
	s := NewInterProcessSemaphore(c, path, 1, opts...)
	s.leases.exclusive = true
	s.turns.Recipe, s.leases.Recipe = monitor.SemaphoreMutex, monitor.SemaphoreMutex
	return &InterProcessSemaphoreMutex{semaphore: s}
}

// Acquire waits until the caller has the lock or ctx ends. Errors are those of
// InterProcessMutex.Acquire, and ErrDeadlock if ctx comes from a hold of this lock.
func (m *InterProcessSemaphoreMutex) Acquire(ctx context.Context) (*Hold, error) {
	if m.isNil() {
		return nil, opError("acquire", monitor.SemaphoreMutex, m.fault())
	}
	return m.semaphore.Acquire(ctx)
}

// TryAcquire waits for wait at most; see Lock.
func (m *InterProcessSemaphoreMutex) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	if m.isNil() {
		return nil, opError("acquire", monitor.SemaphoreMutex, m.fault())
	}
	return m.semaphore.TryAcquire(ctx, wait)
}

// HeldBy reports whether ctx comes from a hold of this lock that is not lost or released.
// It is for functions that require the lock. It asks no server.
func (m *InterProcessSemaphoreMutex) HeldBy(ctx context.Context) bool {
	if m.isNil() || m.semaphore.isZero() || m.semaphore.err != nil || ctx == nil {
		return false
	}
	return holdChainOf(ctx).holds(m.semaphore.key, znode.Lease)
}

// Participants lists the holder of the lock and the waiters, in order. See
// InterProcessSemaphore.Participants.
func (m *InterProcessSemaphoreMutex) Participants(ctx context.Context) ([]Participant, error) {
	if m.isNil() {
		return nil, opError("participants", monitor.SemaphoreMutex, m.fault())
	}
	return m.semaphore.Participants(ctx)
}

// Participants lists the leases, first those that are held, and then the callers that
// wait to be served, in order. It takes four round trips. Errors are those of
// InterProcessMutex.Participants. A caller that is being served
// may appear twice: with a lease that it waits for, and as the first of the callers that
// wait.
func (s *InterProcessSemaphore) Participants(ctx context.Context) ([]Participant, error) {
	if s.isZero() {
		return nil, opError("participants", monitor.Semaphore, s.fault())
	}
	if err := usable(ctx, s.err); err != nil {
		return nil, opError("participants", s.path, err)
	}
	return reading(ctx, s.turns.Core, s.path, s.participants)
}

func (s *InterProcessSemaphore) participants(ctx context.Context, c *transport.Conn) ([]Participant, error) {
	leases, err := s.leases.Look(ctx, c)
	if err != nil {
		return nil, err
	}
	waiting, err := s.turns.Look(ctx, c)
	if err != nil {
		return nil, err
	}
	if leases.Len()+waiting.Len() == 0 {
		if err := s.leases.CheckLock(ctx, c); err != nil {
			return nil, err
		}
	}
	lent, err := s.leases.describe(ctx, c, leases.Entries(0, leases.Len()), func(i int) bool { return i >= s.total })
	if err != nil {
		return nil, err
	}
	queued, err := s.turns.describe(ctx, c, waiting.Entries(0, waiting.Len()), func(int) bool { return true })
	return append(lent, queued...), err
}
