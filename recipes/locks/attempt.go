package locks

import (
	"slices"

	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
)

// mutexAttempt is an attempt for the node of a mutex, and the host of that attempt.
type mutexAttempt struct {
	acquire.Single
	mutex *InterProcessMutex
	local *localQueue   // that waits behind it, nil if each caller has a contender
	owned *ownership    // what came of it
	wait  *wait         // once it waits for others
	trace *acquireTrace // as which the tracer knows it, nil for none
}

func (m *InterProcessMutex) newAttempt(owner nodename.Owner, trace *acquireTrace, local *localQueue) *mutexAttempt {
	a := &mutexAttempt{mutex: m, local: local, trace: trace}
	a.Init(&m.queue.Queue, owner, a, a)
	if local != nil {
		a.NoteMulti()
	}
	return a
}

// result is what came of a run: the ownership, or the error and who was in the way. After
// an error the caller has to leave the attempt, or another goroutine goes on with it.
func (a *mutexAttempt) result(err error) (*ownership, *acquire.Obstacle, error) {
	if err != nil {
		return nil, obstacleOf(&a.Attempt, a.mutex.queue.Lock), err
	}
	return a.owned, nil, nil
}

// adopt goes on for another lock object, which makes the same node.
func (a *mutexAttempt) adopt(m *InterProcessMutex, trace *acquireTrace) {
	a.mutex, a.owned, a.trace = m, nil, trace
	a.Adopt(&m.queue.Queue, a, a)
}

// Own makes the ownership. The local queue knows it before the session can tell of its
// node.
func (a *mutexAttempt) Own(_ int, node acquire.Node) acquire.Owner {
	a.owned = a.mutex.own(node)
	a.owned.local = a.local
	a.local.taken(a.owned)
	return a.owned
}

// Withdrawn says that the ownership has not got its node.
func (a *mutexAttempt) Withdrawn(acquire.Owner) {
	a.owned = nil
	a.local.taken(nil)
}

// Observe tells the local queue and the log of waits.
func (a *mutexAttempt) Observe(e acquire.Event) {
	switch e.Kind {
	case acquire.Begin:
		a.local.moved(e.Session)
	case acquire.Blocked:
		a.local.sawAhead(e.Position)
	case acquire.Wait:
		if a.wait == nil {
			a.wait = sharedOf(e.Queue.Core.Session()).waitLog.begin(e.Queue, 0, nil)
		}
		a.wait.note(&e)
	case acquire.End:
		a.wait.end()
		a.wait = nil
	}
	a.trace.observe(&e)
}

// nodesHost is the host of an attempt for several nodes.
type nodesHost struct {
	own    func(i int, node acquire.Node) *ownership
	owned  []*ownership
	waits  []*wait
	multi  func() *multiWait // is called once it waits; nil for locks that are no MultiLock
	gave   int               // how often a MultiLock has let others pass
	giving bool              // it has done so since it last waited
	spare  int               // leases of a semaphore that it does not need
	trace  *acquireTrace
}

// Own makes one of the ownerships.
func (n *nodesHost) Own(i int, node acquire.Node) acquire.Owner {
	o := n.own(i, node)
	n.owned = append(n.owned[:i], o)
	return o
}

// Withdrawn says that an ownership has not got its node.
func (n *nodesHost) Withdrawn(acquire.Owner) { n.owned = nil }

// Observe tells the log of waits.
func (n *nodesHost) Observe(e acquire.Event) {
	switch e.Kind {
	case acquire.Wait, acquire.First, acquire.Away:
		i := slices.IndexFunc(n.waits, func(w *wait) bool { return w.queue == e.Queue })
		if i < 0 && e.Kind == acquire.First { // it has not waited there
			return
		}
		if i < 0 {
			i = len(n.waits)
			n.waits = append(n.waits, sharedOf(e.Queue.Core.Session()).waitLog.begin(e.Queue, n.spare, n.multiWait()))
		}
		n.waits[i].note(&e)
		n.giving = false
	case acquire.Yield:
		if e.Predecessor == "" || n.giving { // nobody was behind it there, or it gives up several places at once
			break
		}
		n.giving = true
		if n.gave++; n.gave == often && len(n.waits) > 0 {
			n.waits[0].logYields(&e)
		}
	case acquire.End:
		for _, w := range n.waits {
			w.end()
		}
		n.waits = nil
	}
	n.trace.observe(&e)
}

// multiWait is the MultiLock that waits, nil for other locks.
func (n *nodesHost) multiWait() *multiWait {
	switch {
	case n.multi == nil:
		return nil
	case len(n.waits) > 0:
		return n.waits[0].multi
	}
	return n.multi()
}
