package locks

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// tracing tells the tracer and the log of acquisitions and holds.
type tracing struct {
	monitor.Tracer
	session *session.Session
}

// tracing is that of the queue's client. It is nil if neither a tracer nor the log takes
// operations that end well, and for the queue of a lock that cannot be used.
func (q *queue) tracing() *tracing {
	switch {
	case q.Core == nil:
		return nil
	case q.tracer != nil:
		return &tracing{q.tracer, q.Core.Session()}
	case q.Core.Session().Log().Core().Enabled(zapcore.DebugLevel):
		return &tracing{monitor.Nothing{}, q.Core.Session()}
	}
	return nil
}

// End tells the tracer and the log.
func (t *tracing) End(ctx context.Context, op monitor.Operation, r monitor.Result) {
	logEnd(t.session.Log(), op, r)
	t.Tracer.End(ctx, op, r)
}

// recipeOf is what a lock is called that has nodes of a kind.
func recipeOf(kind znode.Kind) string {
	switch kind {
	case znode.Read:
		return monitor.ReadLock
	case znode.Write:
		return monitor.WriteLock
	}
	return monitor.Mutex
}

// lockOf is what the tracer and the log call the lock of a queue.
func lockOf(q *acquire.Queue) monitor.Lock {
	return monitor.Lock{Kind: q.Recipe, Path: q.Lock, Participant: participantOf(q)}
}

// participantOf is what is written into the nodes, "" if that is not known without a
// connection.
func participantOf(q *acquire.Queue) string {
	c, _ := q.Core.Session().ConnOf(0) // nil without one
	return string(q.NodeData(c))
}

// lock is what the tracer and the log call what an ownership is of.
func (o *ownership) lock() monitor.Lock {
	l := lockOf(&o.queue.Queue)
	l.Node, l.Token = o.node.Path(), o.node.Token()
	return l
}

// acquireTrace is an acquisition as the tracer knows it. Only the goroutine that acquires
// uses it.
type acquireTrace struct {
	*tracing
	ctx    context.Context // that Begin has returned
	op     monitor.Operation
	waited bool
	ahead  int
	local  bool // it was handed the node of another owner
}

// acquire tells of an acquisition. It is a separate function, since every waiter pays for
// what is on its stack, also without a tracer.
func (t *tracing) acquire(ctx context.Context, lock monitor.Lock, take func(context.Context) (*Hold, error)) (*Hold, error) {
	if ctx == nil {
		return take(ctx) // which refuses it
	}
	a := &acquireTrace{tracing: t, op: monitor.Operation{Kind: monitor.Acquire, Began: time.Now(), Lock: lock}}
	a.ctx = t.begin(ctx, a.op)
	hold, err := take(context.WithValue(a.ctx, acquireTraceKey{}, a)) //nolint:contextcheck // it is ctx, with the values of the tracer
	if hold != nil {
		t.hold(ctx, hold, lock)
	}
	a.end(hold, err)
	return hold, err
}

// begin is Begin for a context that may come from holds, which must not get lost.
func (t *tracing) begin(ctx context.Context, op monitor.Operation) context.Context {
	if of := t.Begin(ctx, op); holdChainOf(of) == holdChainOf(ctx) {
		return of
	}
	return ctx
}

// takesOver says that another owner has handed over its node.
func (a *acquireTrace) takesOver() {
	if a != nil {
		a.local, a.waited = true, true
	}
}

// observe tells of the turning points of an attempt.
func (a *acquireTrace) observe(e *acquire.Event) {
	if a == nil {
		return
	}
	told := monitor.Event{At: time.Now(), Operation: a.op, Err: e.Err}
	switch e.Kind {
	case acquire.Wait:
		told.Kind = monitor.Waiting
		told.Ahead, told.Behind = e.Position.Ahead(e.Queue)
		if !a.waited {
			a.waited, a.ahead = true, told.Ahead
		}
	case acquire.Yield:
		told.Kind = monitor.Yielded
	case acquire.Retry:
		told.Kind = monitor.Retried
	default:
		return
	}
	a.Event(a.ctx, told)
}

// end tells how an acquisition has ended.
func (a *acquireTrace) end(hold *Hold, err error) {
	r := monitor.Result{Ended: time.Now(), Err: err, Lock: a.op.Lock, Waited: a.waited, Ahead: a.ahead}
	switch {
	case hold != nil:
		r.Lock = hold.lockOf(a.op.Lock)
		switch {
		case a.local:
			r.Outcome = monitor.TakenOver
		case hold.ownership.shared():
			r.Outcome = monitor.Reentered
		default:
			r.Outcome = monitor.Acquired
		}
	case errors.Is(err, ErrNotAcquired):
		r.Outcome = monitor.Busy
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		r.Outcome = monitor.Canceled
	case errors.Is(err, framework.ErrNotConnected):
		r.Outcome = monitor.Unreachable
	default:
		r.Outcome = monitor.Failed
	}
	a.End(a.ctx, a.op, r)
}

// lockOf is a lock with the node of a hold.
func (h *Hold) lockOf(l monitor.Lock) monitor.Lock {
	if o := h.ownership; o.queue != nil {
		l.Node, l.Token = o.node.Path(), o.node.Token()
	}
	return l
}

// shared is whether other holds share an ownership.
func (o *ownership) shared() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.holds) > 1
}

// holdTrace is the tracer's record of a hold. It embeds the context that Begin has
// returned, and stands in the hold's chain as its parent.
type holdTrace struct {
	context.Context
	tracing *tracing
	op      monitor.Operation
	over    atomic.Bool
}

// trace is the hold as the tracer knows it, nil if it does not.
func (h *Hold) trace() *holdTrace {
	h.mu.Lock()
	defer h.mu.Unlock()
	trace, _ := h.chain.parent.(*holdTrace)
	return trace
}

// hold tells the tracer that a hold begins, before the caller gets it. The hold's
// contexts have the values of the tracer.
func (t *tracing) hold(ctx context.Context, h *Hold, lock monitor.Lock) {
	trace := &holdTrace{tracing: t, op: monitor.Operation{Kind: monitor.Hold, Began: time.Now(), Lock: h.lockOf(lock)}}
	trace.Context = t.begin(ctx, trace.op)
	h.mu.Lock()
	h.chain.parent = trace
	h.mu.Unlock()
	if state, err := h.status(); state == Lost { // in the meantime, when it was not known
		trace.end(monitor.Lost, err, time.Now())
	}
}

// end tells the tracer once that the hold is over.
func (t *holdTrace) end(outcome monitor.Outcome, err error, at time.Time) {
	if !t.over.Swap(true) {
		t.tracing.End(t.Context, t.op, monitor.Result{Ended: at, Outcome: outcome, Err: err, Lock: t.op.Lock})
	}
}

// released tells that the hold was given back with others or by a transaction.
func (t *holdTrace) released() {
	if t != nil {
		t.end(monitor.Released, nil, time.Now())
	}
}

// release releases a hold and tells of it.
func (t *holdTrace) release(h *Hold) error {
	op := monitor.Operation{Kind: monitor.Release, Began: time.Now(), Lock: t.op.Lock}
	ctx := t.tracing.Begin(t.Context, op)
	err := h.release()
	outcome := h.ownership.releasedAs(err)
	t.tracing.End(ctx, op, monitor.Result{Ended: time.Now(), Outcome: outcome, Err: err, Lock: t.op.Lock})
	switch outcome {
	case monitor.HandedOver:
		t.end(outcome, nil, op.Began)
	case monitor.Lost:
		t.end(outcome, err, op.Began)
	default:
		t.end(monitor.Released, nil, op.Began)
	}
	return err
}

// releasedAs is what has come of the release of a hold.
func (o *ownership) releasedAs(err error) monitor.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case errors.Is(err, ErrLockLost):
		return monitor.Lost
	case errors.Is(err, ErrReleasePending):
		return monitor.Pending
	case err != nil:
		return monitor.Failed
	case o.passed:
		return monitor.HandedOver
	case o.state != Released:
		return monitor.Kept
	}
	return monitor.Released
}

// tellLost reports the loss of an ownership, for each of its holds.
func (o *ownership) tellLost(holds []*Hold, err error) {
	s := o.session()
	if s == nil || len(holds) == 0 {
		return
	}
	at := time.Now()
	s.Aside(func() {
		if o.queue != nil {
			logLost(s, o.lock(), at.Sub(o.since), err)
		}
		for _, h := range holds {
			if trace := h.trace(); trace != nil {
				trace.end(monitor.Lost, err, at)
			}
		}
	})
}

// tellState tells that holds are uncertain, or held again.
func tellState(holds []*Hold, state HoldState) {
	kind := monitor.Confirmed
	if state == Uncertain {
		kind = monitor.Uncertain
	}
	at := time.Now()
	for _, h := range holds {
		if t := h.trace(); t != nil {
			t.tracing.session.Aside(func() { t.tracing.Event(t, monitor.Event{Kind: kind, At: at, Operation: t.op}) })
		}
	}
}

type acquireTraceKey struct{}

// acquireTraceOf is the acquisition that a context was made for, nil for none.
func acquireTraceOf(ctx context.Context) *acquireTrace {
	a, _ := ctx.Value(acquireTraceKey{}).(*acquireTrace)
	return a
}
