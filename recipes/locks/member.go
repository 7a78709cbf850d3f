package locks

import (
	"context"
	"fmt"
	"strings"

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

// noCopy makes go vet complain about a copy of what has it.
//
// Source: sync.noCopy.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// label is a lock for logs: its kind and its path, and never the data of its nodes.
func label(kind, path string, zero bool) string {
	if zero {
		return kind + " without a constructor"
	}
	return kind + " " + path
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

// unmade is the fault of a zero lock.
func unmade(constructor string) error {
	return fmt.Errorf("%w: it was made without %s", ErrInvalidLock, constructor)
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

func (m *InterProcessMultiLock) describe() monitor.Lock {
	l := monitor.Lock{Kind: monitor.MultiLock, Members: m.paths}
	if q := m.holders(); q.Core != nil {
		l.Participant = participantOf(q)
	}
	l.Path = strings.Join(l.Members, ", ")
	return l
}

// beginMember is never asked: a MultiLock in a MultiLock is its members.
func (m *InterProcessMultiLock) beginMember(context.Context) (*Hold, bool, error) {
	return nil, false, nil
}

// String is the kind of the lock and the paths of its members, in full, for logs.
func (m *InterProcessMultiLock) String() string {
	if m == nil || len(m.members) == 0 {
		return label(monitor.MultiLock, "", true)
	}
	var paths []string
	for _, path := range m.paths {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return label(monitor.MultiLock, strings.Join(paths, ", "), false)
}
