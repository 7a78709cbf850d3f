package locks

import (
	"errors"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/cleanup"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
)

// A release takes these steps, in this order:
//
//  1. Hold.Release ends the contexts of the hold.
//  2. ownership.leave takes the hold away. After the last one it ends the ownership, and give begins.
//  3. localQueue.pass hands it to a goroutine of this client, with the node, or
//  4. quit stops watching the node, and giveBack deletes it.
//  5. given waits until the servers have confirmed that, for ReleaseWait at most.

// give hands the lock over, or gives it back, once. It returns the result for Release.
func (o *ownership) give() error {
	if o.backing != nil {
		return o.backing.give()
	}
	if o.local.pass(o) {
		return nil
	}
	o.quit()
	return o.giveBack()
}

// quit stops watching the node of an ownership.
func (o *ownership) quit() {
	o.mu.Lock()
	stop := o.unobserve
	o.unobserve = nil
	o.mu.Unlock()
	if stop != nil {
		stop()
	}
	o.node.Untrack()
}

// giveBack deletes the node of an ownership that is over. The next in the local queue makes
// its node after that, in the same session, so that the servers see both in this order.
func (o *ownership) giveBack() error {
	removal := o.node.Remove()
	o.removed(removal)
	o.local.ownershipOver(o)
	return o.given(removal, o.queue.opts.ReleaseWait)
}

// given waits until a node is deleted, for so long at most, and returns the result for
// Release.
func (o *ownership) given(removal *cleanup.Removal, limit time.Duration) error {
	limit = o.awaits(removal, limit)
	switch err := removal.Wait(limit); {
	case err == nil:
		return nil
	case errors.Is(err, framework.ErrNoNode):
		return lostError(o.nodePath(), ErrNodeDeleted)
	case errors.Is(err, cleanup.ErrLate) && limit > 0:
		o.node.Session().Tracing().Pending(o.lock(), limit)
		return ErrReleasePending
	case errors.Is(err, cleanup.ErrLate), errors.Is(err, session.ErrSessionOver), errors.Is(err, session.ErrClosed):
		return ErrReleasePending
	default:
		return opError("release", o.nodePath(), err)
	}
}

// unclaimed is deferred: it gives back an ownership without a hold, because it came too
// late or a method of the caller's context panicked.
func unclaimed(hold **Hold, t **ownership) {
	if *hold == nil && *t != nil {
		(*t).decline()
	}
}

// unclaimAll gives back the nodes of ownerships without a hold.
func unclaimAll(owns []*ownership) {
	all := make([]*acquire.Node, 0, len(owns))
	for _, o := range owns {
		if o.end() {
			all = append(all, o.Node())
			o.node.Untrack()
		}
	}
	acquire.RemoveAll(all)
}
