package locks

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/paddock-zk/paddock/framework"
)

// Hold is one acquisition. Any goroutine may use and release it. A zero or nil Hold is
// over. Release every hold, also a lost one: until then the context given to Acquire
// remembers the hold's.
type Hold struct {
	ownership *ownership
	entered   *queue    // of the lock that re-entered, which can be of another namespace; nil for a first hold
	chain     holdChain // this hold, as its own context carries it
	released  atomic.Bool

	mu    sync.Mutex // guards the fields below, and the parent in chain
	ended error      // why the contexts were ended, nil while they go on
	own   *holdContext
	bound map[*holdContext]struct{}

	goroutine      uint64 // that has acquired it, if goroutines notes it
	earlier, later *Hold  // of that goroutine
}

// isNone is whether it is the zero or nil Hold.
func (h *Hold) isNone() bool { return h == nil || h.ownership == nil }

// newHold makes a hold of an ownership for a caller with the context ctx.
func newHold(ctx context.Context, o *ownership) (*Hold, error) {
	h := &Hold{ownership: o}
	h.chain = holdChain{hold: h, outer: holdChainOf(ctx), parent: ctx}
	if err := o.addHold(h); err != nil {
		return nil, err
	}
	goroutines.acquired(h)
	return h, nil
}

// newNodeHold makes a hold of the ownership of a node for the caller that asked for it.
func newNodeHold(ctx context.Context, o *ownership) (*Hold, error) {
	hold, err := newHold(ctx, o)
	if err != nil {
		return nil, err // lost in the meantime
	}
	o.observeRevocation() //nolint:contextcheck // it observes for as long as the hold lasts
	return hold, nil
}

// again is what an acquisition does of which the node was lost before anybody had the lock. It
// begins again, as a waiter does whose node is lost, unless there is an error.
func (o *ownership) again() error {
	if o.queue.outlived(o.node.SessionID()) {
		return framework.ErrSessionExpired
	}
	return nil
}

// again is that of several holds, of which err says that they cannot be held together. A lock
// of somebody else's says by itself when it is lost, and why is the caller's. So is the loss of
// one that the caller had before, and has re-entered.
func again(holds []*Hold, err error) error {
	lost := false
	for _, h := range holds {
		if state, _ := h.status(); state != Lost {
			continue
		}
		if h.ownership.queue == nil || h.chain.entered() != nil {
			return err
		}
		if over := h.ownership.again(); over != nil {
			return over
		}
		lost = true
	}
	if lost {
		return nil
	}
	return err
}

// holdAll makes holds of the ownerships of nodes that were won together. If one was lost
// meanwhile, it gives all nodes back. Then it returns an error, or no holds to a caller that
// acquires them once more.
func holdAll(ctx context.Context, won []*ownership) (holds []*Hold, err error) {
	holds = make([]*Hold, 0, len(won))
	for i, o := range won {
		hold, err := newNodeHold(ctx, o)
		if err != nil {
			for _, lacks := range won[i:] {
				lacks.decline()
			}
			_ = releaseAll(holds, ctx.Done()) // what the servers refuse is reported, and tried again
			for _, o := range won {           // a session takes all its nodes with it
				if over := o.again(); over != nil {
					return nil, over
				}
			}
			return nil, nil
		}
		holds = append(holds, hold)
	}
	return holds, nil
}

// NewHold makes the hold of a Lock of your own type. ctx is the one that Acquire was
// given; nil is the same as context.Background. The hold's Release calls release once and
// returns its error; a nil release does nothing.
//
// Call lost when the lock may no longer be held. The hold then ends with a *LostError
// around cause, and release is not called.
func NewHold(ctx context.Context, release func() error) (hold *Hold, lost func(cause error)) { //nolint:contextcheck // a nil context has nothing to pass on
	if release == nil {
		release = func() error { return nil }
	}
	o := &ownership{state: Held, foreign: release}
	if ctx == nil {
		ctx = context.Background()
	}
	// A new ownership lets its first hold join.
	hold, _ = newHold(ctx, o)
	return hold, o.lose
}

// Release gives the lock back. It is safe to defer. Whatever it returns, the hold
// has ended:
//   - nil: the servers have confirmed that the node is gone, or the lock went to
//     another goroutine of this client (see LocalHandovers), or another hold of
//     this owner keeps it.
//   - ErrReleasePending: the servers have not confirmed within ReleaseWait, and
//     deleting goes on in the background.
//   - an error that matches ErrLockLost: the lock was gone before.
//   - ErrReleased: it was released before, or is the zero or nil Hold. So it may be
//     deferred before the error of Acquire is looked at.
//   - a refusal by the servers, such as framework.ErrNoAuth. The client goes on
//     trying in the background. The node stays until the servers let it be deleted,
//     or the session ends.
//
// The hold's contexts end before anything else happens, and with them those of holds that
// were acquired under it. Those stay held until they are released, see Context.
func (h *Hold) Release() error {
	if h.isNone() || !h.released.CompareAndSwap(false, true) {
		return ErrReleased
	}
	if trace := h.trace(); trace != nil {
		return trace.release(h)
	}
	return h.release() // its steps are in release.go
}

// release takes the steps that release.go has in order.
func (h *Hold) release() error {
	_, _ = h.ownership.now() // a deadline may have passed unseen
	h.endContexts()
	return h.ownership.removeHold(h)
}

// State is the present state. It asks no server.
func (h *Hold) State() HoldState {
	state, _ := h.status()
	return state
}

func (h *Hold) status() (HoldState, error) {
	if h.isNone() {
		return Released, ErrReleased
	}
	state, err := h.ownership.now()
	if h.released.Load() && state != Lost {
		return Released, ErrReleased
	}
	return state, err
}

// Listen calls fn with the present state and each later one, in order, up to Lost or
// Released. If several holds share a lock by re-entry, Released comes with the last one's
// release.
func (h *Hold) Listen(fn func(HoldState)) (remove func()) {
	if h.isNone() {
		return func() {}
	}
	return h.ownership.listen(fn)
}

// Err is nil while held or uncertain, then a *LostError or ErrReleased.
func (h *Hold) Err() error {
	_, err := h.status()
	return err
}

// Path is the hold's node: its path below the client's chroot and namespace. It is "" if
// there is no node, and for a MultiLock or leases taken together: their Members have paths.
func (h *Hold) Path() string {
	if h.isNone() || h.ownership.queue == nil {
		return ""
	}
	return h.through().Core.Relative(h.ownership.node.Path())
}

// String is the state and the node, for logs.
func (h *Hold) String() string {
	if path := h.Path(); path != "" {
		return h.State().String() + " " + path
	}
	return h.State().String()
}

// Members are the holds of a MultiLock's members, or of the leases of a semaphore.
// Other holds have none. A MultiLock's members are in the order of their paths, and
// those of lock types of your own follow in the order given. You may release one
// early; the others stay held. That one is then no part of the hold any more: somebody
// else may have its lock, and neither State nor Transaction go by it.
func (h *Hold) Members() []*Hold {
	if h.isNone() {
		return nil
	}
	return append([]*Hold(nil), h.members()...)
}

// members are its Members, not to be changed.
func (h *Hold) members() []*Hold { return h.ownership.members }

// through is the queue of the lock that a hold was acquired with. For one of several nodes it is
// that of the first, and nil if there is none.
func (h *Hold) through() *queue {
	if h.isNone() {
		return nil
	}
	if h.entered != nil {
		return h.entered
	}
	if h.ownership.queue != nil {
		return h.ownership.queue
	}
	for _, m := range h.members() {
		if q := m.through(); q != nil {
			return q
		}
	}
	return nil
}

// first is the first ownership under a hold that stands on a node, nil for none.
func (h *Hold) first() *ownership {
	if h.isNone() {
		return nil
	}
	if h.ownership.queue != nil {
		return h.ownership
	}
	for _, m := range h.members() {
		if o := m.first(); o != nil {
			return o
		}
	}
	return nil
}

// FencingToken is a number that rises from holder to holder, for the life of the
// ensemble. It is the node's czxid. Once a holder has called FencingToken, the next
// holder gets another node and so another token, see LocalHandovers. Holders of different
// locks may have the same token, since the nodes of several locks can be made in one
// transaction. So compare tokens of one lock only.
//
// 0 means that there is no token, and every Gate refuses it. A read side, a lease, a lock
// of your own type and a hold that is over have no token. A MultiLock has none if its
// members' tokens differ; call FencingToken of its Members then.
func (h *Hold) FencingToken() int64 {
	if _, err := h.status(); err != nil {
		return 0
	}
	return h.ownership.show()
}

// Revoked returns a channel that is closed when another participant asks for the lock
// back. To comply, release the hold. Without the option Revocable the channel is never
// closed, since nobody looks at the node then. Of a MultiLock, use those of its Members.
func (h *Hold) Revoked() <-chan struct{} {
	if h.isNone() {
		return nil
	}
	h.ownership.mu.Lock()
	defer h.ownership.mu.Unlock()
	if h.ownership.revoked == nil {
		h.ownership.revoked = make(chan struct{})
	}
	return h.ownership.revoked
}

// HoldState says how sure the client is that it holds a lock.
type HoldState int

// The states of a hold, in the order in which they can follow. Only Held and Uncertain
// may alternate.
const (
	// Held says that nobody else has the lock.
	Held HoldState = iota + 1
	// Uncertain says that the connection is suspended, or that the client is connected
	// again and has not seen the node yet. Nobody else has the lock, since the session
	// lease has not run out.
	Uncertain
	// Lost says that another owner may have the lock.
	Lost
	// Released says that it was given back.
	Released
)

// String returns the state in one word.
func (s HoldState) String() string {
	switch s {
	case Held:
		return "HELD"
	case Uncertain:
		return "UNCERTAIN"
	case Lost:
		return "LOST"
	case Released:
		return "RELEASED"
	}
	return "NONE"
}
