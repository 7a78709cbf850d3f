package locks

import (
	"errors"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
)

// revokeData is what a participant writes into another's node to ask for the
// lock.
//
// Source: Curator's LockInternals.REVOKE_MESSAGE.
const revokeData = "__REVOKE__"

// state is how sure a tracked node is.
func (p *contender) state(node *session.TrackedNode) (HoldState, error) {
	state, reason := p.scope.Session.TrackedState(node)
	switch state {
	case session.NodeLost:
		return Lost, reason
	case session.NodeUncertain:
		return Uncertain, nil
	}
	return Held, nil
}

// give hands the lock of an ownership over, or gives it back.
func (p *contender) give(o *ownership) error {
	if p.local.pass(o) {
		return nil
	}
	p.quit(o)
	return p.giveBack(o)
}

// quit ends what is done for an ownership while it lasts.
func (p *contender) quit(o *ownership) {
	o.mu.Lock()
	stop := o.unobserve
	o.unobserve = nil
	o.mu.Unlock()
	if stop != nil {
		stop()
	}
	p.scope.Session.Untrack(o.tracked)
}

// teller is how the session tells an ownership about its node.
func (p *contender) teller(o *ownership) func(*session.TrackedNode, session.TrackedState, error) {
	return func(node *session.TrackedNode, state session.TrackedState, reason error) {
		p.tell(o, node, state, reason)
	}
}

// tell passes on to an ownership what the session has to say about its node.
func (p *contender) tell(o *ownership, node *session.TrackedNode, state session.TrackedState, reason error) {
	switch state {
	case session.NodeHeld:
		o.trust()
	case session.NodeUncertain:
		o.doubt()
		if p.opts.endOnSuspended {
			o.lose(framework.ErrNotConnected)
			// Nobody believes in the node any more, so it has to go.
			p.scope.Session.Untrack(node)
			p.removed(o, p.scope.Session.Remove(p.session, p.node()))
			p.local.vacate(o)
		}
	case session.NodeLost:
		o.lose(reason)
		p.over(o, reason)
		p.local.vacate(o)
	}
}

// removed tells the ownership when its node is gone.
func (p *contender) removed(o *ownership, r *session.Removal) {
	r.Then(func(err error) { p.over(o, err) })
}

// over tells the ownership that its node is gone, or will be with the session.
func (p *contender) over(o *ownership, reason error) {
	switch {
	case reason == nil, session.IsGone(reason), errors.Is(reason, framework.ErrNoNode):
		o.isGone()
	case errors.Is(reason, framework.ErrSessionExpired), errors.Is(reason, framework.ErrNotConnected),
		errors.Is(reason, session.ErrSessionOver), errors.Is(reason, session.ErrClosed):
		p.scope.Session.AfterGone(p.session, o.isGone)
	}
}

// giveBack deletes the node of an ownership that is over. Who is next in the local queue here
// makes its node after that, in the same session, so that the servers see both
// in this order.
func (p *contender) giveBack(o *ownership) error {
	removal := p.scope.Session.Remove(p.session, p.node())
	p.removed(o, removal)
	p.sweep()
	p.local.vacate(o)
	return p.given(o, removal, p.opts.releaseWait)
}

// given waits for a node to be deleted, for so long at most, and returns what
// Release shall.
func (p *contender) given(o *ownership, removal *session.Removal, limit time.Duration) error {
	switch err := removal.Wait(o.awaits(removal, limit)); {
	case err == nil:
		return nil
	case errors.Is(err, framework.ErrNoNode):
		return lostError(o.node(), ErrNodeDeleted)
	case errors.Is(err, session.ErrLate), errors.Is(err, session.ErrSessionOver), errors.Is(err, session.ErrClosed):
		return ErrReleasePending
	default:
		return opError("release", p.node(), err)
	}
}

// observe tells of requests to give the lock back, until stopped or the session
// is over.
func (p *contender) observe(asked func()) (stop func()) {
	return p.scope.Session.Observe(p.session, p.node(), func(data []byte) {
		if string(data) == revokeData {
			asked()
		}
	})
}
