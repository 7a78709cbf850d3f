package recipes

import (
	"context"
	"errors"
	"sync/atomic"
)

// newGroup makes one hold of several: lost as soon as one of them is, released
// with all of them. If it cannot, none is left.
func newGroup(ctx context.Context, members []*Hold) (*Hold, error) {
	t := newTenure(lockKey{}, "")
	t.check = func() (HoldState, error) { return worst(members) }
	release := func() error {
		for _, m := range members {
			m.tenure.ungroup(t)
		}
		return releaseAll(members)
	}
	t.give = release
	t.clear = func() error { return refusals(release()) }
	hold, err := newHold(ctx, t, members...)
	if err != nil {
		return nil, errors.Join(err, refusals(releaseAll(members)))
	}
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

// releaseAll releases in reverse. One that was released before is fine.
func releaseAll(members []*Hold) error {
	var pending bool
	var errs []error
	for i := len(members) - 1; i >= 0; i-- {
		switch err := members[i].Release(); {
		case err == nil, errors.Is(err, ErrReleased):
		case errors.Is(err, ErrReleasePending):
			pending = true
		default:
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 && pending {
		return ErrReleasePending
	}
	return errors.Join(errs...)
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
