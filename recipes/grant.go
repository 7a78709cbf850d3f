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

// bind ties a tenure to the claim to its node.
func (p *place) bind(t *tenure, cl *session.Claim) {
	s := p.scope.Session
	t.claim = cl
	t.check = func() (HoldState, error) {
		state, reason := s.ClaimState(cl)
		switch state {
		case session.ClaimLost:
			return Lost, reason
		case session.ClaimUncertain:
			return Uncertain, nil
		}
		return Held, nil
	}
	t.quit = func() { s.DropClaim(cl) }
	t.give = func() error {
		t.quit()
		return p.giveBack(t)
	}
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
		}
	case session.ClaimLost:
		t.lose(reason)
		p.over(t, reason)
	}
}

// removed tells the tenure when its node is gone.
func (p *place) removed(t *tenure, r *session.Removal) { r.Then(func(err error) { p.over(t, err) }) }

// over tells the tenure that its node is gone, or will be with the session.
func (p *place) over(t *tenure, reason error) {
	switch {
	case reason == nil, errors.Is(reason, framework.ErrNoNode):
		t.isGone()
	case errors.Is(reason, framework.ErrSessionExpired), errors.Is(reason, framework.ErrNotConnected),
		errors.Is(reason, session.ErrSessionOver), errors.Is(reason, session.ErrClosed):
		p.scope.Session.AfterGone(p.session, t.isGone)
	}
}

// giveBack deletes the node of a tenure that is over.
func (p *place) giveBack(t *tenure) error {
	removal := p.scope.Session.Remove(p.session, p.node())
	p.removed(t, removal)
	p.sweep()
	return p.given(t, removal, p.opts.releaseWait)
}

// given waits for a node to be deleted, for so long at most, and returns what
// Release shall.
func (p *place) given(t *tenure, removal *session.Removal, limit time.Duration) error {
	switch err := removal.Wait(t.awaits(removal, limit)); {
	case err == nil:
		return nil
	case errors.Is(err, framework.ErrNoNode):
		return lostError(t.path, framework.ErrNoNode)
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
