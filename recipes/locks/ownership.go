package locks

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/cleanup"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// ownership is one ownership of a lock: of a node, of a semaphore's lease, of a
// MultiLock's members, or of a foreign lock. The holds that re-enter it share it, and the
// last one to be released gives it back.
type ownership struct {
	key     lockKey // zero for a foreign lock and a MultiLock
	path    string  // of the node, "" if there is none
	token   int64
	queue   *queue       // of the node that it stands on, nil if that is none
	local   *localQueue  // where goroutines of this client wait for the node, nil if none can
	node    acquire.Node // that it stands on, with a queue
	since   time.Time    // it got the node
	backing backing      // what it stands on without a node of its own, nil with one
	ended   atomic.Bool  // the state is final: to be read without the mutex

	mu        sync.Mutex // guards the fields below
	state     ownershipState
	holds     []*Hold
	groups    []*ownership              // that are lost with this one
	hub       *listeners.Hub[HoldState] // made by the first Listen
	revoked   chan struct{}             // closed once somebody asks for the lock back; nil until a caller wants to know
	unobserve func()                    // ends waiting for that
	passed    bool                      // the node went to another owner of this client: only the tracer goes by it
}

// lockKey is which lock a hold is of. Lock objects of one client with the same
// path are the same lock; a namespace is part of the path.
type lockKey struct {
	session *session.Session
	path    string // in full
}

// own is the ownership of a node in the queue. A lock that several owners have at a time has
// no token.
func (q *queue) own(key lockKey, node acquire.Node, alone bool) *ownership {
	o := &ownership{key: key, path: q.Core.Relative(node.Path()), queue: q, node: node, since: time.Now(), state: ownershipState{is: Held}}
	if alone {
		o.token = node.Token()
	}
	return o
}

// backing is what an ownership without a node of its own stands on: other holds, or a
// foreign lock.
type backing interface {
	// members are the holds of a MultiLock or a semaphore, not to be changed.
	members() []*Hold
	// check returns how sure the ownership is now. A foreign lock says by itself when that
	// changes.
	check() (HoldState, error)
	// give gives it back, once, and returns the result for Release.
	give() error
	// clear does what is left to do when a lost ownership is released.
	clear() error
}

// check asks how sure the ownership is now.
func (o *ownership) check() (HoldState, error) {
	if o.backing != nil {
		return o.backing.check()
	}
	switch state, reason := o.node.State(); state {
	case session.NodeLost:
		return Lost, reason
	case session.NodeUncertain:
		return Uncertain, nil
	}
	return Held, nil
}

// members are the holds that it stands on, not to be changed.
func (o *ownership) members() []*Hold {
	if o.backing == nil {
		return nil
	}
	return o.backing.members()
}

// Node is where it keeps the node that it stands on.
func (o *ownership) Node() *acquire.Node { return &o.node }

// nodePath is the full path of the node it stands on, "" if that is none.
func (o *ownership) nodePath() string { return o.node.Path() }

// nodeKind is what kind of node it is, for the sides of a read/write lock.
func (o *ownership) nodeKind() znode.Kind {
	if o.queue == nil {
		return ""
	}
	return o.queue.Kind
}

// sent is a channel that is closed.
var sent = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

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
	return o.state.is, o.state.err
}

// endLocked tells listeners that the state is final.
func (o *ownership) endLocked() {
	o.ended.Store(true)
	o.publishLocked(o.state.is)
}

// over is whether a hold of the ownership is over: the lock was given back, or it was
// lost and the hold was released after that.
func (o *ownership) over(h *Hold) bool {
	if !o.ended.Load() {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state.is == Released || o.state.is == Lost && !slices.Contains(o.holds, h)
}

// become switches between Held and Uncertain.
func (o *ownership) become(from, to HoldState) {
	o.mu.Lock()
	changed := o.state.become(from, to)
	if changed {
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
	isLost, first := o.state.lose(o.nodePath(), reason)
	if !isLost {
		o.mu.Unlock()
		return
	}
	if first {
		o.endLocked()
	}
	lost := o.state.err
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
	for _, m := range o.members() {
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
	if o.state.err != nil {
		return o.state.err
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
	if o.state.is == Lost {
		return last, o.state.err
	}
	if last {
		o.state.release()
		o.endLocked()
	}
	return last, nil
}

func (o *ownership) listen(fn func(HoldState)) (remove func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	over := o.state.err != nil
	hub := o.hub
	if hub == nil || over {
		hub = &listeners.Hub[HoldState]{ReplayLast: true, OnPanic: o.panicked}
		hub.Publish(o.state.is)
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
	if o.queue != nil {
		o.queue.Core.Session().Report(session.Panicked, &session.PanicError{Value: value})
	} else if members := o.members(); len(members) > 0 {
		members[0].ownership.panicked(value)
	}
}

// pin makes the release delete the node, and not hand it over to another owner. It fails
// if the ownership has ended.
func (o *ownership) pin() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state.pin()
}

// isPinned is whether the release has to delete the node. The ownership is over.
func (o *ownership) isPinned() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state.isPinned()
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
	return o.state.write()
}

// wrote says that a transaction is over. If its outcome is unknown, the servers may still
// apply it, as long as the node is there.
func (o *ownership) wrote(doubt bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.state.wrote(doubt)
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
			o.local.ownershipOver(o)
		}
	case session.NodeLost:
		o.lose(reason)
		o.local.ownershipOver(o)
	}
}
