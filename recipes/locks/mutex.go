package locks

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/foreign"
	"github.com/paddock-zk/paddock/internal/session"
)

// InterProcessMutex is a lock for one owner at a time, reentrant for it. It is
// also what the sides of a read/write lock are. Make it with
// NewInterProcessMutex; it holds no state of its own and may be used by any
// number of goroutines. Waiters are served in the order of their nodes.
//
// Source: Curator's InterProcessMutex, LockInternals.
type InterProcessMutex struct {
	queue
	key lockKey
	err error // what is wrong with how it was made
}

// NewInterProcessMutex is the mutex at path, which belongs to it alone. The
// node is made when the lock is first taken, and its parents, as containers.
// It sends nothing and cannot fail: a nil client, a bad path or a nil option is
// returned by every Acquire as ErrInvalidLock.
func NewInterProcessMutex(c *framework.Client, path string, opts ...Option) *InterProcessMutex {
	return newMutex(c, path, opts, lockName, []string{lockName}, aheadExclusive)
}

func newMutex(c *framework.Client, path string, opts []Option, mark string, marks []string,
	ahead func(*snapshot, int) (int, bool)) *InterProcessMutex {
	m := &InterProcessMutex{queue: queue{lock: path, path: path, kind: mark, kinds: marks, ahead: ahead,
		eventGrants: mark == lockName, exclusive: mark != readName}}
	var full string
	if m.scope, full, m.opts, m.err = parts(c, path, opts); m.err == nil {
		m.lock, m.path = full, full
		m.key = lockKey{session: m.scope.Session, path: full}
	}
	return m
}

// parts checks what every lock is made from.
func parts(c *framework.Client, path string, opts []Option) (*session.Scope, string, options, error) {
	o, ok := optionsOf(opts)
	if !ok {
		return nil, "", o, fmt.Errorf("%w: option is nil", ErrInvalidLock)
	}
	if o.handovers < 0 {
		return nil, "", o, fmt.Errorf("%w: %d local hand-overs", ErrInvalidLock, o.handovers)
	}
	scope := session.ScopeOf(c)
	if scope == nil {
		return nil, "", o, fmt.Errorf("%w: no client", ErrInvalidLock)
	}
	if path == "/" {
		return nil, "", o, fmt.Errorf("%w: the root belongs to no lock alone", ErrInvalidLock)
	}
	full, err := scope.Full(path)
	if err != nil {
		return nil, "", o, fmt.Errorf("%w: %w", ErrInvalidLock, err)
	}
	scope.Session.KeepReady()
	return scope, full, o, nil
}

// Acquire waits until the lock is ours or ctx ends. Called with the context of
// a hold of this lock it returns at once, without asking a server, with another
// hold of the same ownership; the lock is given back with the last of them.
//
// A connection that is lost meanwhile costs nothing but time: the contender in the
// queue is kept as long as the session lives. If the session ends, a new contender
// is taken at the end of the queue, or framework.ErrSessionExpired returned with
// FailOnSessionLoss.
//
// Errors are *framework.OpError. They match ctx.Err() if ctx ended, and then are a
// *WaitError if there was a wait; ErrInvalidLock; ErrDeadlock; ErrLockLost if ctx
// comes from a hold of this lock that was lost and goes on by itself, as with
// context.WithoutCancel; ErrSequenceExhausted; framework.ErrTimeoutTooShort;
// framework.ErrNoAuth and other refusals; framework.ErrClosed.
//
// Goroutines of one client wait in the local queue behind one node, and hand the lock over
// among themselves a number of times, see LocalHandovers.
//
// Cost: one round trip if the lock is free and its parent there. Behind others
// one more to watch the node ahead, and one to look again after its event; none
// for who came second in a mutex's queue.
// Behind another goroutine of this client none, if it hands the lock over.
func (m *InterProcessMutex) Acquire(ctx context.Context) (*Hold, error) {
	hold, err := m.begin(ctx)
	if hold == nil && err == nil {
		hold, err = m.take(ctx, ctx, false, false)
	}
	return hold, err
}

// TryAcquire waits at most wait, also while no server answers; see Lock for its
// errors, and Acquire for the rest.
//
// Cost with wait <= 0: one round trip if somebody has the lock, none if that is
// a goroutine of this client, two if nobody has it.
func (m *InterProcessMutex) TryAcquire(ctx context.Context, wait time.Duration) (hold *Hold, err error) {
	hold, err = m.begin(ctx)
	if hold != nil || err != nil {
		return hold, err
	}
	lim := limit{bounded: true, wait: wait}
	limited, cancel, err := lim.begin(ctx, m.scope.Session)
	if err != nil {
		return nil, opError("acquire", m.path, &WaitError{Lock: m.lock, Err: err})
	}
	defer endLimit(cancel, &hold)
	return m.take(ctx, limited, lim.once(), true)
}

// begin is what needs no server: to refuse, or to re-enter. It returns neither
// hold nor error to everybody else.
func (m *InterProcessMutex) begin(ctx context.Context) (*Hold, error) {
	if m.isZero() {
		return nil, opError("acquire", "", ErrInvalidLock)
	}
	if err := usable(ctx, m.err); err != nil {
		return nil, opError("acquire", m.path, err)
	}
	hold, err := m.reenter(ctx)
	if err != nil {
		return nil, opError("acquire", m.path, err)
	}
	return hold, nil
}

// take waits for as long as limited lasts. Thousands may wait in the local queue at once,
// so what is on the stack while they do is kept to what fits into the smallest.
func (m *InterProcessMutex) take(ctx, limited context.Context, once, tries bool) (*Hold, error) {
	began := localQueuesOf(m.scope.Session).now()
	for {
		w, hold, err := m.enter(ctx, limited, once, tries, began)
		if w != nil {
			w.await()
			hold, err = w.finish(ctx, limited, tries, began)
		}
		if hold != nil || err != nil {
			return hold, err
		}
	}
}

// enter gets a contender in the local queue, unless it gets the lock or fails already.
func (m *InterProcessMutex) enter(ctx, limited context.Context, once, tries bool, began time.Duration) (w *waiter, hold *Hold, err error) {
	var lq *localQueue
	var o *ownership
	var in *obstacle
	defer unclaimed(&hold, &o)
	if m.kind != readName && m.opts.handovers > 0 {
		if lq, w, err = localQueuesOf(m.scope.Session).join(limited, m, once); w != nil {
			sharedOf(m.scope.Session).waitLog.arm()
			return w, nil, nil
		}
	}
	switch {
	case err != nil:
		in = lq.seenAhead()
	case lq != nil:
		o, in, err = lq.lead(limited, m, nil, once)
	default:
		o, in, err = m.alone(limited, once)
	}
	if err != nil {
		return nil, nil, m.refused(ctx, limited, tries, in, began, err)
	}
	hold, err = m.conclude(ctx, o)
	return nil, hold, err
}

// unclaimed is deferred: it gives back an ownership without a hold, because it came too
// late or a method of the caller's context panicked.
func unclaimed(hold **Hold, t **ownership) {
	if *hold == nil && *t != nil {
		(*t).decline()
	}
}

// alone gets the lock with a node that nobody else waits behind in the local queue. After an
// error it says who was in the way.
func (m *InterProcessMutex) alone(ctx context.Context, once bool) (o *ownership, in *obstacle, err error) {
	p := &contender{queue: &m.queue, tag: tagOf(ctx, m.scope.Session)}
	defer func() {
		if o == nil { // also if a function of the caller's has panicked
			p.leave()
		}
	}()
	if o, err = p.own(ctx, once, m.own); err != nil {
		in = p.seenAhead()
	}
	return o, in, err
}

// refused makes of how it ended what the caller is told.
func (m *InterProcessMutex) refused(ctx, limited context.Context, tries bool, in *obstacle, began time.Duration, err error) error {
	e := &ending{ctx: ctx, limited: limited, tries: tries, lock: m.lock, waited: localQueuesOf(m.scope.Session).now() - began, obstacle: in}
	return opError("acquire", m.path, e.verdict(m.scope.Session, err))
}

// conclude makes a hold of what was won.
func (m *InterProcessMutex) conclude(ctx context.Context, o *ownership) (*Hold, error) {
	hold, err := m.hold(ctx, o)
	if err != nil {
		return nil, opError("acquire", m.path, err)
	}
	return hold, nil
}

// isZero is whether the lock was not made by its constructor.
func (m *InterProcessMutex) isZero() bool { return m == nil || m.scope == nil && m.err == nil }

// usable is what every acquisition checks first.
func usable(ctx context.Context, made error) error {
	switch {
	case made != nil:
		return made
	case ctx == nil:
		return framework.ErrNilContext
	case ctx.Err() != nil:
		return foreign.ContextEnd(ctx)
	}
	return nil
}

// reenter gives another hold to who has the lock already. It returns neither
// hold nor error to everybody else.
func (m *InterProcessMutex) reenter(ctx context.Context) (*Hold, error) {
	from := holdChainOf(ctx)
	if same := from.find(m.key, func(h *Hold) bool { return h.ownership.nodeKind() == m.kind }); same != nil {
		_, _ = same.ownership.now() // a deadline may have passed unseen
		return newHold(ctx, same.ownership)
	}
	switch m.kind {
	case readName:
		if write := from.find(m.key, nil); write != nil {
			return m.downgrade(ctx, write.ownership)
		}
	case writeName:
		if from.find(m.key, nil) != nil {
			return nil, fmt.Errorf("%w: the read side is held, and a write side waits for it", ErrDeadlock)
		}
	}
	return nil, nil
}

// own is the ownership of a contender.
func (m *InterProcessMutex) own(p *contender) *ownership {
	o := newOwnership(m.key, m.scope.Relative(p.node()))
	o.contender = p
	if m.kind != readName {
		o.token = p.czxid
	}
	return o
}

// hold hands an ownership to who asked for it.
func (q *queue) hold(ctx context.Context, o *ownership) (*Hold, error) {
	hold, err := newHold(ctx, o)
	if err != nil {
		return nil, err // lost in the meantime
	}
	if q.opts.revocable {
		stop := o.contender.observe(o.revoke) //nolint:contextcheck // it observes for as long as the hold lasts
		o.mu.Lock()
		o.unobserve = stop
		o.mu.Unlock()
	}
	return hold, nil
}

// HeldBy reports whether ctx comes from a hold of this lock that is not lost or
// released; for functions that require it. It asks no server.
func (m *InterProcessMutex) HeldBy(ctx context.Context) bool {
	if m.isZero() || m.err != nil || ctx == nil {
		return false
	}
	return holdChainOf(ctx).holds(m.key, m.kind)
}
