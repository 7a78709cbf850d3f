package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// InterProcessMultiLock is several locks as one: it takes all or none, and is lost as
// soon as one of them is. Make it with NewInterProcessMultiLock; it holds no state and
// may be used by any number of goroutines.
//
// Source: Curator's InterProcessMultiLock. Differs: its members are taken in one
// step, a failure stops it at once, and the wait is limited as a whole.
type InterProcessMultiLock struct {
	members []Lock
	ordered bool
	err     error
}

// NewInterProcessMultiLock makes one lock of several. It takes mutexes, sides of
// read/write locks and semaphore mutexes of one client together: one transaction puts a
// node into each queue. So no two MultiLocks can deadlock, in whatever order they name
// their members.
//
// Other owners may take the same locks one after another. While a MultiLock does not have
// all members, it yields its place to an owner behind it that holds what it waits for. So
// a waiting MultiLock blocks nobody for ever.
//
// It takes all other members after that: those of this package in the order of their
// paths, then those of types of your own in the order given. If it cannot get one, it
// gives back those that it has, in reverse. Nested MultiLocks are flattened, the same
// lock twice counts once, and both sides of a read/write lock are its write side. A nil
// lock, or no lock at all, is ErrInvalidLock. Members that the caller holds already are
// re-entered.
//
// If a member of a type of your own has a method Unwrap() Lock, the MultiLock takes the
// lock that this returns, together with the others. It does not call the member's
// Acquire.
func NewInterProcessMultiLock(lockSet ...Lock) *InterProcessMultiLock {
	m := &InterProcessMultiLock{}
	if len(lockSet) == 0 {
		m.err = fmt.Errorf("%w: no members", ErrInvalidLock)
	}
	for i, lock := range lockSet {
		if err := m.add(lock); err != nil && m.err == nil {
			m.err = fmt.Errorf("member %d: %w", i, err)
		}
	}
	slices.SortStableFunc(m.members, func(a, b Lock) int {
		pa, pb := pathOf(a), pathOf(b)
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
	for range mostWrapped {
		wrapper, wraps := lock.(interface{ Unwrap() Lock })
		if !wraps {
			break
		}
		if lock = wrapper.Unwrap(); isNil(lock) {
			return fmt.Errorf("%w: its Unwrap returns nil", ErrInvalidLock)
		}
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
		case key != lockKey{} && key == haveKey && mark == znode.Write && haveMark == znode.Read:
			m.members[i] = lock
			return nil
		case key != lockKey{} && key == haveKey && mark == znode.Read && haveMark == znode.Write:
			return nil
		}
	}
	m.members = append(m.members, lock)
	return nil
}

// mostWrapped is how often a lock may be wrapped. One that wraps itself is then taken as
// what it is.
const mostWrapped = 100

// same is whether two members are one value, for types that can be compared.
func same(a, b Lock) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// isNil is also true for nil pointers of our own types in the interface.
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
func identity(lock Lock) (lockKey, znode.Kind) {
	switch l := lock.(type) {
	case *InterProcessMutex:
		return l.key, l.queue.Kind
	case *InterProcessSemaphoreMutex:
		return l.semaphore.key, znode.Lease
	}
	return lockKey{}, ""
}

// pathOf is what members are ordered by: the path of those of this package.
func pathOf(lock Lock) string {
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

// Ordered returns a copy that takes its members one by one in the order of their paths.
// Use it where many owners nest the same locks in that order: it then gets its turn
// sooner. Otherwise it is slower.
func (m *InterProcessMultiLock) Ordered() *InterProcessMultiLock {
	if m == nil {
		return nil
	}
	ordered := *m
	ordered.ordered = true
	return &ordered
}

// Acquire waits until the caller has all members or ctx ends. Errors are those of
// InterProcessMutex.Acquire and of members of your own types, and framework.ErrTooLarge
// if the nodes do not fit into one transaction of half a megabyte. If the servers refuse
// to delete nodes of members that it gives back, it joins these errors.
//
// Cost: one round trip for any number of members of one client that are free and whose
// parents are there, and one to release. It is one more if another owner was in the way
// of a semaphore mutex the last time. On servers before 3.6 the first MultiLock of each
// client costs it a reconnect.
func (m *InterProcessMultiLock) Acquire(ctx context.Context) (*Hold, error) {
	if t := m.tracing(ctx); t != nil {
		return m.traced(ctx, t, noLimit)
	}
	return m.take(ctx, noLimit)
}

// TryAcquire waits for wait at most, for all members together; see Lock.
func (m *InterProcessMultiLock) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	if t := m.tracing(ctx); t != nil {
		return m.traced(ctx, t, limit{bounded: true, wait: wait})
	}
	return m.take(ctx, limit{bounded: true, wait: wait})
}

func (m *InterProcessMultiLock) take(ctx context.Context, lim limit) (*Hold, error) {
	if m == nil || len(m.members) == 0 && m.err == nil {
		return nil, opError("acquire", "multi-lock", ErrInvalidLock)
	}
	if err := usable(ctx, m.err); err != nil {
		return nil, opError("acquire", "multi-lock", err)
	}
	holds := make([]*Hold, len(m.members))
	if err := m.takeAll(ctx, lim, holds); err != nil {
		return nil, err
	}
	hold, err := newGroup(ctx, holds)
	if err != nil {
		return nil, opError("acquire", "multi-lock", err)
	}
	return hold, nil
}

// takeAll takes every member, or none. After an error, or if a function of the caller
// panics, it gives back those that it has.
func (m *InterProcessMultiLock) takeAll(ctx context.Context, lim limit, holds []*Hold) (err error) {
	whole := false
	defer func() {
		if !whole {
			have := slices.DeleteFunc(holds, func(h *Hold) bool { return h == nil })
			err = errors.Join(err, refusals(releaseAll(have)))
		}
	}()
	until := time.Now().Add(lim.wait)
	joint, err := m.joint(ctx, holds)
	if err != nil {
		return err
	}
	if len(joint) > 1 {
		if err := m.takeJointly(ctx, lim, joint, holds); err != nil {
			return err
		}
	}
	if err := m.takeOthers(ctx, lim, until, holds); err != nil {
		return err
	}
	whole = true
	return nil
}

// takeOthers takes the members of which there is no hold yet, one after another.
func (m *InterProcessMultiLock) takeOthers(ctx context.Context, lim limit, until time.Time, holds []*Hold) error {
	for i, lock := range m.members {
		if holds[i] != nil {
			continue
		}
		hold, err := lim.acquire(ctx, lock, until)
		if err == nil && hold == nil {
			err = fmt.Errorf("%w: a member's Acquire returned neither a hold nor an error", ErrInvalidLock)
		}
		if err != nil {
			return err
		}
		holds[i] = hold
	}
	return nil
}

// acquire takes one lock within what is left of the wait. One that comes late is
// still asked, without waiting for it.
func (l limit) acquire(ctx context.Context, lock Lock, until time.Time) (*Hold, error) {
	switch {
	case !l.bounded:
		return lock.Acquire(ctx)
	case l.wait > 0:
		return lock.TryAcquire(ctx, max(0, time.Until(until)))
	}
	return lock.TryAcquire(ctx, l.wait)
}

// joint are the members to be taken in one step: mutexes, sides and semaphore
// mutexes of the client that the first of them is of. What the caller holds
// already is re-entered, and what it waits for itself refused.
func (m *InterProcessMultiLock) joint(ctx context.Context, holds []*Hold) (joint []int, err error) {
	var of *session.Session
	for i, lock := range m.members {
		var key lockKey
		switch l := lock.(type) {
		case *InterProcessMutex:
			if l.err != nil {
				return nil, opError("acquire", l.path, l.err)
			}
			if key = l.key; l.queue.Kind == znode.Read && holdChainOf(ctx).find(key, nil) != nil {
				continue // re-entered, or the downgrade
			}
			if holds[i], err = l.reenter(ctx); err != nil {
				return nil, opError("acquire", l.path, err)
			}
		case *InterProcessSemaphoreMutex:
			key = l.semaphore.key
			if err := l.semaphore.allowed(ctx, 1); err != nil {
				return nil, opError("acquire", l.semaphore.path, err)
			}
		case *InterProcessSemaphore:
			if err := l.allowed(ctx, 1); err != nil {
				return nil, opError("acquire", l.path, err)
			}
		}
		if of == nil {
			of = key.session
		}
		if holds[i] == nil && key.session != nil && key.session == of {
			joint = append(joint, i)
		}
	}
	return joint, nil
}

// takeJointly takes members in one step.
func (m *InterProcessMultiLock) takeJointly(ctx context.Context, lim limit, joint []int, holds []*Hold) error {
	lockSet := make([]Lock, len(joint))
	for n, i := range joint {
		lockSet[n] = m.members[i]
	}
	semaphores, err := useSemaphores(lockSet)
	defer semaphores.done()
	if err != nil {
		return err
	}
	s, label := of(lockSet[0]), pathsOf(lockSet)
	a, got := m.jointAttempt(ctx, lockSet)
	began := time.Now()
	limited, cancel, err := lim.begin(ctx, s)
	if err != nil {
		return opError("acquire", label, &WaitError{Lock: label, Err: err})
	}
	defer cancel()
	if err := a.Run(limited, lim.once()); err != nil {
		return opError("acquire", label, lim.verdict(ctx, limited, &a.Attempt, label, began, err))
	}
	return m.holdJointly(ctx, got.owned, joint, holds)
}

// jointAttempt sets out to get the nodes of locks in one step.
func (m *InterProcessMultiLock) jointAttempt(ctx context.Context, lockSet []Lock) (*acquire.Multi, *nodes) {
	members := make([]acquire.Member, len(lockSet))
	for i, lock := range lockSet {
		members[i] = memberOf(lock)
	}
	got := &nodes{own: func(i int, node acquire.Node) *ownership { return own(lockSet[i], node) }, told: acquiringOf(ctx, of(lockSet[0]))}
	return acquire.NewMulti(members, m.ordered, tagOf(ctx, of(lockSet[0])), got), got
}

// holdJointly makes a hold of each node that was won.
func (m *InterProcessMultiLock) holdJointly(ctx context.Context, won []*ownership, joint []int, holds []*Hold) (err error) {
	defer func() { unclaimAll(won) }()
	for _, i := range joint {
		q := won[0].queue
		if holds[i], err = q.hold(ctx, won[0]); err != nil {
			return opError("acquire", q.Path, err)
		}
		won = won[1:]
		if l, ok := m.members[i].(*InterProcessSemaphoreMutex); ok {
			l.semaphore.inUse(holds[i].ownership)
		}
	}
	return nil
}

// memberOf is a lock of ours as an attempt takes it together with others.
func memberOf(lock Lock) acquire.Member {
	if l, ok := lock.(*InterProcessSemaphoreMutex); ok {
		return acquire.Member{Queue: &l.semaphore.leases.Queue, Turns: &l.semaphore.turns.Queue, Contended: &l.semaphore.contended}
	}
	return acquire.Member{Queue: &lock.(*InterProcessMutex).queue.Queue} //nolint:forcetypeassert // there are no others
}

// own is the ownership of a node of a lock of ours.
func own(lock Lock, node acquire.Node) *ownership {
	if l, ok := lock.(*InterProcessSemaphoreMutex); ok {
		return l.semaphore.own(node)
	}
	return lock.(*InterProcessMutex).own(node) //nolint:forcetypeassert // there are no others
}

// of is the session of the client of a lock of ours.
func of(lock Lock) *session.Session {
	key, _ := identity(lock)
	return key.session
}

// pathsOf is what errors call a MultiLock.
func pathsOf(lockSet []Lock) string {
	var paths []string
	for _, lock := range lockSet {
		paths = append(paths, pathOf(lock))
	}
	if more := len(paths) - 3; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:3], ", "), more)
	}
	return strings.Join(paths, ", ")
}

// usedSemaphores are semaphores that an acquisition uses.
type usedSemaphores []*InterProcessSemaphore

// useSemaphores begins the use of those among locks of one client.
func useSemaphores(lockSet []Lock) (used usedSemaphores, err error) {
	for _, lock := range lockSet {
		l, ok := lock.(*InterProcessSemaphoreMutex)
		if !ok {
			continue
		}
		s := l.semaphore
		if err := sharedOf(s.turns.Core.Session()).leases.use(s.path, s.total, 1); err != nil {
			return used, opError("acquire", s.path, err)
		}
		used = append(used, s)
	}
	return used, nil
}

func (used usedSemaphores) done() {
	for _, s := range used {
		sharedOf(s.turns.Core.Session()).leases.done(s.path)
	}
}
