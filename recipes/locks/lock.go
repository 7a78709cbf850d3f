package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
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
	if lock == nil {
		return faultOf(lock)
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

// acquire takes a lock within the limit.
func (l limit) acquire(ctx context.Context, lock Lock) (hold *Hold, err error) {
	if l.bounded {
		hold, err = lock.TryAcquire(ctx, l.wait)
	} else {
		hold, err = lock.Acquire(ctx)
	}
	if hold.isNone() {
		if hold = nil; err == nil {
			err = fmt.Errorf("%w: its Acquire returned neither a hold nor an error", ErrInvalidLock)
		}
	} else if err == nil && hold.State() == Released {
		return nil, fmt.Errorf("%w: its Acquire returned a hold that was released", ErrInvalidLock)
	}
	return hold, err
}

// ownMember is a member of a MultiLock that is of this package. All others are foreign.
type ownMember interface {
	Lock
	// holders is the queue of the nodes that have the lock.
	holders() *queue
	// beginMember does what needs no server before a MultiLock takes it: it refuses, or
	// re-enters. joint is what a MultiLock can take in one step with others of its client. It
	// has no Queue if there is no such thing.
	beginMember(ctx context.Context) (hold *Hold, joint acquire.Member, err error)
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

// faultOf is what is wrong with how a lock was made. Of a foreign one that is not known.
func faultOf(lock Lock) error {
	if lock == nil {
		return fmt.Errorf("%w: it is nil", ErrInvalidLock)
	}
	if own, ours := lock.(interface{ fault() error }); ours {
		return own.fault()
	}
	return nil
}

// unmade is the fault of a zero lock.
func unmade(constructor string) error {
	return fmt.Errorf("%w: it was made without %s", ErrInvalidLock, constructor)
}
