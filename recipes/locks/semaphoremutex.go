package locks

import (
	"context"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
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
	if m.isZero() {
		return nil, opError("acquire", monitor.SemaphoreMutex, m.fault())
	}
	return m.semaphore.Acquire(ctx)
}

// TryAcquire waits for wait at most; see Lock.
func (m *InterProcessSemaphoreMutex) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	if m.isZero() {
		return nil, opError("acquire", monitor.SemaphoreMutex, m.fault())
	}
	return m.semaphore.TryAcquire(ctx, wait)
}

// HeldBy reports whether ctx comes from a hold of this lock that is not lost or released.
// It is for functions that require the lock. It asks no server.
func (m *InterProcessSemaphoreMutex) HeldBy(ctx context.Context) bool {
	if m.fault() != nil || ctx == nil {
		return false
	}
	return holdChainOf(ctx).holds(m.holders().key, znode.Lease)
}

// Participants lists the holder of the lock and the waiters, in order. See
// InterProcessSemaphore.Participants.
func (m *InterProcessSemaphoreMutex) Participants(ctx context.Context) ([]Participant, error) {
	if m.isZero() {
		return nil, opError("participants", monitor.SemaphoreMutex, m.fault())
	}
	return m.semaphore.Participants(ctx)
}

func (m *InterProcessSemaphoreMutex) isZero() bool    { return m == nil || m.semaphore == nil }
func (m *InterProcessSemaphoreMutex) holders() *queue { return &m.semaphore.leases }

func (m *InterProcessSemaphoreMutex) fault() error {
	if m.isZero() {
		return unmade("NewInterProcessSemaphoreMutex")
	}
	return m.semaphore.err
}

func (m *InterProcessSemaphoreMutex) beginMember(ctx context.Context) (hold *Hold, joint acquire.Member, err error) {
	s := m.semaphore
	hold, _, err = s.beginMember(ctx)
	return hold, acquire.Member{Queue: &s.leases.Queue, Turns: &s.turns.Queue, Contended: &s.contended}, err
}

// String is the kind of the lock and its path, in full, for logs.
func (m *InterProcessSemaphoreMutex) String() string {
	if m.isZero() {
		return label(monitor.SemaphoreMutex, "", true)
	}
	return m.semaphore.String()
}
