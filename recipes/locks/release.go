package locks

import (
	"errors"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/cleanup"
)

// A release takes these steps, in this order:
//
//  1. Hold.Release ends the contexts of the hold.
//  2. ownership.removeHold takes the hold away. After the last one it ends the ownership, and give begins.
//  3. localQueue.pass hands it to a goroutine of this client, with the node, or
//  4. deleteNode stops watching the node, and deletes it.
//  5. awaitRemoval waits until the servers have confirmed that, for ReleaseWait at most.
//
// A node comes to its end in three more ways, with some of these steps:
//
//   - givingBack.deleteNodes gives several holds back, and deletes their nodes together.
//   - givingBack.deleted comes after a transaction that has deleted the node.
//   - ownership.NodeChanged comes when the hold is lost. Nobody waits then.
//
// Two rules hold in all of them. All contexts end before anything else, since the next
// step may let another owner in. And the local queue hears of the end only after the
// deletion has left: its next node has to come behind that.

// give hands the lock over, or gives it back, once. It returns the result for Release.
func (o *ownership) give() error {
	if o.backing != nil {
		return o.backing.give()
	}
	if o.local.pass(o) {
		return nil
	}
	return o.awaitRemoval(o.deleteNode(), o.queue.ReleaseWait, nil)
}

// stopTracking stops watching the node of an ownership.
func (o *ownership) stopTracking() {
	o.mu.Lock()
	stop := o.unobserve
	o.unobserve = nil
	o.mu.Unlock()
	if stop != nil {
		stop()
	}
	o.node.Untrack()
}

// deleteNode deletes the node of an ownership that is over. The next in the local queue makes
// its node after that, in the same session, so that the servers see both in this order.
func (o *ownership) deleteNode() *cleanup.Removal {
	o.stopTracking()
	removal := o.node.Remove()
	o.local.ownershipOver(o)
	return removal
}

// awaitRemoval waits until a node is deleted, for so long at most and until giveUp is closed,
// and returns the result for Release.
func (o *ownership) awaitRemoval(removal *cleanup.Removal, limit time.Duration, giveUp <-chan struct{}) error {
	switch err := removal.Wait(limit, giveUp); {
	case err == nil:
		return nil
	case errors.Is(err, framework.ErrNoNode):
		return lostError(o.nodePath(), ErrNodeDeleted)
	case errors.Is(err, cleanup.ErrLate) && limit > 0 && !isClosed(giveUp):
		o.node.Session().Tracing().Pending(o.lock(), limit)
		return ErrReleasePending
	case errors.Is(err, cleanup.ErrLate), errors.Is(err, session.ErrSessionOver), errors.Is(err, session.ErrClosed):
		return ErrReleasePending
	default:
		return opError("release", o.nodePath(), err)
	}
}

// unclaimAll gives back the nodes of ownerships without a hold.
func unclaimAll(owns []*ownership) {
	g := givingBack{giveUp: sent} // it waits for nothing
	for _, o := range owns {
		if _, lost := o.leave(nil); lost == nil {
			g.over = append(g.over, o)
		}
	}
	g.deleteNodes()
}
