package recipes

import (
	"context"
	"sync"
	"sync/atomic"
)

// Hold is one acquisition. Any goroutine may use and release it. The zero Hold
// is over.
type Hold struct {
	tenure  *tenure
	parent  context.Context // that was given to Acquire
	owner   owner           // this hold, as contexts carry it
	counted bool            // among those below the hold that it came from

	released atomic.Bool
	below    atomic.Int32 // holds acquired under this one that are not over, less one once it is released
	ended    atomic.Bool  // for over see overLocked
	shown    atomic.Bool  // somebody has a context of the hold

	mu       sync.Mutex // guards the fields below
	byParent bool       // the parent ended before this hold
	over     error      // what this hold ended with
	contexts *contexts  // made when needed
}

// contexts are those that somebody can wait for.
type contexts struct {
	whole  context.Context                    // see holdContext
	cancel context.CancelCauseFunc            // of whole
	bound  map[*owner]context.CancelCauseFunc // made by Bind
}

// newHold makes a hold of a tenure for who called with ctx.
func newHold(ctx context.Context, t *tenure) (*Hold, error) {
	h := &Hold{tenure: t, parent: ctx}
	h.owner = owner{hold: h, outer: ownerOf(ctx)}
	if err := t.join(h); err != nil {
		return nil, err
	}
	if from := h.owner.outer; from != nil {
		h.counted = from.hold.enter()
	}
	return h, nil
}

// NewHold makes the hold of a Lock of your own; ctx is the one Acquire was
// given. release is called once, by the hold's Release, whose error it gives.
// Call lost when ownership can no longer be vouched for; the hold then ends
// with a *LostError around cause, and release is not called.
func NewHold(ctx context.Context, release func() error) (hold *Hold, lost func(cause error)) {
	t := newTenure(lockKey{}, "")
	t.means = &means{give: func() error {
		defer t.isGone()
		return release()
	}}
	// A new tenure lets its first hold join.
	hold, _ = newHold(ctx, t)
	return hold, func(cause error) {
		t.lose(cause)
		t.isGone()
	}
}

// enter counts one more below a hold, which keeps its context from ending. It
// fails if nothing has kept it: then it has ended, or is about to.
func (h *Hold) enter() bool {
	for {
		n := h.below.Load()
		if n < 0 {
			return false
		}
		if h.below.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave undoes an enter, or says that the hold itself is released. The last one
// ends the context, and leaves the hold above.
func (h *Hold) leave() {
	for h.below.Add(-1) < 0 {
		h.end(ErrReleased)
		if !h.counted {
			return
		}
		h = h.owner.outer.hold
	}
}

// end ends the contexts of the hold. Most holds that re-enter show none, and need
// no more than a mark: either this sees that one was shown, or who looks at one
// sees the mark.
func (h *Hold) end(cause error) {
	before := h.parent.Err() != nil
	if cause == ErrReleased && !before { //nolint:errorlint // as leave gives it
		if h.ended.Store(true); !h.shown.Load() {
			return
		}
	}
	h.mu.Lock()
	if h.overLocked() == nil {
		h.over = cause
		h.byParent = h.byParent || before
		h.ended.Store(true)
	}
	if h.contexts == nil {
		h.mu.Unlock()
		return
	}
	made := *h.contexts
	h.contexts.bound = nil
	h.mu.Unlock()
	if made.cancel != nil {
		made.cancel(cause)
	}
	for _, cancel := range made.bound {
		cancel(cause)
	}
}

// Context is a child of the context given to Acquire and carries this hold as
// owner: acquiring the same lock with it, or with any child of it, re-enters.
// It ends with that parent (the lock stays held), with a cause that matches
// ErrLockLost as soon as the lock may be gone, and with cause ErrReleased once
// this hold and those acquired under it are released. Goroutines that share it
// share the lock. Other locks acquired under it are their own: who is not under
// such a hold queues.
func (h *Hold) Context() context.Context {
	if h.tenure == nil {
		return over
	}
	h.show()
	return (*holdContext)(h)
}

// show comes before anything of a context of the hold.
func (h *Hold) show() {
	if !h.shown.Load() {
		h.shown.Store(true)
	}
}

// overLocked is what the hold ended with, nil if it has not.
func (h *Hold) overLocked() error {
	if h.over == nil && h.ended.Load() {
		h.over = ErrReleased
	}
	return h.over
}

// over is the context of a hold that is none.
var over = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrReleased)
	return ctx
}()

// Bind is Context with another parent: a child of ctx that also carries this
// hold and ends with it. For holds that outlive the call that acquired them,
// such as a leader's that serves requests. cancel frees it and does not release
// the hold.
func (h *Hold) Bind(ctx context.Context) (bound context.Context, cancel context.CancelFunc) {
	if h.tenure == nil {
		return over, func() {}
	}
	// Not tied to the hold's own context, which ends with the ctx that Acquire
	// was given, while the hold goes on.
	carries := &owner{hold: h, outer: ownerOf(ctx)}
	bound, end := context.WithCancelCause(context.WithValue(ctx, ownerKey{}, carries))
	h.show()
	h.mu.Lock()
	ended := h.overLocked()
	if ended == nil {
		made := h.madeLocked()
		if made.bound == nil {
			made.bound = make(map[*owner]context.CancelCauseFunc)
		}
		made.bound[carries] = end
	}
	h.mu.Unlock()
	if ended != nil {
		end(ended)
	}
	return bound, func() {
		h.mu.Lock()
		delete(h.madeLocked().bound, carries)
		h.mu.Unlock()
		end(context.Canceled)
	}
}

// Release gives the lock back. It returns nil when the servers have confirmed,
// when the lock was handed over to another goroutine of this client (see
// LocalHandovers), or if another hold of this owner keeps it; ErrReleasePending when that
// was not to be had within ReleaseWait, and deleting goes on in the background;
// an error that matches ErrLockLost if the lock was gone before; or ErrReleased
// the second time. In each case the hold has ended here, and it is safe to defer.
// A refusal by the servers (framework.ErrNoAuth) is returned as it is: the node
// then stays until they let us delete it, which is tried again in the
// background, or the session ends.
func (h *Hold) Release() error {
	if h.tenure == nil {
		return ErrReleased
	}
	if !h.released.CompareAndSwap(false, true) {
		return ErrReleased
	}
	_, _ = h.tenure.now() // a deadline may have passed unseen
	err := h.tenure.leave(h)
	h.leave()
	return err
}

// Gone is closed when the node is known to be deleted or its session over, or
// when the lock was handed over to another goroutine of this client.
func (h *Hold) Gone() <-chan struct{} {
	if h.tenure == nil {
		return over.Done()
	}
	h.tenure.mu.Lock()
	defer h.tenure.mu.Unlock()
	return h.tenure.gone.channel()
}

// State is the state now, without asking a server.
func (h *Hold) State() HoldState {
	state, _ := h.status()
	return state
}

func (h *Hold) status() (HoldState, error) {
	if h.tenure == nil {
		return Released, ErrReleased
	}
	state, err := h.tenure.now()
	if h.released.Load() && state != Lost {
		return Released, ErrReleased
	}
	return state, err
}

// Listen calls fn with the present state and each later one, in order, up to
// Lost or Released. With holds that share a lock by re-entry, Released is the
// last one's.
func (h *Hold) Listen(fn func(HoldState)) (remove func()) {
	if h.tenure == nil {
		return func() {}
	}
	return h.tenure.listen(fn)
}

// Err is nil while held or uncertain, then a *LostError or ErrReleased.
func (h *Hold) Err() error {
	_, err := h.status()
	return err
}

// Path is the node that stands for this hold, as the client knows paths; "" if
// there is none or more than one.
func (h *Hold) Path() string {
	if h.tenure == nil {
		return ""
	}
	return h.tenure.path
}

// Members are the holds of a MultiLock's locks, in the order of their paths and
// then locks of yours as they were given, or of a semaphore's leases; nil
// otherwise. One may be released early; the rest goes on.
func (h *Hold) Members() []*Hold {
	if h.tenure == nil {
		return nil
	}
	return append([]*Hold(nil), h.members()...)
}

// members are its Members, not to be changed.
func (h *Hold) members() []*Hold {
	if h.tenure.means == nil {
		return nil
	}
	return h.tenure.means.members
}

// FencingToken rises from holder to holder, for the life of the ensemble (it is
// the node's czxid). Once it was asked for, the next holder gets another node and
// so another token, see LocalHandovers. 0, which every Gate refuses, means that
// there is none: a read side, a lease, a lock of yours, members that differ (ask
// Members), or a hold that is over.
func (h *Hold) FencingToken() int64 {
	if _, err := h.status(); err != nil {
		return 0
	}
	return h.tenure.show()
}

// Revoked is closed when somebody asks for the lock back, with Revocable;
// comply by releasing.
func (h *Hold) Revoked() <-chan struct{} {
	if h.tenure == nil {
		return nil
	}
	h.tenure.mu.Lock()
	defer h.tenure.mu.Unlock()
	return h.tenure.revoked.channel()
}
