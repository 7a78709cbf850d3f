package locks

import "errors"

// pendingRelease is a hold that a transaction is giving back. The outcome of the
// transaction is not known yet.
type pendingRelease struct {
	hold       *Hold
	inner      []*pendingRelease // of its members
	last       bool              // no other hold shares the ownership, so that its node goes
	becameLast bool              // it became the last one while the transaction was on its way
	left       bool              // its contexts were ended for now
}

// beginRelease begins to give a hold back, with the members that it still has. If it
// cannot, all is as before.
func (h *Hold) beginRelease() (*pendingRelease, error) {
	if !h.released.CompareAndSwap(false, true) {
		return nil, ErrReleased
	}
	d := &pendingRelease{hold: h}
	for _, m := range h.members() {
		inner, err := m.beginRelease()
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

func (d *pendingRelease) begin() error {
	o := d.hold.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	last := len(o.holds) == 1
	if err := o.state.leave(last); err != nil {
		return err
	}
	d.last = last
	return nil
}

// undo says that the transaction was not applied.
func (d *pendingRelease) undo() {
	for _, inner := range d.inner {
		inner.undo()
	}
	o := d.hold.ownership
	var missed error
	if d.last {
		o.mu.Lock()
		missed = o.state.stay()
		o.mu.Unlock()
	}
	if missed != nil {
		o.lose(missed) // before contexts can be bound
	}
	if d.left {
		d.hold.rejoin(true)
	}
	d.hold.released.Store(false)
}

// reopen lets the hold be released after a transaction with an unknown outcome. If the
// node is gone, that is no loss: most likely the transaction has deleted it.
func (d *pendingRelease) reopen() {
	for _, inner := range d.inner {
		inner.reopen()
	}
	d.hold.rejoin(false)
	d.hold.released.Store(false)
}

// mark says that the hold is over, also if its node stays.
func (d *pendingRelease) mark() {
	o, h := d.hold.ownership, d.hold
	for _, inner := range d.inner {
		inner.hold.ownership.ungroup(o)
		inner.mark()
	}
	defer h.told().released()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.takeOutLocked(h)
	if len(o.holds) == 0 && o.state.release() {
		d.becameLast = !d.last
		d.last = true
		o.endLocked()
	}
}

// leave ends the contexts. The caller has to detach them.
func (d *pendingRelease) leave() (ended []*holdContext) {
	for _, inner := range d.inner {
		ended = append(ended, inner.leave()...)
	}
	return append(ended, d.hold.leave()...)
}

// leaveForNow ends the contexts before the outcome is known. The caller has to detach
// them.
func (d *pendingRelease) leaveForNow() (ended []*holdContext) {
	for _, inner := range d.inner {
		ended = append(ended, inner.leaveForNow()...)
	}
	d.left = true
	return append(ended, d.hold.leaveForNow()...)
}

// done says that the transaction was applied.
func (d *pendingRelease) done() {
	d.mark()
	for _, leaf := range d.leaves(nil) {
		o := leaf.hold.ownership
		if leaf.becameLast {
			o.hurry()
			_ = o.give() // the transaction has left its node; this goes on in the background
			continue
		}
		o.quit()
		o.node.Sweep()
		o.local.ownershipOver(o)
		o.markGone()
	}
}

// leaves are the pending releases of which the transaction deletes a node.
func (d *pendingRelease) leaves(all []*pendingRelease) []*pendingRelease {
	if d.last && d.hold.ownership.queue != nil {
		all = append(all, d)
	}
	for _, inner := range d.inner {
		all = inner.leaves(all)
	}
	return all
}
