package locks

import (
	"context"
	"errors"
	"slices"
)

// newGroup makes one hold of several. It is lost as soon as one of them is, and its
// release releases all of them. If newGroup fails, as one is lost already, none of them is
// held any more.
func newGroup(ctx context.Context, members []*Hold) (*Hold, error) {
	if _, err := worst(members); err != nil {
		return nil, errors.Join(err, refusals(releaseAll(members, ctx.Done())))
	}
	o := &ownership{state: Held, members: members}
	for _, m := range members {
		_ = m.ownership.pin() // as the group shows its token; why it cannot is found below
	}
	o.token = commonToken(members)
	hold, _ := newHold(ctx, o) // a new ownership lets its first hold join
	for _, m := range members {
		m.ownership.group(o)
	}
	return hold, nil
}

// releaseMembers releases what a group stands on.
func (o *ownership) releaseMembers() error {
	for _, m := range o.members {
		m.ownership.ungroup(o)
	}
	return releaseAll(o.members, nil)
}

// commonToken is the token that all members have, 0 if they differ.
func commonToken(members []*Hold) int64 {
	token := members[0].ownership.token
	for _, m := range members {
		if m.ownership.token != token {
			return 0
		}
	}
	return token
}

// worst is the state of the least certain member. One that was released early
// does not count.
func worst(members []*Hold) (HoldState, error) {
	state := Held
	for _, m := range members {
		switch s, err := m.status(); s {
		case Lost:
			return Lost, err
		case Uncertain:
			state = Uncertain
		}
	}
	return state, nil
}

// group makes another ownership lost, and uncertain, together with this one.
func (o *ownership) group(g *ownership) {
	o.mu.Lock()
	state, err := o.state, o.err
	o.groups = append(o.groups, g)
	o.mu.Unlock()
	switch state {
	case Lost:
		g.lose(err)
	case Uncertain:
		g.become(Held, Uncertain)
	}
}

// ungroup ends what group began.
func (o *ownership) ungroup(g *ownership) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.groups = slices.DeleteFunc(o.groups, func(other *ownership) bool { return other == g })
}
