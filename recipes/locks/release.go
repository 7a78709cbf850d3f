package locks

import (
	"errors"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/cleanup"
)

// A release takes these steps, in this order:
//
//  1. Hold.Release ends the contexts of the hold.
//  2. ownership.removeHold takes the hold away. After the last one it ends the ownership, and give begins.
//  3. ownership.pass hands it to a goroutine of this client, with the node, or
//  4. deleteNode stops watching the node, and deletes it.
//  5. awaitRemoval waits until the servers have confirmed that, for ReleaseWait at most.
//
// A node comes to its end in three more ways, with some of these steps:
//
//   - givingBack.deleteNodes gives several holds back, and deletes their nodes together.
//   - givingBack.deleted comes after a transaction that has deleted the node.
//   - ownership.NodeChanged comes when the hold is lost. Nobody waits then.
//
// Two rules hold in all of them. All contexts end before anything else, since the next
// step may let another owner in. And the local queue hears of the end only after the
// deletion has left: its next node has to come behind that.

// removeHold takes a hold away. After the last one it gives the lock back. It returns the
// result for Release.
func (o *ownership) removeHold(h *Hold) error {
	switch last, lost := o.leave(h); {
	case lost != nil && last && o.members != nil:
		if refused := refusals(o.releaseMembers()); refused != nil {
			return errors.Join(lost, refused)
		}
		return lost
	case lost != nil:
		return lost
	case last:
		return o.give()
	}
	return nil
}

// give hands the lock over, or gives it back, once. It returns the result for Release.
func (o *ownership) give() error {
	switch {
	case o.foreign != nil:
		return o.foreign()
	case o.members != nil:
		return o.releaseMembers()
	case o.pass():
		return nil
	}
	return o.awaitRemoval(o.deleteNode(), o.queue.ReleaseWait, nil)
}

// stopTracking stops watching the node of an ownership.
func (o *ownership) stopTracking() {
	o.mu.Lock()
	stop := o.unobserve
	o.unobserve = nil
	o.mu.Unlock()
	if stop != nil {
		stop()
	}
	o.node.Untrack()
}

// deleteNode deletes the node of an ownership that is over. The next in the local queue makes
// its node after that, in the same session, so that the servers see both in this order.
func (o *ownership) deleteNode() *cleanup.Removal {
	o.stopTracking()
	removal := o.node.Remove()
	o.local.Leave(o, nil)
	return removal
}

// awaitRemoval waits until a node is deleted, for so long at most and until giveUp is closed,
// and returns the result for Release.
func (o *ownership) awaitRemoval(removal *cleanup.Removal, limit time.Duration, giveUp <-chan struct{}) error {
	switch err := removal.Wait(limit, giveUp); {
	case err == nil:
		return nil
	case errors.Is(err, framework.ErrNoNode):
		return lostError(o.node.Path(), ErrNodeDeleted)
	case errors.Is(err, cleanup.ErrLate) && limit > 0 && !isClosed(giveUp):
		logPending(o.node.Session().Log(), o.lock(), limit)
		return ErrReleasePending
	case errors.Is(err, cleanup.ErrLate), errors.Is(err, session.ErrSessionOver), errors.Is(err, session.ErrClosed):
		return ErrReleasePending
	default:
		return opError("release", o.node.Path(), err)
	}
}

// decline gives back an ownership that no hold has joined, without waiting for the
// servers.
func (o *ownership) decline() {
	if _, lost := o.leave(nil); lost == nil && !o.pass() {
		o.deleteNode() // goes on in the background
	}
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
		paths[from] = append(paths[from], o.node.Path())
		of[from] = append(of[from], o)
		longest = max(longest, o.queue.ReleaseWait)
	}
	until := time.Now().Add(longest)
	for from, owns := range of {
		removals := cleanup.RemoveAll(from.Session, from.id, paths[from])
		for _, o := range owns {
			o.node.SweepBeside()
			o.local.Leave(o, nil)
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
		o.local.Leave(o, nil)
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
