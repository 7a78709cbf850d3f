package locks

import (
	"cmp"
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// In a local queue wait the goroutines of one client that want the same lock and would
// make the same node for it. Only one of them has a node in the queue. It is the front
// waiter, which asks the servers and waits for its turn, or it holds the lock. The others
// wait for it, without a node, a watch or a request. While a MultiLock is in the queue, some
// wait with nodes of their own, see spread.
//
// A front waiter that gives up passes its contender on to the next in the local queue,
// also while a request for it is on its way. A holder that releases hands the lock over
// with its node, or deletes the node. In the latter case the next in the local queue is
// the front waiter, with a new node. pass says when a node is handed over.
type localQueue struct {
	q   *queue // of the first front waiter: all others make the same node
	key localQueueKey

	// The fields below are guarded by the local queues' mu.
	hasAhead   bool       // others were seen ahead
	ahead      int        // how many nodes, when somebody last looked
	head       string     // the first of them, if it is the only one
	holder     *ownership // who has the lock, nil while a front waiter asks for it
	firstSince time.Time  // when its node became first in its queue
	passed     int        // how often the lock was handed over since
	spreads    bool       // those who wait need nodes of their own, as a MultiLock is in the queue
	beside     int        // how many have one because of that
	waiters    list.List  // of *waiter
}

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

// waiter is a goroutine in a local queue. It is small, as there may be thousands.
type waiter struct {
	mutex    *InterProcessMutex
	queue    *localQueue
	ctx      context.Context
	done     <-chan struct{} // ctx's, as nobody else may call a method of it: it may block
	session  int64           // that it waits in, with FailOnLoss; else 0
	answered sync.WaitGroup  // of one, which takes less than a channel

	// The fields below are guarded by the local queues' mu.
	since  time.Time
	entry  *list.Element // in the local queue, nil once it was taken out
	timeUp bool          // its time was up when it had just been taken out

	// What it was told. Without any of these its time is up.
	isFront, isBeside bool
	granted           *ownership
	attempt           *mutexAttempt // to go on with, nil for a new one
}

// localQueues are the local queues of one client. A local queue is there as long as it has
// a front waiter or a holder.
type localQueues struct {
	mu  sync.Mutex // guards all local queues of the client
	all map[localQueueKey]*localQueue
}

// join enters the local queue for a lock, or makes it. It returns
//
//   - the queue and a waiter: the caller waits;
//   - the queue alone: the caller is its front waiter;
//   - the queue and ErrNotAcquired: the caller asks only once, and a goroutine of this
//     client holds the lock;
//   - nothing: the caller asks only once, and others are asking already, or it must not
//     outlive its session, and has none yet. It asks with a node of its own.
func (lqs *localQueues) join(ctx context.Context, m *InterProcessMutex, once bool, waitedIn int64) (*localQueue, *waiter, error) {
	q := &m.queue
	var id int64
	if q.FailOnLoss {
		if id = q.Core.Session().ID(); id == 0 { // a node of its own tells of the session that it gets
			return nil, nil, nil
		}
		id = cmp.Or(waitedIn, id)
	}
	key, done := localQueueKey{q.Path, inherited(ctx), q.Core, q.Kind, q.Revocable, q.Data != nil, string(q.Data)}, ctx.Done()
	lqs.mu.Lock()
	defer lqs.mu.Unlock()
	lq := lqs.all[key]
	switch {
	case lq == nil:
		lq = &localQueue{q: q, key: key}
		lqs.all[key] = lq
		return lq, nil, nil
	case once && lq.holder != nil:
		return lq, nil, ErrNotAcquired
	case once:
		return nil, nil, nil
	}
	w := &waiter{mutex: m, queue: lq, ctx: ctx, done: done, since: time.Now(), session: id}
	w.answered.Add(1)
	w.entry = lq.waiters.PushBack(w)
	return lq, w, nil
}

// each reports of all that wait in local queues for which queue they wait, and since when.
func (lqs *localQueues) each(note func(q *acquire.Queue, since time.Time)) {
	lqs.mu.Lock()
	defer lqs.mu.Unlock()
	for _, lq := range lqs.all {
		for e := lq.waiters.Front(); e != nil; e = e.Next() {
			note(&lq.q.Queue, waiterAt(e).since)
		}
	}
}

func waiterAt(e *list.Element) *waiter { return e.Value.(*waiter) } //nolint:forcetypeassert // nothing else is in it

func (lq *localQueue) takeOutLocked(w *waiter) {
	lq.waiters.Remove(w.entry)
	w.entry = nil
}

// takeFirstLocked takes out the first one, nil if nobody waits.
func (lq *localQueue) takeFirstLocked() *waiter {
	if lq.waiters.Len() == 0 {
		return nil
	}
	w := waiterAt(lq.waiters.Front())
	lq.takeOutLocked(w)
	return w
}

// await waits in the local queue until another goroutine tells the waiter something, or
// its context ends. It has one channel for both, since a select on two would take more of
// the stack.
func (w *waiter) await() {
	if w.done != nil {
		stop := context.AfterFunc(w.ctx, w.withdraw)
		w.answered.Wait()
		stop()
	} else {
		w.answered.Wait()
	}
}

// withdraw leaves the local queue, unless it has been picked and is about to be told.
func (w *waiter) withdraw() {
	lqs := &w.mutex.queue.shared.localQueues
	lqs.mu.Lock()
	left := w.entry != nil
	if left {
		w.queue.takeOutLocked(w)
	}
	w.timeUp = !left
	lqs.mu.Unlock()
	if left {
		w.answered.Done()
	}
}

// finish turns what a waiter was told into an ownership or an error, or does what is left
// to do. An ownership beside an error came too late. Without either the caller has to begin
// again.
func (w *waiter) finish(ctx, limited context.Context) (o *ownership, err error) {
	switch o = w.granted; {
	case w.isFront:
		return w.acquire()
	case w.isBeside:
		return w.acquireBeside()
	case o == nil:
		return nil, &acquire.StoppedError{Err: contextend.Of(limited), InTheWay: w.queue.seenAhead()}
	case limited.Err() != nil:
		return o, &acquire.StoppedError{Err: contextend.Of(limited), InTheWay: o.heldHere()}
	}
	// A deadline may have passed between the hand-over and now.
	switch state, _ := o.now(); {
	case w.outlived():
		return o, framework.ErrSessionExpired
	case state == Lost:
		return nil, nil
	}
	acquireTraceOf(ctx).takesOver()
	return o, nil
}

// outlived is whether the waiter's session has ended, for a waiter that must not go on in
// the next one.
func (w *waiter) outlived() bool {
	return w.session != 0 && w.mutex.queue.outlived(w.session)
}

// acquire goes on from where another front waiter has got to.
func (w *waiter) acquire() (*ownership, error) {
	lq, a, m := w.queue, w.attempt, w.mutex
	if w.outlived() {
		lq.leaveFront(a)
		return nil, framework.ErrSessionExpired
	}
	switch {
	case a == nil:
		a = m.newAttempt(w.ctx, lq, w.session)
	case a.SessionID() != m.queue.Core.Session().ID():
		a.Leave() // it is of a session that we may not have waited in
		a = m.newAttempt(w.ctx, lq, w.session)
	default:
		a.adopt(m, acquireTraceOf(w.ctx))
	}
	return lq.acquire(w.ctx, a, false)
}

// acquireBeside gets the lock with a node of the waiter's own.
func (w *waiter) acquireBeside() (*ownership, error) {
	defer w.queue.besideOver()
	if w.outlived() {
		return nil, framework.ErrSessionExpired
	}
	var none *localQueue
	return none.acquire(w.ctx, w.mutex.newAttempt(w.ctx, none, w.session), false)
}

// acquire gets the lock from the servers for the front waiter, or for a caller without a
// local queue. If it fails, it leaves the front.
func (lq *localQueue) acquire(ctx context.Context, a *mutexAttempt, once bool) (o *ownership, err error) {
	defer func() {
		if o == nil {
			lq.leaveFront(a)
		}
	}()
	err = a.Run(ctx, once)
	return a.owned, err
}

// leaveFront lets another be the front waiter. Without a local queue nobody goes on with the
// attempt.
func (lq *localQueue) leaveFront(a *mutexAttempt) {
	if lq == nil {
		a.Leave()
		return
	}
	lq.taken(nil)
	if a != nil && a.Empty() {
		a = nil
	}
	lq.passFront(a)
}

// passFront makes the next in the local queue the front waiter, with an attempt or
// without. If nobody is next, it leaves the attempt, and the local queue is over.
func (lq *localQueue) passFront(a *mutexAttempt) {
	lqs := &lq.q.shared.localQueues
	lqs.mu.Lock()
	w := lq.takeFirstLocked()
	if w == nil {
		delete(lqs.all, lq.key)
		lqs.mu.Unlock()
		if a != nil {
			a.Leave()
		}
		return
	}
	lqs.mu.Unlock()
	// Its context may have ended. The waiter finds that out itself, since the methods of
	// a context are the caller's code.
	w.isFront, w.attempt = true, a
	w.answered.Done()
}

// spread lets those that have waited longest ask with nodes of their own while a MultiLock is in
// the queue, at most as many as a node would be handed to. Nothing is handed over there. So in
// one place, each would wait for all that the ones before it want besides.
func (lq *localQueue) spread() {
	lqs := &lq.q.shared.localQueues
	for {
		lqs.mu.Lock()
		var w *waiter
		if lq.spreads && lq.beside < lq.q.Handovers {
			w = lq.takeFirstLocked()
		}
		if w == nil {
			lqs.mu.Unlock()
			return
		}
		lq.beside++
		lqs.mu.Unlock()
		w.isBeside = true
		w.answered.Done()
	}
}

// besideOver says that one with a node of its own has the lock, or has given up.
func (lq *localQueue) besideOver() {
	lqs := &lq.q.shared.localQueues
	lqs.mu.Lock()
	lq.beside--
	lqs.mu.Unlock()
	lq.spread()
}

// seenAhead is the obstacle that has the lock, nil if none was seen.
func (lq *localQueue) seenAhead() *acquire.Obstacle {
	lqs := &lq.q.shared.localQueues
	lqs.mu.Lock()
	defer lqs.mu.Unlock()
	switch {
	case lq.holder != nil:
		return lq.holder.heldHere()
	case !lq.hasAhead:
		return nil
	case lq.head == "":
		return &acquire.Obstacle{Lock: lq.q.Lock, Ahead: lq.ahead}
	}
	return &acquire.Obstacle{Lock: lq.q.Lock, Ahead: lq.ahead, Node: session.Join(lq.q.Path, lq.head)}
}

// heldHere is a lock that a goroutine of this client has, as an obstacle to another.
func (o *ownership) heldHere() *acquire.Obstacle {
	return &acquire.Obstacle{Lock: o.queue.Lock, Node: o.node.Path(), Session: o.node.SessionID(), Local: true}
}

// By sawAhead and taken an attempt tells the waiters behind it in the local queue
// what has happened. They do nothing for an attempt without a local queue.

// sawAhead says that others are ahead in the queue.
func (lq *localQueue) sawAhead(p *acquire.Position) {
	if lq == nil {
		return
	}
	lqs := &lq.q.shared.localQueues
	lqs.mu.Lock()
	lq.hasAhead, lq.ahead, lq.head, lq.spreads = true, p.Place, p.Only(), p.Spread
	lqs.mu.Unlock()
	lq.spread()
}

// taken says which ownership has the lock, nil if none has it after all. The attempt
// calls it before the session tracks the node of the ownership, so that the local queue
// hears of its end.
func (lq *localQueue) taken(o *ownership) {
	if lq == nil {
		return
	}
	lqs := &lq.q.shared.localQueues
	lqs.mu.Lock()
	defer lqs.mu.Unlock()
	lq.holder, lq.firstSince, lq.passed = o, time.Now(), 0
}

// ownershipOver says that an ownership is over, and that its node is gone or being
// deleted. The next in the local queue becomes the front waiter.
func (lq *localQueue) ownershipOver(o *ownership) {
	if lq == nil {
		return
	}
	lqs := &lq.q.shared.localQueues
	lqs.mu.Lock()
	was := lq.holder == o
	if was {
		lq.holder, lq.hasAhead = nil, false
	}
	lqs.mu.Unlock()
	if was {
		lq.passFront(nil)
	}
}

// mostRun is how long after a node was first in its queue the lock is still
// handed over here.
const mostRun = time.Second

// pass hands the lock of an ownership that is over to the next in the local queue, if
// there is one and all of this is true:
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
//   - The tracked node is held, and its deadline is not near. After the deadline only the
//     servers can tell whether the node is there, and the next holder needs some time to
//     work.
func (lq *localQueue) pass(o *ownership) bool {
	if lq == nil {
		return false
	}
	q := o.queue
	if q.Revocable || o.node.SawMulti() || o.isPinned() {
		return false
	}
	lqs := &lq.q.shared.localQueues
	lqs.mu.Lock()
	had := time.Since(lq.firstSince)
	if lq.waiters.Len() == 0 || lq.holder != o || // nobody waits, or the node is gone
		lq.passed >= q.Handovers && had >= q.Burst || had >= mostRun {
		lqs.mu.Unlock()
		return false
	}
	w := lq.takeFirstLocked()
	lqs.mu.Unlock()
	if !lq.passTo(o, w) {
		return false
	}
	w.answered.Done()
	o.mu.Lock()
	o.passed = true
	o.mu.Unlock()
	return true
}

// passTo hands the lock over to a waiter that was taken out of the local queue for it.
func (lq *localQueue) passTo(o *ownership, w *waiter) bool {
	next := w.mutex.own(o.node.In(&w.mutex.queue.Queue))
	next.local = lq
	lqs := &lq.q.shared.localQueues
	become := func(from, to *ownership) (ok bool) {
		lqs.mu.Lock()
		defer lqs.mu.Unlock()
		if ok = lq.holder == from; ok {
			lq.holder = to
			lq.passed++
		}
		return ok
	}
	// The local queue knows the new one before it can be told that it is lost.
	passed := become(o, next)
	if passed && o.node.Pass(next) != nil {
		become(next, o)
		passed = false
	}
	if !passed {
		lqs.mu.Lock()
		timeUp, over := w.timeUp, lqs.all[lq.key] != lq
		switch {
		case timeUp:
		case over: // it was lost meanwhile, when nobody else was in the local queue
			lq.beside++
			w.isBeside = true
		default:
			w.entry = lq.waiters.PushFront(w)
		}
		lqs.mu.Unlock()
		if timeUp || over { // its time was up while it could not leave
			w.answered.Done()
		}
		return false
	}
	w.granted = next
	return true
}
