package locks

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// InterProcessSemaphore is a lock with a number of leases: so many callers can hold
// it at a time. Callers are served in the order in which their requests reach the
// servers, so goroutines of one process may overtake each other.
//
// All lock objects must state the same number, and nothing compares the numbers. Each goes
// by its own, so as many leases can be held as the largest number says.
//
// Source: Curator's InterProcessSemaphoreV2.
type InterProcessSemaphore struct {
	_      noCopy
	turns  queue // of those who are being served, one at a time
	leases queue
	total  int
	err    error
	// contended is whether another participant was in the way the last time. It only
	// decides how to ask for leases.
	contended atomic.Bool
}

// NewInterProcessSemaphore returns the semaphore at path. No other kind of lock may use
// that path. Like NewInterProcessMutex it sends nothing and cannot fail. With fewer than
// one lease every Acquire returns ErrInvalidLock.
func NewInterProcessSemaphore(c *framework.Client, path string, leases int, opts ...Option) *InterProcessSemaphore {
	s := &InterProcessSemaphore{total: leases}
	q := &s.leases
	q.Recipe = monitor.Semaphore
	if s.err = q.init(c, path, opts); s.err == nil && leases < 1 {
		s.err, q.Core = fmt.Errorf("%w: %d leases: there must be one at least", ErrInvalidLock, leases), nil
	}
	if s.err != nil {
		return s
	}
	s.turns = *q
	s.turns.Path, s.turns.Kinds, s.turns.Rule = session.Join(q.Lock, znode.Turns), []znode.Kind{znode.Lock}, znode.Exclusive
	s.turns.Data, s.turns.Revocable = nil, false // nobody holds a turn
	q.Path, q.Kind, q.Kinds, q.Rule = session.Join(q.Lock, znode.Leases), znode.Lease, []znode.Kind{znode.Lease}, znode.FirstN(leases)
	return s
}

// Acquire takes one lease. Each call takes another one, also under a hold of this
// semaphore. It returns ErrDeadlock if the holds that ctx comes from have all leases.
//
// Errors are as from InterProcessMutex.Acquire.
//
// Cost: one round trip if nobody is in the way and the nodes "locks" and "leases"
// below the path exist. Two if another participant was in the way of the same lock
// object the last time.
func (s *InterProcessSemaphore) Acquire(ctx context.Context) (*Hold, error) {
	return s.take(ctx, 1, noLimit)
}

// TryAcquire waits for wait at most; see Lock. With wait <= 0 it does not wait for a
// lease to be returned. It does wait for callers ahead that are just getting theirs.
func (s *InterProcessSemaphore) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	return s.take(ctx, 1, limit{bounded: true, wait: wait})
}

// AcquireN takes n leases as one hold, all or none. Its Members can be released one by
// one. If n is below one or above the number of leases, it returns ErrInvalidLock at
// once.
//
// Owners that take leases one after another, as Curator does, could wait for AcquireN
// while it waits for them. Therefore AcquireN looks at the queue if nothing moves for a
// quarter of a second or more. If a participant behind it has a lease already, AcquireN
// gives up its turn and queues again at the end.
func (s *InterProcessSemaphore) AcquireN(ctx context.Context, n int) (*Hold, error) {
	return s.take(ctx, n, noLimit)
}

// TryAcquireN is AcquireN with the limits of TryAcquire.
func (s *InterProcessSemaphore) TryAcquireN(ctx context.Context, n int, wait time.Duration) (*Hold, error) {
	return s.take(ctx, n, limit{bounded: true, wait: wait})
}

func (s *InterProcessSemaphore) take(ctx context.Context, n int, lim limit) (*Hold, error) {
	if s.isZero() {
		return nil, opError("acquire", monitor.Semaphore, s.fault())
	}
	if t := s.leases.tracing(); t != nil {
		return t.acquire(ctx, lockOf(&s.leases.Queue), func(ctx context.Context) (*Hold, error) { return s.acquire(ctx, n, lim) })
	}
	return s.acquire(ctx, n, lim)
}

// isZero is whether the semaphore was not made by its constructor.
func (s *InterProcessSemaphore) isZero() bool {
	return s == nil || s.leases.Core == nil && s.err == nil
}

// allowed refuses what could never be granted.
func (s *InterProcessSemaphore) allowed(ctx context.Context, n int) error {
	if err := usable(ctx, s.err); err != nil {
		return err
	}
	if n < 1 || n > s.total {
		return fmt.Errorf("%w: %d leases of %d", ErrInvalidLock, n, s.total)
	}
	held := 0
	holdChainOf(ctx).every(s.leases.key, func(o *ownership) {
		if state, _ := o.now(); o.nodeKind() == znode.Lease && (state == Held || state == Uncertain) {
			held++
		}
	})
	if held+n > s.total {
		return fmt.Errorf("%w: %d of %d leases are held by the caller, who wants %d more", ErrDeadlock, held, s.total, n)
	}
	return nil
}

func (s *InterProcessSemaphore) acquire(ctx context.Context, n int, lim limit) (_ *Hold, err error) {
	defer func() {
		if err != nil {
			err = opError("acquire", s.leases.Lock, err)
		}
	}()
	if err := s.allowed(ctx, n); err != nil {
		return nil, err
	}
	began := time.Now()
	limited, cancel, err := lim.begin(ctx, s.turns.Core.Session(), s.leases.Lock)
	if err != nil {
		return nil, err
	}
	defer cancel()
	for waitedIn := int64(0); ; {
		got := &nodesHost{queues: func(int) *queue { return &s.leases }}
		got.spare, got.trace, got.log = s.total-n, acquireTraceOf(ctx), &s.turns.shared.waitLog
		a := acquire.NewSemaphore(&s.turns.Queue, &s.leases.Queue, n, s.total, ownerAlone(ctx, s.turns.Core.Session(), s.leases.Lock), &s.contended, got)
		a.WaitedIn(waitedIn)
		err = a.Run(limited, lim.once())
		s.contended.Store(a.SawAhead())
		if err != nil {
			return nil, lim.verdict(ctx, limited, s.turns.Core.Session(), s.leases.Lock, began, err)
		}
		switch leases, err := holdAll(ctx, got.owned); {
		case err != nil:
			return nil, err
		case len(leases) == 1:
			return leases[0], nil
		case len(leases) > 1:
			hold, err := newGroup(ctx, leases)
			if err == nil {
				return hold, nil
			}
			if err := again(leases, err); err != nil {
				return nil, err
			}
		}
		waitedIn = got.owned[0].node.SessionID()
	}
}

func (s *InterProcessSemaphore) holders() *queue { return &s.leases }

func (s *InterProcessSemaphore) fault() error {
	if s.isZero() {
		return unmade("NewInterProcessSemaphore")
	}
	return s.err
}

func (s *InterProcessSemaphore) beginMember(ctx context.Context) (hold *Hold, joint acquire.Member, err error) { //nolint:unparam // it is a method of ownMember
	return nil, joint, s.allowed(ctx, 1)
}

// String is the kind of the lock and its path, in full, for logs.
func (s *InterProcessSemaphore) String() string {
	if s.isZero() {
		return label(monitor.Semaphore, "", true)
	}
	return label(s.leases.Recipe, s.leases.Lock, false)
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
		return nil, opError("participants", s.leases.Lock, err)
	}
	return reading(ctx, s.leases.Core, s.leases.Lock, s.participants)
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
