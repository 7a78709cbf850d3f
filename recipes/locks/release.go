package locks

import (
	"errors"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/cleanup"
)

// revokeData is what a participant writes into another's node to ask for the
// lock.
//
// Source: Curator's LockInternals.REVOKE_MESSAGE.
const revokeData = "__REVOKE__"

// nodeState is how sure the node of an ownership is.
func (o *ownership) nodeState() (HoldState, error) {
	state, reason := o.node.State()
	switch state {
	case session.NodeLost:
		return Lost, reason
	case session.NodeUncertain:
		return Uncertain, nil
	}
	return Held, nil
}

// give hands the lock over, or gives it back, once. It returns what Release shall.
func (o *ownership) give() error {
	if o.queue == nil {
		return o.backing.give()
	}
	if o.local.pass(o) {
		return nil
	}
	o.quit()
	return o.giveBack()
}

// quit ends what is done for an ownership while it lasts.
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

// NodeChanged takes in what the session has to say about the node.
func (o *ownership) NodeChanged(node *session.TrackedNode, state session.TrackedState, reason error) {
	switch state {
	case session.NodeHeld:
		o.trust()
	case session.NodeUncertain:
		o.doubt()
		if o.queue.opts.EndOnSuspended {
			o.lose(framework.ErrNotConnected)
			// Nobody believes in the node any more, so it has to go.
			node.Untrack()
			o.removed(cleanup.Remove(o.node.Session(), o.node.ID(), o.node.Path()))
			o.local.vacate(o)
		}
	case session.NodeLost:
		o.lose(reason)
		o.nodeGone(reason)
		o.local.vacate(o)
	}
}

// removed tells the ownership when its node is gone.
func (o *ownership) removed(r *cleanup.Removal) { r.Then(o.nodeGone) }

// nodeGone takes in that the node is gone, or will be with the session.
func (o *ownership) nodeGone(reason error) {
	switch {
	case reason == nil, session.IsGone(reason), errors.Is(reason, framework.ErrNoNode):
		o.isGone()
	case errors.Is(reason, framework.ErrSessionExpired), errors.Is(reason, framework.ErrNotConnected),
		errors.Is(reason, session.ErrSessionOver), errors.Is(reason, session.ErrClosed):
		o.node.Session().AfterGone(o.node.ID(), o.isGone)
	}
}

// giveBack deletes the node of an ownership that is over. Who is next in the local queue here
// makes its node after that, in the same session, so that the servers see both
// in this order.
func (o *ownership) giveBack() error {
	removal := o.node.Remove()
	o.removed(removal)
	o.local.vacate(o)
	return o.given(removal, o.queue.opts.ReleaseWait)
}

// given waits for a node to be deleted, for so long at most, and returns what
// Release shall.
func (o *ownership) given(removal *cleanup.Removal, limit time.Duration) error {
	switch err := removal.Wait(o.awaits(removal, limit)); {
	case err == nil:
		return nil
	case errors.Is(err, framework.ErrNoNode):
		return lostError(o.nodePath(), ErrNodeDeleted)
	case errors.Is(err, cleanup.ErrLate), errors.Is(err, session.ErrSessionOver), errors.Is(err, session.ErrClosed):
		return ErrReleasePending
	default:
		return opError("release", o.nodePath(), err)
	}
}
