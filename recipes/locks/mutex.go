package locks

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// InterProcessMutex is a lock for one owner at a time, reentrant for it. It is also
// what the sides of a read/write lock are. Make it with NewInterProcessMutex. It
// has no state of its own, and any number of goroutines may use it. It must not be copied.
// Waiters are served in the order of their nodes.
//
// Source: Curator's InterProcessMutex, LockInternals.
type InterProcessMutex struct {
	_     noCopy
	queue queue
	err   error // what is wrong with how it was made
}

// NewInterProcessMutex returns the mutex at path. No other kind of lock may use that
// path. The first Acquire makes the node at path, and its parents, as containers.
// NewInterProcessMutex sends nothing and cannot fail: with a nil client, a bad path or a
// nil option, every Acquire returns ErrInvalidLock.
func NewInterProcessMutex(c *framework.Client, path string, opts ...Option) *InterProcessMutex {
	return newMutex(c, path, opts, "", nil, znode.Exclusive)
}

// NewElection returns a mutex for a recipe that elects a leader, as recipes/leader does: a
// candidate has the lock while it leads. The nodes are those of Curator's recipe: of a
// LeaderLatch with monitor.Latch, and of a LeaderSelector, whose nodes are those of a mutex,
// with monitor.Selector. Logs, tracers and the page call it so. Each Acquire has a node of
// its own, which is handed over to no other: LocalHandovers is 0.
//
// With another kind every Acquire returns ErrInvalidLock.
func NewElection(c *framework.Client, kind, path string, opts ...Option) *InterProcessMutex {
	nodes := znode.Lock
	if kind == monitor.Latch {
		nodes = znode.Latch
	}
	m := newMutex(c, path, opts, nodes, nil, znode.Exclusive)
	m.queue.Recipe, m.queue.Handovers = kind, 0
	if m.err == nil && kind != monitor.Latch && kind != monitor.Selector {
		m.err = fmt.Errorf("%w: %q is no kind of election", ErrInvalidLock, kind)
	}
	return m
}

// newMutex makes a lock with nodes of one kind, among those that count. Without a kind
// it is that of the options, alone.
func newMutex(c *framework.Client, path string, opts []Option, kind znode.Kind, kinds []znode.Kind, rule znode.Rule) *InterProcessMutex {
	m := &InterProcessMutex{}
	q := &m.queue
	m.err = q.init(c, path, opts)
	q.Kind = cmp.Or(kind, q.Kind)
	q.Recipe = cmp.Or(q.Recipe, recipeOf(q.Kind))
	if m.err != nil {
		return m
	}
	if kinds == nil {
		kinds = []znode.Kind{q.Kind}
	}
	q.Kinds, q.Rule, q.EventGrants, q.exclusive = kinds, rule, len(kinds) == 1, q.Kind != znode.Read
	return m
}

// Acquire waits until the caller has the lock or ctx ends. Called with the context of a
// hold of this lock, it re-enters: it returns another hold of the same ownership at once,
// without asking a server. The release of the last of these holds gives the lock back.
//
// A lost connection costs nothing but time: the place in the queue is kept as
// long as the session lives. If the session ends, the caller queues again at the
// end. With FailOnSessionLoss it gets framework.ErrSessionExpired instead.
//
// Errors are *framework.OpError. They match one of these:
//   - ctx.Err(), if ctx ended; after a wait the error is also a *WaitError.
//   - ErrInvalidLock, if the lock was made from a wrong argument, or another kind of lock
//     or election uses the path.
//   - ErrDeadlock, if only the caller could end the wait.
//   - ErrLockLost, if ctx comes from a hold of this lock that was lost. ctx has outlived
//     the hold then, as with context.WithoutCancel.
//   - ErrSequenceExhausted, framework.ErrTimeoutTooShort, framework.ErrClosed.
//   - framework.ErrNoAuth and other refusals by the servers.
//
// Goroutines of one client wait in a local queue behind one node, and hand the lock over
// among themselves a number of times, see LocalHandovers.
//
// Cost: one round trip if the lock is free and the node at its path exists. Behind
// others, one more to watch a node ahead. A mutex then has the lock with the event of the
// release, unless the waiter ahead of it gave up; a side of a read/write lock lists the
// queue once more. If another goroutine of this client hands the lock over, there is no
// round trip.
func (m *InterProcessMutex) Acquire(ctx context.Context) (*Hold, error) {
	return m.take(ctx, noLimit)
}

// TryAcquire waits for wait at most, also while no server answers; see Lock for its
// errors, and Acquire for the rest.
//
// Cost with wait <= 0: one round trip if another owner has the lock, none if that is a
// goroutine of this client and no MultiLock is in the queue, two if nobody has it.
func (m *InterProcessMutex) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	return m.take(ctx, limit{bounded: true, wait: wait})
}

func (m *InterProcessMutex) take(ctx context.Context, lim limit) (*Hold, error) {
	if m.isZero() {
		return nil, opError("acquire", monitor.Mutex, m.fault())
	}
	if t := m.queue.tracing(); t != nil {
		return t.acquire(ctx, lockOf(&m.queue.Queue), func(ctx context.Context) (*Hold, error) { return m.acquire(ctx, lim) })
	}
	return m.acquire(ctx, lim)
}

func (m *InterProcessMutex) acquire(ctx context.Context, lim limit) (*Hold, error) {
	hold, err := m.queueUp(ctx, lim)
	if err != nil {
		return nil, opError("acquire", m.queue.Lock, err)
	}
	return hold, nil
}

// queueUp waits for as long as the limit lasts. Thousands may wait in the local queue at
// once, so their stacks are kept so small that the smallest size is enough.
func (m *InterProcessMutex) queueUp(ctx context.Context, lim limit) (*Hold, error) {
	if err := usable(ctx, m.err); err != nil {
		return nil, err
	}
	if hold, err := m.reenter(ctx); hold != nil || err != nil {
		return hold, err
	}
	limited, cancel, err := lim.begin(ctx, m.queue.Core.Session(), m.queue.Lock)
	if err != nil {
		return nil, err
	}
	defer cancel()
	began, waitedIn := time.Now(), int64(0)
	for {
		if m.queue.FailOnLoss && waitedIn == 0 {
			waitedIn = m.queue.Core.Session().ID()
		}
		o, err := m.queue.enter(ctx, limited, lim.once(), waitedIn)
		if err != nil {
			if o != nil {
				o.decline() // it came too late
			}
			return nil, lim.verdict(ctx, limited, m.queue.Core.Session(), m.queue.Lock, began, err)
		}
		hold, err := newNodeHold(ctx, o)
		if err == nil {
			return hold, nil
		}
		// The node was lost meanwhile, and nobody has had the lock.
		if err := o.again(); err != nil {
			return nil, err
		}
		waitedIn = o.node.SessionID()
	}
}

// isZero is whether the lock was not made by its constructor.
func (m *InterProcessMutex) isZero() bool { return m == nil || m.queue.Core == nil && m.err == nil }

// usable is what every acquisition checks first.
func usable(ctx context.Context, made error) error {
	switch {
	case made != nil:
		return made
	case ctx == nil:
		return framework.ErrNilContext
	case ctx.Err() != nil:
		return contextend.Of(ctx)
	}
	return nil
}

// HeldBy reports whether ctx comes from a hold of this lock that is not lost or released.
// It is for functions that require the lock. It asks no server.
func (m *InterProcessMutex) HeldBy(ctx context.Context) bool {
	if m.isZero() || m.err != nil || ctx == nil {
		return false
	}
	return holdChainOf(ctx).holds(m.queue.key, m.queue.Kind)
}

// Err says what is wrong with how the lock was made: an error that matches ErrInvalidLock. It
// is nil if nothing is.
func (m *InterProcessMutex) Err() error { return m.fault() }

func (m *InterProcessMutex) holders() *queue { return &m.queue }

func (m *InterProcessMutex) fault() error {
	if m.isZero() {
		return unmade("NewInterProcessMutex or NewInterProcessReadWriteLock")
	}
	return m.err
}

func (m *InterProcessMutex) beginMember(ctx context.Context) (hold *Hold, joint acquire.Member, err error) {
	key := m.queue.key
	if from := holdChainOf(ctx); m.queue.Kind == znode.Read && (from.ofKind(key, znode.Read) != nil || from.ofKind(key, znode.Write) != nil) {
		return nil, joint, nil // it re-enters, or is the downgrade
	}
	hold, err = m.reenter(ctx)
	return hold, acquire.Member{Queue: &m.queue.Queue}, err
}

// String is the kind of the lock and its path, in full, for logs.
func (m *InterProcessMutex) String() string {
	if m.isZero() {
		return label(monitor.Mutex, "", true)
	}
	return label(m.queue.Recipe, m.queue.Lock, false)
}

// reenter gives another hold to a caller that has the lock already. To all other callers
// it returns neither hold nor error.
func (m *InterProcessMutex) reenter(ctx context.Context) (*Hold, error) {
	from := holdChainOf(ctx)
	if same := from.ofKind(m.queue.key, m.queue.Kind); same != nil {
		_, _ = same.ownership.now() // a deadline may have passed unseen
		hold, err := newHold(ctx, same.ownership)
		if err == nil {
			hold.entered = &m.queue
		}
		return hold, err
	}
	switch m.queue.Kind {
	case znode.Read:
		if write := from.ofKind(m.queue.key, znode.Write); write != nil {
			return m.downgrade(ctx, write.ownership)
		}
	case znode.Write:
		if from.ofKind(m.queue.key, znode.Read) != nil {
			return nil, fmt.Errorf("%w: the read side is held, and a write side waits for it", ErrDeadlock)
		}
	}
	return nil, nil
}
