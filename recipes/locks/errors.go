package locks

import (
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/foreign"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

var (
	// ErrLockLost reports that somebody else may have the lock.
	ErrLockLost = errors.New("lock lost")
	// ErrNodeDeleted reports a hold whose node somebody deleted while its session
	// lived: an operator, or a program that takes the lock from others.
	ErrNodeDeleted = session.ErrNodeDeleted
	// ErrNotAcquired reports that somebody else held the lock for as long as
	// TryAcquire waited.
	ErrNotAcquired = acquire.ErrNotAcquired
	// ErrDeadlock reports a wait that only its own caller could end.
	ErrDeadlock = errors.New("would wait for itself")
	// ErrReleased reports a hold that was released before.
	ErrReleased = errors.New("released")
	// ErrReleasePending reports a release that goes on in the background.
	ErrReleasePending = errors.New("release goes on in the background")
	// ErrInvalidLock reports a lock built from nil, nothing, a bad path or a
	// number below 1. It also reports a path that another kind of lock is using,
	// and a semaphore that this client uses with another number of leases.
	ErrInvalidLock = acquire.ErrInvalidLock
	// ErrSequenceExhausted reports a queue whose numbers are near their end, or
	// have passed it, so that their order means nothing. It begins again when
	// the lock's node is deleted: the servers do so with an idle container.
	ErrSequenceExhausted = znode.ErrSequenceExhausted
	// ErrFenced reports a write refused because the lock is gone.
	ErrFenced = errors.New("fenced: lock is gone")
	// ErrNoFence reports a hold that cannot be proved to the ensemble.
	ErrNoFence = errors.New("hold cannot be fenced")
)

func init() {
	foreign.Reserve(ErrLockLost, ErrNodeDeleted, ErrNotAcquired, ErrDeadlock, ErrReleased, ErrReleasePending, ErrInvalidLock, ErrSequenceExhausted,
		ErrFenced, ErrNoFence)
}

// LostError is the cause of a lost hold. It matches ErrLockLost and the reason:
// framework.ErrSessionExpired, framework.ErrNotConnected (silence for too long,
// or suspended), ErrNodeDeleted or framework.ErrClosed; for a lock of yours, what
// its lost function was given.
//
// A server that ends a session deletes the session's nodes first. So when a node
// is seen to be gone, the hold ends at once, and the reason may be known only
// later: within a round trip, or when a server is found again. Until then the
// error matches ErrLockLost and no reason. It is settled in place: the same error,
// from Hold.Err and as the context's cause, matches the reason from then on. If
// the client gives up the session before that or is closed, it stays open.
type LostError struct {
	Path   string // the node that stood for the hold, in full; "" for a lock of yours
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
