package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// InterProcessMultiLock is several locks as one: all or none, and lost as soon
// as one is. Make it with NewInterProcessMultiLock; it holds no state and may be
// used by any number of goroutines.
//
// Source: Curator's InterProcessMultiLock. Differs: its members are taken in an
// order of their own, a failure stops it at once, and the wait is limited as a
// whole.
type InterProcessMultiLock struct {
	members []Lock
	err     error
}

// NewInterProcessMultiLock is the locks given as one. Locks of this package are
// taken in the order of their paths, so that no two MultiLocks can deadlock, in
// whatever order they name their members. All other locks follow in the order
// given. If one cannot be had, those taken are given back in reverse. Nested
// ones are flattened, the same lock twice counts once, and both sides of a
// read/write lock are its write side; nil and no lock are ErrInvalidLock. Members
// that the caller holds already are re-entered.
func NewInterProcessMultiLock(locks ...Lock) *InterProcessMultiLock {
	m := &InterProcessMultiLock{}
	if len(locks) == 0 {
		m.err = fmt.Errorf("%w: no members", ErrInvalidLock)
	}
	for i, lock := range locks {
		if err := m.add(lock); err != nil && m.err == nil {
			m.err = fmt.Errorf("member %d: %w", i, err)
		}
	}
	slices.SortStableFunc(m.members, func(a, b Lock) int {
		pa, pb := placeOf(a), placeOf(b)
		switch {
		case pa == "" || pb == "": // foreign ones last
			return -cmp.Compare(pa, pb)
		}
		return cmp.Compare(pa, pb)
	})
	return m
}

// add takes in a member, or those of a MultiLock.
func (m *InterProcessMultiLock) add(lock Lock) error {
	if isNil(lock) {
		return fmt.Errorf("%w: it is nil", ErrInvalidLock)
	}
	if nested, ok := lock.(*InterProcessMultiLock); ok {
		for _, inner := range nested.members {
			if err := m.add(inner); err != nil {
				return err
			}
		}
		return nested.err
	}
	key, mark := identity(lock)
	for i, have := range m.members {
		haveKey, haveMark := identity(have)
		switch {
		case same(have, lock), key != lockKey{} && key == haveKey && mark == haveMark:
			return nil
		case key != lockKey{} && key == haveKey && mark == writeName && haveMark == readName:
			m.members[i] = lock
			return nil
		case key != lockKey{} && key == haveKey && mark == readName && haveMark == writeName:
			return nil
		}
	}
	m.members = append(m.members, lock)
	return nil
}

// same is whether two members are one value, for types that can be compared.
func same(a, b Lock) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// isNil sees also nil pointers of our own types in the interface.
func isNil(lock Lock) bool {
	switch l := lock.(type) {
	case nil:
		return true
	case *InterProcessMutex:
		return l == nil
	case *InterProcessSemaphoreMutex:
		return l == nil
	case *InterProcessSemaphore:
		return l == nil
	case *InterProcessMultiLock:
		return l == nil
	}
	return false
}

// identity is which lock a member is, and which side. A semaphore is none: each
// lease is another.
func identity(lock Lock) (lockKey, string) {
	switch l := lock.(type) {
	case *InterProcessMutex:
		return l.key, l.mark
	case *InterProcessSemaphoreMutex:
		return l.semaphore.key, leaseName
	}
	return lockKey{}, ""
}

// placeOf is what members are ordered by: the path of those of this package.
func placeOf(lock Lock) string {
	switch l := lock.(type) {
	case *InterProcessMutex:
		return l.path
	case *InterProcessSemaphoreMutex:
		return l.semaphore.path
	case *InterProcessSemaphore:
		return l.path
	}
	return ""
}

// Acquire waits until all members are ours or ctx ends. Errors are those of the
// member that could not be had; refusals met in giving others back are joined.
func (m *InterProcessMultiLock) Acquire(ctx context.Context) (*Hold, error) {
	return m.take(ctx, func(lock Lock) (*Hold, error) { return lock.Acquire(ctx) })
}

// TryAcquire waits at most wait for all members together; see Lock.
func (m *InterProcessMultiLock) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	until := time.Now().Add(wait)
	return m.take(ctx, func(lock Lock) (*Hold, error) {
		left := wait
		if wait > 0 {
			// Members that come late are still asked, without waiting for them.
			left = max(0, time.Until(until))
		}
		return lock.TryAcquire(ctx, left)
	})
}

func (m *InterProcessMultiLock) take(ctx context.Context, acquire func(Lock) (*Hold, error)) (*Hold, error) {
	if m == nil || len(m.members) == 0 && m.err == nil {
		return nil, opError("acquire", "multi-lock", ErrInvalidLock)
	}
	if err := usable(ctx, m.err); err != nil {
		return nil, opError("acquire", "multi-lock", err)
	}
	holds := make([]*Hold, 0, len(m.members))
	for _, lock := range m.members {
		hold, err := acquire(lock)
		if err == nil && hold == nil {
			err = fmt.Errorf("%w: a member's Acquire returned neither a hold nor an error", ErrInvalidLock)
		}
		if err != nil {
			return nil, errors.Join(err, refusals(releaseAll(holds)))
		}
		holds = append(holds, hold)
	}
	hold, err := newGroup(ctx, holds)
	if err != nil {
		return nil, opError("acquire", "multi-lock", err)
	}
	return hold, nil
}
