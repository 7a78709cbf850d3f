package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// Lock is a lock that can be acquired. All locks of this package implement it, and so can
// a type of your own, with NewHold.
type Lock interface {
	// Acquire waits in the queue until the caller has the lock or ctx ends. It returns a
	// hold or an error, never both. After an error it cleans up, in the background if
	// need be. ctx bounds the wait and becomes the parent of Hold.Context. To limit the
	// wait only, use TryAcquire.
	//
	// If ctx ends the wait, the error matches ctx.Err() and is a *WaitError, which says
	// which node was in the way. It also matches framework.ErrNotConnected if no server
	// could be asked.
	Acquire(ctx context.Context) (*Hold, error)

	// TryAcquire is Acquire with a limit: it waits for wait at most, also while no server
	// answers. It returns one of three errors if it does not get the lock in time, each a
	// *WaitError:
	//   - ErrNotAcquired: another owner holds the lock.
	//   - framework.ErrNotConnected: no server could be asked in time.
	//   - an error that matches ctx.Err(): ctx ended.
	//
	// No error matches two of the three. With wait <= 0 it asks the server once and does
	// not queue. While the client is not connected, it does not ask. Asking takes as long
	// as the server takes to answer, two thirds of the session timeout at most. For an
	// earlier result use a small wait.
	TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error)
}

// Do acquires lock, calls work with the hold's context, and releases the hold, also if
// work panics. ctx bounds all of it. Do joins the errors of work and of Release, such
// as ErrLockLost. nil means that work succeeded and the lock was not lost before its
// release. A release that goes on in the background is not an error here, and neither
// is one that work made itself. For a nil lock Do returns ErrInvalidLock, and for a nil
// work framework.ErrInvalidArgument. It takes no lock then.
func Do(ctx context.Context, lock Lock, work func(ctx context.Context) error) error {
	return noLimit.do(ctx, lock, work)
}

// TryDo is Do with TryAcquire: wait bounds the wait for the lock and not the work.
func TryDo(ctx context.Context, lock Lock, wait time.Duration, work func(ctx context.Context) error) error {
	return limit{bounded: true, wait: wait}.do(ctx, lock, work)
}

func (l limit) do(ctx context.Context, lock Lock, work func(ctx context.Context) error) (err error) {
	if isNil(lock) {
		return fmt.Errorf("%w: it is nil", ErrInvalidLock)
	}
	if work == nil {
		return cmp.Or(faultOf(lock), fmt.Errorf("%w: work is nil", framework.ErrInvalidArgument))
	}
	hold, err := l.acquire(ctx, lock)
	if err != nil {
		return err
	}
	defer func() {
		released := hold.Release()
		if errors.Is(released, ErrReleasePending) || errors.Is(released, ErrReleased) {
			released = nil // work may have released by itself
		}
		if released != nil && errors.Is(err, released) {
			released = nil // work has said it already: of this lock, and not of another
		}
		if released != nil {
			err = errors.Join(err, released)
		}
	}()
	return work(hold.Context()) //nolint:contextcheck // it is a child of ctx
}

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
	holders() *queue
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

func (*noCopy) Lock() {}

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

// identityOf is which lock a member is, and which side. A foreign lock is none.
func identityOf(lock Lock) (lockKey, znode.Kind) {
	if m, is := lock.(interface{ identity() (lockKey, znode.Kind) }); is {
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
