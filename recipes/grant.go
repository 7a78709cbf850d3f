package recipes

import (
	"context"
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

// state is how sure the claim to a node is.
func (p *place) state(cl *session.Claim) (HoldState, error) {
	state, reason := p.scope.Session.ClaimState(cl)
	switch state {
	case session.ClaimLost:
		return Lost, reason
	case session.ClaimUncertain:
		return Uncertain, nil
	}
	return Held, nil
}

// give hands the lock of a tenure over, or gives it back.
func (p *place) give(t *tenure) error {
	if p.line.pass(t) {
		return nil
	}
	p.quit(t)
	return p.giveBack(t)
}

// quit ends what is done for a tenure while it lasts.
func (p *place) quit(t *tenure) {
	t.mu.Lock()
	stop := t.unobserve
	t.unobserve = nil
	t.mu.Unlock()
	if stop != nil {
		stop()
	}
	p.scope.Session.DropClaim(t.claim)
}

// teller is how the session tells a tenure about its node.
func (p *place) teller(t *tenure) func(*session.Claim, session.ClaimState, error) {
	return func(cl *session.Claim, state session.ClaimState, reason error) { p.tell(t, cl, state, reason) }
}

// tell passes on to a tenure what the session has to say about its node.
func (p *place) tell(t *tenure, cl *session.Claim, state session.ClaimState, reason error) {
	switch state {
	case session.ClaimHeld:
		t.trust()
	case session.ClaimUncertain:
		t.doubt()
		if p.opts.endOnSuspended {
			t.lose(framework.ErrNotConnected)
			// Nobody believes in the node any more, so it has to go.
			p.scope.Session.DropClaim(cl)
			p.removed(t, p.scope.Session.Remove(p.session, p.node()))
			p.line.vacate(t)
		}
	case session.ClaimLost:
		t.lose(reason)
		p.over(t, reason)
		p.line.vacate(t)
	}
}

// removed tells the tenure when its node is gone.
func (p *place) removed(t *tenure, r *session.Removal) { r.Then(func(err error) { p.over(t, err) }) }

// over tells the tenure that its node is gone, or will be with the session.
func (p *place) over(t *tenure, reason error) {
	switch {
	case reason == nil, session.IsGone(reason), errors.Is(reason, framework.ErrNoNode):
		t.isGone()
	case errors.Is(reason, framework.ErrSessionExpired), errors.Is(reason, framework.ErrNotConnected),
		errors.Is(reason, session.ErrSessionOver), errors.Is(reason, session.ErrClosed):
		p.scope.Session.AfterGone(p.session, t.isGone)
	}
}

// giveBack deletes the node of a tenure that is over. Who is next in line here
// makes its node after that, in the same session, so that the servers see both
// in this order.
func (p *place) giveBack(t *tenure) error {
	removal := p.scope.Session.Remove(p.session, p.node())
	p.removed(t, removal)
	p.sweep()
	p.line.vacate(t)
	return p.given(t, removal, p.opts.releaseWait)
}

// given waits for a node to be deleted, for so long at most, and returns what
// Release shall.
func (p *place) given(t *tenure, removal *session.Removal, limit time.Duration) error {
	switch err := removal.Wait(t.awaits(removal, limit)); {
	case err == nil:
		return nil
	case errors.Is(err, framework.ErrNoNode):
		return lostError(t.node(), ErrNodeDeleted)
	case errors.Is(err, session.ErrLate), errors.Is(err, session.ErrSessionOver), errors.Is(err, session.ErrClosed):
		return ErrReleasePending
	default:
		return opError("release", p.node(), err)
	}
}

// observe tells of requests to give the lock back, until stopped or the session
// is over.
func (p *place) observe(asked func()) (stop func()) {
	return p.scope.Session.Observe(p.session, p.node(), func(data []byte) {
		if string(data) == revokeData {
			asked()
		}
	})
}

// AttemptRevoke asks the participant at path, as Participants gives it, to give
// way; an absent one is a success. Whether it does is up to it: it must have
// been made Revocable.
//
// Source: Curator's Revoker.
func AttemptRevoke(ctx context.Context, c *framework.Client, path string) error {
	_, err := c.Set(ctx, path, []byte(revokeData), framework.AnyVersion, framework.Idempotent())
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return err
}
