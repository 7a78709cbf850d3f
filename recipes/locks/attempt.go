package locks

import (
	"context"

	"github.com/paddock-zk/paddock/recipes/internal/acquire"
)

// mutexAttempt is an attempt for the node of a mutex, and the host of that attempt.
type mutexAttempt struct {
	acquire.Single
	acquisition
	queue *queue
	local *localQueue // that waits behind it, nil if each caller has a contender
	owned *ownership  // what came of it
}

func (q *queue) newAttempt(ctx context.Context, local *localQueue) *mutexAttempt {
	a := &mutexAttempt{queue: q, local: local}
	a.trace, a.log = acquireTraceOf(ctx), &q.shared.waitLog
	a.Init(&q.Queue, ownerAlone(ctx, q.Core.Session(), q.Path), a)
	return a
}

// adopt goes on for another lock object, which makes the same node.
func (a *mutexAttempt) adopt(q *queue, trace *acquireTrace) {
	a.queue, a.owned, a.trace = q, nil, trace
	a.Adopt(&q.Queue, a)
}

// Own makes the ownership. The local queue knows it before the session can tell of its
// node.
func (a *mutexAttempt) Own(_ int, node acquire.Node) acquire.Owner {
	a.owned = a.queue.own(node)
	a.owned.local = a.local
	a.local.Set(a.owned)
	return a.owned
}

// Withdrawn says that the ownership has not got its node.
func (a *mutexAttempt) Withdrawn(acquire.Owner) {
	a.owned = nil
	a.local.Set(a)
}

// Observe tells the local queue, too.
func (a *mutexAttempt) Observe(e acquire.Event) {
	a.acquisition.Observe(e)
	switch {
	case e.Kind != acquire.Wait:
	case e.Spread:
		a.local.Spread(a.queue.Handovers)
	default:
		a.local.Spread(0)
	}
}

// nodesHost is the host of an attempt for several nodes.
type nodesHost struct {
	acquisition
	queues func(i int) *queue // of the nodes
	owned  []*ownership
}

// Own makes one of the ownerships.
func (n *nodesHost) Own(i int, node acquire.Node) acquire.Owner {
	o := n.queues(i).own(node)
	n.owned = append(n.owned[:i], o)
	return o
}

// Withdrawn says that an ownership has not got its node.
func (n *nodesHost) Withdrawn(acquire.Owner) { n.owned = nil }
