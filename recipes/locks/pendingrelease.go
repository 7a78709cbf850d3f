package locks

import "errors"

// pendingRelease is a hold that is being given back: by a transaction of its owner, or
// together with others. Until end it can be undone.
type pendingRelease struct {
	hold       *Hold
	inner      []*pendingRelease // of its members
	last       bool              // no other hold shares the ownership, so that its node goes
	becameLast bool              // it became the last one while the transaction was on its way
	suspended  bool              // its contexts were ended for now
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
	if err := o.state.beginRelease(last); err != nil {
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
		missed = o.state.releaseRefused()
		o.mu.Unlock()
	}
	if missed != nil {
		o.lose(missed) // before contexts can be bound
	}
	if d.suspended {
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

// end says that the hold is over, also if its node stays.
func (d *pendingRelease) end() {
	o, h := d.hold.ownership, d.hold
	for _, inner := range d.inner {
		inner.hold.ownership.ungroup(o)
		inner.end()
	}
	defer h.trace().released()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.takeOutLocked(h)
	if len(o.holds) == 0 && o.state.release() {
		d.becameLast = !d.last
		d.last = true
		o.endLocked()
	}
}

// endContexts ends the contexts. The caller has to detach them.
func (d *pendingRelease) endContexts() (ended []*holdContext) {
	for _, inner := range d.inner {
		ended = append(ended, inner.endContexts()...)
	}
	return append(ended, d.hold.exit()...)
}

// suspendContexts ends the contexts before the outcome is known. The caller has to detach
// them.
func (d *pendingRelease) suspendContexts() (ended []*holdContext) {
	for _, inner := range d.inner {
		ended = append(ended, inner.suspendContexts()...)
	}
	d.suspended = true
	return append(ended, d.hold.suspend()...)
}

// done says that the transaction was applied.
func (d *pendingRelease) done() {
	d.end()
	for _, leaf := range d.deleting(nil) {
		o := leaf.hold.ownership
		if leaf.becameLast {
			o.hurry()
			_ = o.give() // the transaction has left its node; this goes on in the background
			continue
		}
		o.stopTracking()
		o.node.Sweep()
		o.local.ownershipOver(o)
		o.markGone()
	}
}

// deleting are the pending releases of which the transaction deletes a node.
func (d *pendingRelease) deleting(all []*pendingRelease) []*pendingRelease {
	if d.last && d.hold.ownership.queue != nil {
		all = append(all, d)
	}
	for _, inner := range d.inner {
		all = inner.deleting(all)
	}
	return all
}
