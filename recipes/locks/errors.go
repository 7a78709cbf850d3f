package locks

import (
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

var (
	// ErrLockLost reports that another owner may have the lock.
	ErrLockLost = errors.New("lock lost")
	// ErrNodeDeleted reports a hold whose node was deleted while its session lived, by an
	// operator or by a program that takes the lock from others.
	ErrNodeDeleted = session.ErrNodeDeleted
	// ErrNotAcquired reports that another owner held the lock for as long as TryAcquire
	// waited.
	ErrNotAcquired = acquire.ErrNotAcquired
	// ErrDeadlock reports a wait that only its own caller could end.
	ErrDeadlock = errors.New("would wait for itself")
	// ErrReleased reports a hold that was released before.
	ErrReleased = errors.New("released")
	// ErrReleasePending reports a release that goes on in the background.
	ErrReleasePending = errors.New("release goes on in the background")
	// ErrInvalidLock reports a lock made with a nil argument, without members, with
	// a bad path or with a number below 1. It also reports a path that another kind
	// of lock or election is using, and a MultiLock with two numbers of leases at one path.
	ErrInvalidLock = acquire.ErrInvalidLock
	// ErrSequenceExhausted reports a queue whose sequence numbers are near their end or
	// beyond it, where their order means nothing. The numbers begin again when the node
	// at the lock's path is deleted. The servers delete it when it is idle and a
	// container.
	ErrSequenceExhausted = znode.ErrSequenceExhausted
	// ErrNotRevocable reports a node to which AttemptRevoke does not write, since it cannot
	// be that of a Revocable lock.
	ErrNotRevocable = errors.New("not revocable")
	// ErrFenced reports a write refused because the lock is gone.
	ErrFenced = errors.New("fenced: lock is gone")
	// ErrNoFence reports a hold that no transaction can check: see Transaction.Commit.
	ErrNoFence = errors.New("hold cannot be fenced")
)

// LostError is the cause of a lost hold. It matches ErrLockLost and the reason:
// framework.ErrSessionExpired, framework.ErrNotConnected (no server answered for too
// long, or EndOnSuspended), ErrNodeDeleted or framework.ErrClosed. For a lock of your own
// type the reason is the cause that its lost function was given.
//
// A server that ends a session deletes the session's nodes first. So the hold ends at
// once when the client sees that its node is gone, but without a reason. The client
// learns the reason later: within a round trip, or when it finds a server again. Until
// then the error matches ErrLockLost and no reason. From then on the same error, from
// Hold.Err and as the context's cause, matches the reason. If the client gives up the
// session before that, or is closed, the error never matches a reason.
type LostError struct {
	Path   string // the hold's node, in full; "" for a lock of your own type
	Reason error
}

// Error implements error.
func (e *LostError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%v: %v", ErrLockLost, e.Reason)
	}
	return fmt.Sprintf("%v: %s: %v", ErrLockLost, e.Path, e.Reason)
}

// Unwrap gives ErrLockLost and the reason.
func (e *LostError) Unwrap() []error { return []error{ErrLockLost, e.Reason} }

func opError(op, path string, err error) error {
	return &framework.OpError{Op: op, Path: path, Err: err}
}
