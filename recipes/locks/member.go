package locks

import (
	"context"
	"fmt"

	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// ownLock is a lock of this package. All other types that implement Lock are foreign.
type ownLock interface {
	Lock
	isNil() bool
	// fault is what is wrong with how it was made.
	fault() error
	// fullPath is what MultiLocks order their members by, and what errors call the lock.
	fullPath() string
	// describe is what the tracer and the log call it.
	describe() monitor.Lock
	// holders is the queue of the nodes that have the lock. It has no Core if the lock
	// cannot be used.
	holders() *acquire.Queue
	// beginMember does what needs no server before a MultiLock takes it as a member: it
	// refuses, or re-enters. joint is whether a MultiLock can take it in one step with
	// others.
	beginMember(ctx context.Context) (hold *Hold, joint bool, err error)
}

// jointMember is a member that a MultiLock can take in one step with others of its client.
type jointMember interface {
	ownLock
	// identity is which lock it is, and which side.
	identity() (lockKey, znode.Kind)
	// member is what an attempt for several locks takes.
	member() acquire.Member
	// own is the ownership of its node.
	own(node acquire.Node) *ownership
}

// isNil is also true for nil pointers of our own types in the interface.
func isNil(lock Lock) bool {
	own, ours := lock.(ownLock)
	return lock == nil || ours && own.isNil()
}

// faultOf is what is wrong with how a lock of this package was made.
func faultOf(lock Lock) error {
	if own, ours := lock.(ownLock); ours {
		return own.fault()
	}
	return nil
}

// identityOf is which lock a member is, and which side. A semaphore is none: each lease
// is another. Neither is a foreign lock.
func identityOf(lock Lock) (lockKey, znode.Kind) {
	if m, is := lock.(jointMember); is {
		return m.identity()
	}
	return lockKey{}, ""
}

// pathOf is what members are ordered by: the path of those of this package.
func pathOf(lock Lock) string {
	if own, ours := lock.(ownLock); ours {
		return own.fullPath()
	}
	return ""
}

// sessionOf is the session of the client that a member belongs to.
func sessionOf(m jointMember) *session.Session {
	key, _ := m.identity()
	return key.session
}

func (m *InterProcessMutex) isNil() bool                     { return m == nil }
func (m *InterProcessMutex) fullPath() string                { return m.path }
func (m *InterProcessMutex) describe() monitor.Lock          { return lockOf(&m.queue.Queue) }
func (m *InterProcessMutex) holders() *acquire.Queue         { return &m.queue.Queue }
func (m *InterProcessMutex) identity() (lockKey, znode.Kind) { return m.key, m.queue.Kind }
func (m *InterProcessMutex) member() acquire.Member          { return acquire.Member{Queue: &m.queue.Queue} }

// unmade is the fault of a zero lock.
func unmade(constructor string) error {
	return fmt.Errorf("%w: it was made without %s", ErrInvalidLock, constructor)
}

func (m *InterProcessMutex) fault() error {
	if m.isZero() {
		return unmade("NewInterProcessMutex or NewInterProcessReadWriteLock")
	}
	return m.err
}

func (s *InterProcessSemaphore) fault() error {
	if s.isZero() {
		return unmade("NewInterProcessSemaphore")
	}
	return s.err
}

func (m *InterProcessSemaphoreMutex) fault() error {
	if m.isNil() {
		return unmade("NewInterProcessSemaphoreMutex")
	}
	return m.semaphore.err
}

func (m *InterProcessMutex) beginMember(ctx context.Context) (hold *Hold, joint bool, err error) {
	if err := m.fault(); err != nil {
		return nil, false, err
	}
	if from := holdChainOf(ctx); m.queue.Kind == znode.Read && (from.ofKind(m.key, znode.Read) != nil || from.ofKind(m.key, znode.Write) != nil) {
		return nil, false, nil // it re-enters, or is the downgrade
	}
	hold, err = m.reenter(ctx)
	return hold, true, err
}

func (s *InterProcessSemaphore) isNil() bool             { return s == nil }
func (s *InterProcessSemaphore) fullPath() string        { return s.path }
func (s *InterProcessSemaphore) describe() monitor.Lock  { return lockOf(&s.leases.Queue) }
func (s *InterProcessSemaphore) holders() *acquire.Queue { return &s.leases.Queue }

func (s *InterProcessSemaphore) beginMember(ctx context.Context) (hold *Hold, joint bool, err error) {
	if err := s.fault(); err != nil {
		return nil, false, err
	}
	return nil, false, s.allowed(ctx, 1)
}

func (m *InterProcessSemaphoreMutex) isNil() bool             { return m == nil || m.semaphore == nil }
func (m *InterProcessSemaphoreMutex) fullPath() string        { return m.semaphore.path }
func (m *InterProcessSemaphoreMutex) describe() monitor.Lock  { return m.semaphore.describe() }
func (m *InterProcessSemaphoreMutex) holders() *acquire.Queue { return m.semaphore.holders() }
func (m *InterProcessSemaphoreMutex) identity() (lockKey, znode.Kind) {
	return m.semaphore.key, znode.Lease
}

func (m *InterProcessSemaphoreMutex) member() acquire.Member {
	s := m.semaphore
	return acquire.Member{Queue: &s.leases.Queue, Turns: &s.turns.Queue, Contended: &s.contended}
}

func (m *InterProcessSemaphoreMutex) own(node acquire.Node) *ownership {
	return m.semaphore.own(node)
}

func (m *InterProcessSemaphoreMutex) beginMember(ctx context.Context) (hold *Hold, joint bool, err error) {
	hold, _, err = m.semaphore.beginMember(ctx)
	return hold, true, err
}

func (m *InterProcessMultiLock) isNil() bool      { return m == nil }
func (m *InterProcessMultiLock) fullPath() string { return "" }

func (m *InterProcessMultiLock) fault() error {
	for _, member := range m.members {
		if err := faultOf(member); err != nil {
			return err
		}
	}
	return m.err
}

// holders is that of the first member that can be used.
func (m *InterProcessMultiLock) holders() *acquire.Queue {
	if m.err == nil {
		for _, member := range m.members {
			if own, ours := member.(ownLock); ours && own.holders().Core != nil {
				return own.holders()
			}
		}
	}
	return &acquire.Queue{}
}

// beginMember is never asked: a MultiLock in a MultiLock is its members.
func (m *InterProcessMultiLock) beginMember(context.Context) (*Hold, bool, error) {
	return nil, false, nil
}
