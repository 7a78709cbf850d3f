package recipes

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/session"
)

// newGroup makes one hold of several: lost as soon as one of them is, released
// with all of them. If it cannot, none is left.
func newGroup(ctx context.Context, members []*Hold) (_ *Hold, err error) {
	made := false
	defer func() {
		if !made { // also if a method of the caller's context has panicked
			err = errors.Join(err, refusals(releaseAll(members)))
		}
	}()
	t := newTenure(lockKey{}, "")
	for _, m := range members {
		_ = m.tenure.keep() // as the group shows its token; why it cannot is found below
	}
	t.token = commonToken(members)
	release := func() error {
		for _, m := range members {
			m.tenure.ungroup(t)
		}
		return releaseAll(members)
	}
	t.means = &means{
		members: members,
		check:   func() (HoldState, error) { return worst(members) },
		give:    release,
		clear:   func() error { return refusals(release()) },
	}
	hold, err := newHold(ctx, t)
	if err != nil {
		return nil, err
	}
	made = true
	left := new(atomic.Int32)
	left.Store(int32(len(members)))
	for _, m := range members {
		m.tenure.group(t)
		m.tenure.thenGone(func() {
			if left.Add(-1) == 0 {
				t.isGone()
			}
		})
	}
	return hold, nil
}

// commonToken is the token that all members have, 0 if they differ.
func commonToken(members []*Hold) int64 {
	token := members[0].tenure.token
	for _, m := range members {
		if m.tenure.token != token {
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

// releaseAll releases in reverse, but deletes the nodes of our locks together. A
// hold that was released before is fine. If the release of a user's own lock panics,
// the others are given back nevertheless.
func releaseAll(holds []*Hold) error {
	var nodes []*departure
	var told outcome
	left, asked := holds, false
	defer func() {
		if !asked {
			_ = releaseAll(left)
			told.giveBack(nodes)
		}
	}()
	for len(left) > 0 {
		h := left[len(left)-1]
		left = left[:len(left)-1]
		if len(h.members()) == 0 && h.tenure.place == nil { // a lock of somebody else's
			told.take(h.Release())
			continue
		}
		d, err := h.depart()
		if err != nil { // lost, or released before
			told.take(h.Release())
			continue
		}
		nodes = append(nodes, d)
	}
	asked = true
	told.giveBack(nodes)
	return told.err()
}

// outcome is what several releases have to say together.
type outcome struct {
	pending bool
	errs    []error
}

func (o *outcome) take(err error) {
	switch {
	case err == nil, errors.Is(err, ErrReleased):
	case errors.Is(err, ErrReleasePending):
		o.pending = true
	default:
		o.errs = append(o.errs, err)
	}
}

func (o *outcome) err() error {
	if len(o.errs) == 0 && o.pending {
		return ErrReleasePending
	}
	return errors.Join(o.errs...)
}

// giveBack deletes the nodes that holds stood on, those of one session together,
// and waits for it.
func (o *outcome) giveBack(departures []*departure) {
	var leaves []*departure
	var ended []*holdContext
	for _, d := range departures {
		ended = append(ended, d.leave()...)
	}
	for _, d := range departures {
		d.mark()
		leaves = d.leaves(leaves)
	}
	type source struct {
		*session.Session
		id int64
	}
	paths := make(map[source][]string)
	of := make(map[source][]*tenure)
	var longest time.Duration
	for _, leaf := range leaves {
		t := leaf.hold.tenure
		t.place.quit(t)
		from := source{t.place.scope.Session, t.place.session}
		paths[from] = append(paths[from], t.place.node())
		of[from] = append(of[from], t)
		longest = max(longest, t.place.opts.releaseWait)
	}
	until := time.Now().Add(longest)
	for from, tenures := range of {
		removals := from.RemoveAll(from.id, paths[from])
		for i, t := range tenures {
			t.place.removed(t, removals[i])
			t.place.sweep()
			t.place.line.vacate(t)
		}
		for i, t := range tenures {
			o.take(t.place.given(t, removals[i], time.Until(until)))
		}
	}
	detach(ended)
}

// refusals is what of an error the caller has to know who has lost or given up
// the lock in any case.
func refusals(err error) error {
	if errors.Is(err, ErrLockLost) || errors.Is(err, ErrReleasePending) {
		return nil
	}
	return err
}

// group makes another tenure be lost and be uncertain with this one.
func (t *tenure) group(g *tenure) {
	t.mu.Lock()
	state, err := t.state, t.err
	t.groups = append(t.groups, g)
	t.mu.Unlock()
	switch state {
	case Lost:
		g.lose(err)
	case Uncertain:
		g.doubt()
	}
}
