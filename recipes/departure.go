package recipes

import (
	"errors"

	"github.com/paddock-zk/paddock/internal/session"
)

// departure is a hold that is being given back by a transaction, which has no
// known outcome yet.
type departure struct {
	hold  *Hold
	inner []*departure // of its members
	last  bool         // no other hold shares the tenure, so that its node goes
	late  bool         // it became the last one while the transaction was on its way
	left  bool         // its contexts were ended for now
}

// depart begins to give a hold back, with the members that it still has. If it
// cannot, all is as before.
func (h *Hold) depart() (*departure, error) {
	if !h.released.CompareAndSwap(false, true) {
		return nil, ErrReleased
	}
	d := &departure{hold: h}
	for _, m := range h.members() {
		inner, err := m.depart()
		if errors.Is(err, ErrReleased) {
			continue // early
		}
		if err != nil {
			d.undo()
			return nil, err
		}
		d.inner = append(d.inner, inner)
	}
	if err := d.begin(); err != nil {
		d.undo()
		return nil, err
	}
	return d, nil
}

func (d *departure) begin() error {
	t := d.hold.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == Lost {
		return t.err
	}
	d.last = len(t.holds) == 1
	t.leaving = d.last
	return nil
}

// undo says that nothing has come of it.
func (d *departure) undo() {
	for _, inner := range d.inner {
		inner.undo()
	}
	t := d.hold.tenure
	t.mu.Lock()
	missed := t.missed
	if d.last {
		t.leaving, t.missed = false, nil
	}
	t.mu.Unlock()
	if missed != nil {
		t.lose(missed) // before contexts can be bound
	}
	if d.left {
		d.hold.rejoin(true)
	}
	d.hold.released.Store(false)
}

// reopen lets the hold be released after a transaction of which nobody knows what
// has come. That its node is gone is no loss: it will have been deleted by that.
func (d *departure) reopen() {
	for _, inner := range d.inner {
		inner.reopen()
	}
	d.hold.rejoin(false)
	d.hold.released.Store(false)
}

// mark says that the hold is over, whatever becomes of its node.
func (d *departure) mark() {
	t, h := d.hold.tenure, d.hold
	for _, inner := range d.inner {
		inner.hold.tenure.ungroup(t)
		inner.mark()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.takeOutLocked(h)
	if len(t.holds) == 0 && t.state != Lost {
		d.late = !d.last
		d.last = true
		t.endLocked(Released, ErrReleased)
	}
}

// leave ends the contexts. They are to be detached.
func (d *departure) leave() (ended []*holdContext) {
	for _, inner := range d.inner {
		ended = append(ended, inner.leave()...)
	}
	return append(ended, d.hold.leave()...)
}

// leaveForNow ends the contexts before it is known what comes of it. They are to
// be detached.
func (d *departure) leaveForNow() (ended []*holdContext) {
	for _, inner := range d.inner {
		ended = append(ended, inner.leaveForNow()...)
	}
	d.left = true
	return append(ended, d.hold.leaveForNow()...)
}

// done says that the transaction was applied.
func (d *departure) done() {
	d.mark()
	for _, leaf := range d.leaves(nil) {
		t := leaf.hold.tenure
		if leaf.late {
			t.hurry()
			_ = t.give() // the transaction has left its node; this goes on in the background
			continue
		}
		t.place.quit(t)
		t.place.sweep()
		t.place.line.vacate(t)
		t.isGone()
	}
}

// leaves are the departures from nodes that go.
func (d *departure) leaves(all []*departure) []*departure {
	if d.last && d.hold.tenure.place != nil {
		all = append(all, d)
	}
	for _, inner := range d.inner {
		all = inner.leaves(all)
	}
	return all
}

// missedLocked keeps what would be a loss of the node if it were not for a
// transaction that deletes it.
func (t *tenure) missedLocked(reason error) bool {
	if !t.leaving || !session.IsGone(reason) {
		return false
	}
	t.missed = reason
	return true
}
