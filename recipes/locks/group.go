package locks

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/cleanup"
)

// newGroup makes one hold of several. It is lost as soon as one of them is, and its
// release releases all of them. If newGroup fails, as one is lost already, none of them is
// held any more.
func newGroup(ctx context.Context, members []*Hold) (_ *Hold, err error) {
	made := false
	defer func() {
		if !made {
			err = errors.Join(err, refusals(releaseAll(members, ctx.Done())))
		}
	}()
	if _, err := worst(members); err != nil {
		return nil, err
	}
	o := &ownership{state: ownershipState{is: Held}}
	for _, m := range members {
		_ = m.ownership.pin() // as the group shows its token; why it cannot is found below
	}
	o.token = commonToken(members)
	o.backing = &groupBacking{o, members}
	hold, err := newHold(ctx, o)
	if err != nil {
		return nil, err
	}
	made = true
	for _, m := range members {
		m.ownership.group(o)
	}
	return hold, nil
}

// groupBacking is the holds that a group stands on.
type groupBacking struct {
	group *ownership
	holds []*Hold
}

func (g *groupBacking) members() []*Hold          { return g.holds }
func (g *groupBacking) check() (HoldState, error) { return worst(g.holds) }
func (g *groupBacking) clear() error              { return refusals(g.give()) }

func (g *groupBacking) give() error {
	for _, m := range g.holds {
		m.ownership.ungroup(g.group)
	}
	return releaseAll(g.holds, nil)
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

// releaseAll releases in reverse, but deletes the nodes of our locks together. A hold may
// have been released before. Once giveUp is closed, it does not wait for the servers.
func releaseAll(holds []*Hold, giveUp <-chan struct{}) error {
	g := givingBack{giveUp: giveUp}
	for _, h := range slices.Backward(holds) {
		g.end(h)
	}
	g.deleteNodes()
	return g.err()
}

// givingBack gives several holds back together.
type givingBack struct {
	giveUp  <-chan struct{} // ends the wait for the servers; nil for never
	over    []*ownership    // whose node has to go
	pending bool
	errs    []error
}

// end ends a hold for good, with the members that it still has. What had its node is over.
// It reports false if the hold was released before.
func (g *givingBack) end(h *Hold) bool {
	o := h.ownership
	if o.queue == nil && len(h.members()) == 0 { // a lock of somebody else's
		g.take(h.Release())
		return true
	}
	if !h.released.CompareAndSwap(false, true) {
		return false
	}
	h.endContexts()
	for _, m := range slices.Backward(h.members()) {
		m.ownership.ungroup(o)
		g.end(m)
	}
	last, lost := o.leave(h)
	g.take(lost)
	if lost == nil {
		h.trace().released()
	}
	if last && lost == nil && o.queue != nil {
		g.over = append(g.over, o)
	}
	return true
}

func (g *givingBack) take(err error) {
	switch {
	case err == nil, errors.Is(err, ErrReleased):
	case errors.Is(err, ErrReleasePending):
		g.pending = true
	default:
		g.errs = append(g.errs, err)
	}
}

// err is the result for Release.
func (g *givingBack) err() error {
	if len(g.errs) == 0 && g.pending {
		return ErrReleasePending
	}
	return errors.Join(g.errs...)
}

// deleteNodes deletes the nodes of what is over, those of one session together, and waits
// for that.
func (g *givingBack) deleteNodes() {
	type source struct {
		*session.Session
		id int64
	}
	paths := make(map[source][]string)
	of := make(map[source][]*ownership)
	var longest time.Duration
	for _, o := range g.over {
		o.stopTracking()
		from := source{o.node.Session(), o.node.SessionID()}
		paths[from] = append(paths[from], o.nodePath())
		of[from] = append(of[from], o)
		longest = max(longest, o.queue.ReleaseWait)
	}
	until := time.Now().Add(longest)
	for from, owns := range of {
		removals := cleanup.RemoveAll(from.Session, from.id, paths[from])
		for _, o := range owns {
			o.node.SweepBeside()
			o.local.ownershipOver(o)
		}
		for i, o := range owns {
			g.take(o.awaitRemoval(removals[i], time.Until(until), g.giveUp))
		}
	}
}

// deleted says that a transaction has deleted the nodes of what is over.
func (g *givingBack) deleted() {
	for _, o := range g.over {
		o.stopTracking()
		o.node.Sweep()
		o.local.ownershipOver(o)
	}
}

// refusals is the part of an error that matters to a caller whose lock is lost or given
// up anyway.
func refusals(err error) error {
	if errors.Is(err, ErrLockLost) || errors.Is(err, ErrReleasePending) {
		return nil
	}
	return err
}

// group makes another ownership lost, and uncertain, together with this one.
func (o *ownership) group(g *ownership) {
	o.mu.Lock()
	state, err := o.state.is, o.state.err
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
