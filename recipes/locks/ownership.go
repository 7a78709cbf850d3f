package locks

import (
	"context"
	"errors"
	gopath "path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/cleanup"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// ownership is one ownership of a lock: of a node, of a semaphore's lease, of a
// MultiLock's members, or of a foreign lock. The holds that re-enter it share it, and the
// last one to be released gives it back.
type ownership struct {
	key       lockKey // zero for a foreign lock and a MultiLock
	token     int64
	queue     *queue       // of the node that it stands on, nil if that is none
	local     *localQueue  // where goroutines of this client wait for the node, nil if none can
	node      acquire.Node // that it stands on, with a queue
	since     time.Time    // it got the node
	first     time.Time    // the node was first in its queue: owners of this client may have had it before
	handovers int          // of the node since then
	members   []*Hold      // of a MultiLock or a semaphore, that it stands on; not to be changed
	foreign   func() error // gives a foreign lock back
	ended     atomic.Bool  // the state is final: to be read without the mutex

	mu        sync.Mutex // guards the fields below
	state     HoldState  // Lost and Released are final: no event changes them
	err       error      // of Lost and Released, nil before
	pinned    bool       // the node goes with the ownership, in whatever state: no other owner may have it
	writes    int32      // transactions on their way that rest on the node
	holds     []*Hold
	groups    []*ownership              // that are lost with this one
	hub       *listeners.Hub[HoldState] // made by the first Listen
	revoked   chan struct{}             // closed once somebody asks for the lock back; nil until a caller wants to know
	unobserve func()                    // ends waiting for that
	looked    time.Time                 // at the queue, for the last time
	isWanted  bool                      // as that has shown
	passed    bool                      // the node went to another owner of this client: only the tracer goes by it
}

// wanted is whether an owner that may have other locks waits for the lock, by a look that is no older than
// acquire.LookEvery. Leases, foreign locks and what a MultiLock has always count as wanted.
func (o *ownership) wanted(ctx context.Context) bool {
	wanted, at := o.lookedAt()
	if wanted && at.IsZero() || time.Since(at) < acquire.LookEvery {
		return wanted
	}
	c, err := o.node.Session().ConnOf(o.node.SessionID())
	if err != nil {
		return true
	}
	snap, err := o.queue.List(ctx, c)
	if err != nil {
		return true
	}
	defer snap.Free()
	place := snap.Find(gopath.Base(o.node.Path()))
	wanted = place < 0 || o.local.Waits() || snap.Ways(place+1)&^nodename.Ways(0).With(nodename.Plain) != 0
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looked, o.isWanted = time.Now(), wanted
	return wanted
}

// lookedAt is what the latest look has shown, and when that was.
func (o *ownership) lookedAt() (wanted bool, at time.Time) {
	if o.queue == nil || o.queue.Path != o.queue.Lock {
		return true, at
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.isWanted, o.looked
}

// wantedThen is what the latest look has shown. Before it nobody wants the lock.
func (o *ownership) wantedThen() bool {
	wanted, _ := o.lookedAt()
	return wanted
}

// own is the ownership of a node in the queue. A lock that several owners have at a time has
// no token.
func (q *queue) own(node acquire.Node) *ownership {
	now := time.Now()
	o := &ownership{key: q.key, queue: q, node: node, since: now, first: now, state: Held}
	if q.exclusive {
		o.token = node.Token()
	}
	return o
}

// check asks how sure the ownership is now. A foreign lock says by itself when that changes.
func (o *ownership) check() (HoldState, error) {
	if o.members != nil {
		return worst(o.members)
	}
	if o.queue == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.state, o.err
	}
	switch state, reason := o.node.State(); state {
	case session.NodeLost:
		return Lost, reason
	case session.NodeUncertain:
		return Uncertain, nil
	}
	return Held, nil
}

// Node is where it keeps the node that it stands on.
func (o *ownership) Node() *acquire.Node { return &o.node }

// nodeKind is what kind of node it is, for the sides of a read/write lock.
func (o *ownership) nodeKind() znode.Kind {
	if o.queue == nil {
		return ""
	}
	return o.queue.Kind
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default: // nil as well
		return false
	}
}

// now is the state at this moment. It also reads the clock, since a deadline may have
// passed that no timer has noticed yet.
func (o *ownership) now() (HoldState, error) {
	if !o.ended.Load() {
		state, err := o.check()
		if state != Lost {
			return state, nil
		}
		o.lose(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state, o.err
}

// endLocked makes the state final, and tells listeners.
func (o *ownership) endLocked(state HoldState, err error) {
	o.state, o.err = state, err
	o.ended.Store(true)
	o.publishLocked(state)
}

// over is whether a hold of the ownership is over: the lock was given back, or it was
// lost and the hold was released after that.
func (o *ownership) over(h *Hold) bool {
	if !o.ended.Load() {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state == Released || o.state == Lost && !slices.Contains(o.holds, h)
}

// become switches between Held and Uncertain.
func (o *ownership) become(from, to HoldState) {
	o.mu.Lock()
	changed := o.state == from
	if changed {
		o.state = to
		o.publishLocked(to)
	}
	holds, groups := slices.Clone(o.holds), slices.Clone(o.groups)
	o.mu.Unlock()
	if !changed {
		return
	}
	tellState(holds, to)
	for _, g := range groups {
		// A group is as sure as its least sure member.
		if state, _ := g.check(); state == to {
			g.become(from, to)
		}
	}
}

// publishLocked tells listeners in the order of the changes; it only queues.
func (o *ownership) publishLocked(s HoldState) {
	if o.hub != nil {
		o.hub.Publish(s)
		if s == Lost || s == Released {
			o.hub.Close()
		}
	}
}

// lose ends the ownership as lost, if it has not ended. When it returns, the contexts of
// the holds have ended, also if another goroutine was ending them. The caller's next step
// may give the lock away.
func (o *ownership) lose(reason error) {
	o.mu.Lock()
	first := o.err == nil
	if first {
		o.endLocked(Lost, lostError(o.node.Path(), reason))
	} else if o.state == Released {
		o.mu.Unlock()
		return
	}
	lost := o.err
	holds, groups := slices.Clone(o.holds), slices.Clone(o.groups)
	o.mu.Unlock()
	for _, h := range holds {
		h.end(lost)
	}
	for _, g := range groups {
		g.lose(lost)
	}
	if first {
		if o.queue != nil {
			o.node.Sweep() // nobody gives it back, which would do so
		}
		o.tellLost(holds, lost)
	}
}

// session is that of the client whose node it stands on, of the first one if there
// are several; nil if there is none.
func (o *ownership) session() *session.Session {
	if o.queue != nil {
		return o.queue.Core.Session()
	}
	for _, m := range o.members {
		if s := m.ownership.session(); s != nil {
			return s
		}
	}
	return nil
}

// lostError makes a LostError of a reason, unless the reason says already that a lock was
// lost.
func lostError(path string, reason error) error {
	var lost *LostError
	if errors.As(reason, &lost) {
		return reason
	}
	return &LostError{Path: path, Reason: reason}
}

// addHold adds a hold. It fails if the ownership has ended.
func (o *ownership) addHold(h *Hold) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	o.holds = append(o.holds, h)
	return nil
}

// takeOutLocked takes a hold away, most often the one that joined last.
func (o *ownership) takeOutLocked(h *Hold) {
	if last := len(o.holds) - 1; last >= 0 && o.holds[last] == h {
		o.holds[last] = nil
		o.holds = o.holds[:last]
		return
	}
	o.holds = slices.DeleteFunc(o.holds, func(other *Hold) bool { return other == h })
}

// leave takes a hold away, nil for none. It reports whether no other is left. The error is
// that the lock was lost before.
func (o *ownership) leave(h *Hold) (last bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.takeOutLocked(h)
	last = len(o.holds) == 0
	if o.state == Lost {
		return last, o.err
	}
	if last {
		o.endLocked(Released, ErrReleased)
	}
	return last, nil
}

func (o *ownership) listen(fn func(HoldState)) (remove func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	over := o.err != nil
	hub := o.hub
	if hub == nil || over {
		hub = &listeners.Hub[HoldState]{ReplayLast: true, OnPanic: o.panicked}
		hub.Publish(o.state)
	}
	remove = hub.Listen(fn)
	if over {
		hub.Close()
	} else {
		o.hub = hub
	}
	return remove
}

// panicked reports what a listener panicked with to the client's error listeners.
func (o *ownership) panicked(value any) {
	if s := o.session(); s != nil {
		s.Report(session.Panicked, &session.PanicError{Value: value})
	}
}

// pin makes the release delete the node, and not hand it over to another owner. It fails
// if the ownership has ended.
func (o *ownership) pin() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pinned = o.pinned || o.err == nil
	return o.err
}

// isPinned is whether the release has to delete the node. The ownership is over.
func (o *ownership) isPinned() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pinned || o.writes > 0
}

// show returns the token. From then on no other ownership may have it, see pin. It
// returns 0 once the ownership is over.
func (o *ownership) show() int64 {
	if o.pin() != nil {
		return 0
	}
	return o.token
}

// write says that a transaction begins. It fails if the ownership has ended.
func (o *ownership) write() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.writes++
	}
	return o.err
}

// wrote says that a transaction is over. If its outcome is unknown, the servers may still
// apply it, as long as the node is there.
func (o *ownership) wrote(doubt bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writes--
	o.pinned = o.pinned || doubt
}

// NodeChanged is how the session reports a change of the node.
func (o *ownership) NodeChanged(node *session.TrackedNode, state session.TrackedState, reason error) {
	switch state {
	case session.NodeHeld:
		o.become(Uncertain, Held)
	case session.NodeUncertain:
		o.become(Held, Uncertain)
		if o.queue.EndOnSuspended {
			o.lose(framework.ErrNotConnected)
			// Nobody believes in the node any more, so it has to go.
			node.Untrack()
			cleanup.Remove(o.node.Session(), o.node.SessionID(), o.node.Path())
			o.local.Leave(o, nil)
		}
	case session.NodeLost:
		o.lose(reason)
		o.local.Leave(o, nil)
	}
}
