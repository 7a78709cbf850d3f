package locks

import (
	"context"
	"errors"

	"github.com/paddock-zk/paddock/framework"
)

// Where nobody is in the way, leases cost one round trip: one transaction makes
// our turn and the leases, with both lists right behind it on the same
// connection. They are ours if
//
//   - our turn is first: nobody is overtaken who came before us;
//   - all leases are among the first: that is what a lease means to everybody,
//     whoever has the turn, so there are never more owners than leases;
//   - the leases go at once if our turn is not first: Curator's peers count all
//     leases that there are, so one that we keep while we wait for our turn would
//     block who has it, for ever.
//
// In the last case a peer that waits for a lease may wake up for nothing. So we
// are bold only as long as nobody was in the way the last time.

// jointly is the optimistic attempt. Without ownerships and without an error it has
// become an ordinary one: our turn is in the queue.
func (a *leaseAttempt) jointly(ctx context.Context) (owns []*ownership, err error) {
	for range 3 { // both parents may be missing
		owns, err = a.joint(ctx)
		if owns != nil {
			return owns, nil
		}
		if a.turn.name == "" || a.turn.behind || err != nil {
			a.drop()
		}
		if !errors.Is(err, errAgain) || a.turn.name != "" {
			break
		}
	}
	if errors.Is(err, framework.ErrTooLarge) {
		err = nil // one by one
	}
	return nil, err
}

func (a *leaseAttempt) joint(ctx context.Context) ([]*ownership, error) {
	s := a.turns.scope.Session
	c, err := s.Conn(ctx, true)
	if err != nil {
		return nil, err
	}
	a.want()
	all := append([]*contender{a.turn}, a.leases...)
	for _, p := range all {
		if err := p.resolve(ctx, c); err != nil {
			return nil, err
		}
	}
	create, err := createTogether(c, all)
	if err != nil {
		return nil, err
	}
	line, leases := a.turn.listing(), a.leases[0].listing()
	if err := s.Send(ctx, c, create, line, leases); err != nil {
		return nil, err
	}
	outcomeUnknown(all, create)
	s.Settle(ctx, leases)
	if err := createdTogether(ctx, c, create, all); err != nil {
		return nil, err
	}
	v, err := a.turn.readPosition(ctx, c, line)
	switch {
	case err != nil:
		return nil, err
	case v.ahead == "":
		if granted, err := a.granted(ctx, c, leases, new(position)); !granted || err != nil {
			return nil, err
		}
		return a.track(ctx)
	}
	a.turn.sawAhead(&v)
	a.drop()
	if a.once {
		return nil, nil
	}
	a.turn.beginWait()
	if err = a.turn.await(ctx, c, &v); err != nil {
		a.turn.obstacle = a.turn.obstacleIn(&v)
	}
	return nil, err
}
