package locks

import (
	"context"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/localqueue"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// In a local queue wait the goroutines of one client that want the same lock and would
// make the same node for it. Only the one whose turn it is has a node in the queue. It is the
// front waiter, which asks the servers and waits for its turn there, or it holds the lock. The
// others wait for it, without a node, a watch or a request. While a MultiLock is in the queue,
// some wait with nodes of their own beside the local queue, as many as a node would be handed
// to. Nothing is handed over then. So in one place, each would wait for all that the ones before
// it want besides.
//
// A front waiter that gives up leaves its attempt to the next in the local queue, also while a
// request for its node is on its way. A holder that releases hands the lock over with its node,
// or deletes the node. In the latter case the next in the local queue is the front waiter,
// with a new node.
type (
	localQueues = localqueue.Queues[localQueueKey, turn, *queue]
	localQueue  = localqueue.Queue[localQueueKey, turn, *queue]
	waiter      = localqueue.Waiter[localQueueKey, turn, *queue]
)

// localQueueKey is the key of a local queue: what the node is made from and, for callers that
// want the lock under another hold, the tag of that hold's owner. Callers with different tags
// do not wait in one local queue. A MultiLock has to see each of them, since each may
// hold what it waits for.
type localQueueKey struct {
	path               string
	tag                nodename.Tag
	core               session.Core // it has its own defaults
	kind               znode.Kind
	revocable, hasData bool
	data               string
}

// turn is what the goroutine has whose turn it is in a local queue: a *mutexAttempt or an
// *ownership. It is nil before there is an attempt.
type turn interface {
	// inTheWay is the obstacle that another one who wants the lock sees, nil for none.
	inTheWay(of *acquire.Queue) *acquire.Obstacle
}

func (a *mutexAttempt) inTheWay(q *acquire.Queue) *acquire.Obstacle {
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	if len(a.waits) == 0 {
		return nil
	}
	at := &a.waits[0].at
	return &acquire.Obstacle{Lock: q.Lock, Ahead: at.Place, Node: session.Join(q.Path, at.Front())}
}

func (o *ownership) inTheWay(q *acquire.Queue) *acquire.Obstacle {
	return &acquire.Obstacle{Lock: q.Lock, Node: o.node.Path(), Session: o.node.SessionID(), Local: true}
}

// stopped is an error of a caller that has waited for somebody else's turn to end. The first one
// that knows what is in the way tells it.
func (q *queue) stopped(err error, all ...turn) error {
	stopped := &acquire.StoppedError{Err: err}
	for _, has := range all {
		if has != nil && stopped.InTheWay == nil {
			stopped.InTheWay = has.inTheWay(&q.Queue)
		}
	}
	return stopped
}

// join enters the local queue for a lock, or begins it. It returns
//
//   - a waiter: the caller waits;
//   - the queue alone: the caller is its front waiter;
//   - an error around ErrNotAcquired: the caller asks only once, and a goroutine of this
//     client holds the lock;
//   - nothing: the caller asks with a node of its own. So does one that asks only once while
//     others are asking, and one that must not outlive its session, and has none yet.
func (q *queue) join(ctx context.Context, once bool, waitedIn int64) (*localQueue, *waiter, error) {
	if q.Kind == znode.Read || q.Handovers == 0 || q.FailOnLoss && waitedIn == 0 {
		return nil, nil, nil
	}
	key := localQueueKey{q.Path, inherited(ctx), q.Core, q.Kind, q.Revocable, q.Data != nil, string(q.Data)}
	lq, w, has := q.shared.localQueues.Join(key, q, !once)
	if o, held := has.(*ownership); held {
		return nil, nil, q.stopped(ErrNotAcquired, o)
	}
	if w != nil {
		q.shared.waitLog.arm()
	}
	return lq, w, nil
}

// enter gets the lock by way of the local queue, see goOn. The caller has waited in a session
// before, or 0.
func (q *queue) enter(ctx, limited context.Context, once bool, waitedIn int64) (*ownership, error) {
	lq, w, err := q.join(limited, once, waitedIn)
	switch {
	case err != nil:
		return nil, err
	case w == nil:
		return q.ask(limited, lq, nil, once, waitedIn)
	}
	told, has := w.Await(limited)
	return q.goOn(ctx, limited, lq, told, has, waitedIn)
}

// goOn does what a waiter was told, and returns an ownership or an error. An ownership beside an
// error came too late.
func (q *queue) goOn(ctx, limited context.Context, lq *localQueue, told localqueue.Told, has turn, waitedIn int64) (*ownership, error) {
	o, granted := has.(*ownership)
	a, _ := has.(*mutexAttempt)
	switch {
	case told == localqueue.TimeUp:
		return nil, q.stopped(contextend.Of(limited), lq.Has(), has)
	case granted && limited.Err() != nil:
		return o, q.stopped(contextend.Of(limited), o)
	case told == localqueue.Beside:
		defer lq.BesideOver()
		lq = nil
	}
	outlived := q.outlived(waitedIn)
	switch {
	case outlived && granted:
		return o, framework.ErrSessionExpired
	case outlived:
		leave(lq, a)
		return nil, framework.ErrSessionExpired
	case !granted:
		return q.ask(limited, lq, a, false, waitedIn)
	}
	// A deadline may have passed between the hand-over and now. Then no hold can be made.
	if state, _ := o.now(); state != Lost {
		acquireTraceOf(ctx).takesOver()
	}
	return o, nil
}

// ask gets the lock from the servers for the front waiter, or for a caller without a local
// queue. It goes on with the attempt that another front waiter has left, unless that is of a
// session that the caller may not have waited in.
func (q *queue) ask(ctx context.Context, lq *localQueue, a *mutexAttempt, once bool, waitedIn int64) (*ownership, error) {
	if a != nil && a.SessionID() == q.Core.Session().ID() {
		a.adopt(q, acquireTraceOf(ctx))
	} else {
		if a != nil {
			a.Leave()
		}
		a = q.newAttempt(ctx, lq)
		lq.Set(a)
	}
	a.WaitedIn(waitedIn)
	defer func() {
		if a.owned == nil {
			leave(lq, a)
		}
	}()
	err := a.Run(ctx, once)
	return a.owned, err
}

// leave leaves an attempt to the next in the local queue. If nobody goes on with it, the
// attempt is over.
func leave(lq *localQueue, a *mutexAttempt) {
	if a == nil {
		lq.Leave(nil, nil)
	} else if !lq.Leave(a, a) {
		a.Leave()
	}
}

// mostRun is how long after a node was first in its queue the lock is still
// handed over here.
const mostRun = time.Second

// mayPass is whether the lock of an ownership that is over may be handed over with its node:
//
//   - Others have had to wait for less than the bound, in turns and in time.
//   - No MultiLock was seen in the queue. It needs a moment in which all of its members
//     are free, and it yields only to owners whose nodes it sees. A goroutine in a local
//     queue has no node.
//   - The lock is not Revocable. A request to give it back is written into the node, and
//     would reach the next holder.
//   - The ownership has shown its token to nobody, since the next one has the same.
//   - It has no transaction that the servers may still apply. They would apply it, since
//     the node is still there.
//   - It is not a write side under which a read side was taken, since the read side
//     relies on the deletion of the write node. Neither is it a member of a group, which
//     shows its token.
//
// One more condition is the session's, see pass: the tracked node is held, and its deadline is not
// near. After the deadline only the servers can tell whether the node is there, and the next
// holder needs some time to work.
func (o *ownership) mayPass() bool {
	q, had := o.queue, time.Since(o.first)
	return !q.Revocable && !o.node.SawMulti() && !o.isPinned() &&
		(o.handovers < q.Handovers || had < q.Burst) && had < mostRun
}

// pass hands the lock of an ownership that is over to the next in the local queue, if there is
// one and the lock may be handed over.
func (o *ownership) pass() bool {
	passed := o.local != nil && o.mayPass() && o.local.Pass(o, func(next *queue) (turn, bool) {
		to := next.own(o.node.In(&next.Queue))
		to.local, to.first, to.handovers = o.local, o.first, o.handovers+1
		return to, o.node.Pass(to) == nil
	})
	if passed {
		o.mu.Lock()
		o.passed = true
		o.mu.Unlock()
	}
	return passed
}
