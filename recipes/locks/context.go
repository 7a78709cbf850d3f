package locks

import (
	"context"

	"github.com/paddock-zk/paddock/framework"
)

// holdContext is a context that ends with a hold and carries it.
//
// A context of package context that is cancelled asks its parent to forget it. The parent
// may be of any type, and its methods may block. So there are two contexts, one below the
// other. The hold ends the lower one, which this wraps, and that asks only the upper one.
// The upper one is the parent's child. It is ended by a goroutine that has the time to
// wait for the parent's methods.
type holdContext struct {
	context.Context
	carries *holdChain
	end     context.CancelCauseFunc // calls no code of users, and returns when children have ended
	detach  context.CancelFunc      // makes the parent forget it; nil if the parent never knew
	kept    func() bool             // ends the wait for its end, after which the hold forgets it; nil if the hold never knew
}

// Value implements context.Context, as a context made by context.WithValue does.
func (c *holdContext) Value(key any) any {
	if key == (holdChainKey{}) {
		return c.carries
	}
	return c.Context.Value(key)
}

// String names it where contexts are printed.
func (c *holdContext) String() string { return "locks.Hold.Context" }

// newHoldContext makes one that also ends with its parent, as a child of package
// context does.
func newHoldContext(parent context.Context, carries *holdChain) *holdContext {
	if parent.Done() == nil {
		return newUnended(parent, carries)
	}
	upper, detach := context.WithCancel(parent)
	c := newChild(upper, carries)
	c.detach = detach
	return c
}

// newUnended makes one that has the values of its parent, and does not end with it.
func newUnended(parent context.Context, carries *holdChain) *holdContext {
	return newChild(unending{parent}, carries) //nolint:contextcheck // it is the parent, without its end
}

func newChild(upper context.Context, carries *holdChain) *holdContext {
	lower, end := context.WithCancelCause(upper)
	return &holdContext{Context: lower, carries: carries, end: end}
}

// unending is a context without its end.
type unending struct{ context.Context }

func (unending) Done() <-chan struct{} { return nil }
func (unending) Err() error            { return nil }

// detach makes parents forget contexts that have ended. It calls their methods,
// which may block.
func detach(ended []*holdContext) {
	for _, c := range ended {
		if c.detach != nil {
			c.detach()
		}
	}
}

// contexts are the contexts of a hold that callers have asked for.
type contexts struct {
	own   *holdContext              // that Context gives
	bound map[*holdContext]struct{} // that Bind has made
}

// contextPhase is whether the contexts of a hold go on.
type contextPhase int8

const (
	contextsLive      contextPhase = iota
	contextsSuspended              // all have ended, while a transaction that gives the lock back is on its way
	contextsResumed                // that was refused: Context has ended, and what Bind makes goes on
	contextsOver                   // all have ended for good
)

// Context returns a child of the context given to Acquire. It carries this hold as owner:
// acquiring the same lock with it, or with any child of it, re-enters. Goroutines that
// share it share the lock. Each of them has to acquire other locks for itself. The first
// call makes the context, and later ones return the same.
//
// It ends, and its children with it,
//
//   - with its parent; the lock stays held;
//   - with a cause that matches ErrLockLost, before the servers can give a lost lock to
//     another owner;
//   - with a cause that matches ErrReleased, before Release or CommitAndRelease gives the
//     lock back. While another hold is held that was acquired under this one, it goes on
//     until that one is released.
//
// It never begins again. If CommitAndRelease was refused, the lock is still held
// and Bind gives another context.
func (h *Hold) Context() context.Context {
	if h.isNone() {
		return over
	}
	if own := h.ownContext(); own != nil {
		return own
	}
	c := newHoldContext(h.parent, &h.chain) // without the mutex, as the parent may be anybody's
	own := h.keepOwn(c)
	if own != c {
		c.end(nil)
		detach([]*holdContext{c})
	}
	return own
}

// ownContext is what Context returns. It is nil if the context is still to be made, which
// calls the parent's methods.
func (h *Hold) ownContext() *holdContext {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ownLocked()
}

func (h *Hold) ownLocked() *holdContext {
	if h.contexts != nil && h.contexts.own != nil {
		return h.contexts.own
	}
	if h.phase == contextsLive || h.byParent {
		return nil
	}
	// The hold ended before its parent, whatever that has done since.
	c := newUnended(h.parent, &h.chain)
	c.end(h.cause)
	h.madeLocked().own = c
	return c
}

// keepOwn makes c the hold's own context, if there is none.
func (h *Hold) keepOwn(c *holdContext) *holdContext {
	h.mu.Lock()
	defer h.mu.Unlock()
	if own := h.ownLocked(); own != nil {
		return own
	}
	h.madeLocked().own = c
	return c
}

// madeLocked is where the contexts are kept.
func (h *Hold) madeLocked() *contexts {
	if h.contexts == nil {
		h.contexts = &contexts{}
	}
	return h.contexts
}

// over is the context of a zero Hold.
var over = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrReleased)
	return ctx
}()

// Bind is Context with another parent. It returns a child of ctx that also carries this
// hold and ends with it. Use it for a hold that outlives the call that acquired it. A
// leader binds its hold to each request that it serves. cancel ends the context and frees
// it, as the end of ctx does. It does not release the hold. If ctx is nil, the context has ended, with
// framework.ErrNilContext as its cause.
func (h *Hold) Bind(ctx context.Context) (bound context.Context, cancel context.CancelFunc) {
	if h.isNone() {
		return over, func() {}
	}
	if ctx == nil {
		ended, end := context.WithCancelCause(context.Background())
		end(framework.ErrNilContext)
		return ended, func() {}
	}
	// Not tied to the hold's own context, which ends with the ctx that Acquire
	// was given, while the hold goes on.
	c := newHoldContext(ctx, &holdChain{hold: h, outer: holdChainOf(ctx)})
	if cause := h.bind(c); cause != nil {
		c.end(cause)
		detach([]*holdContext{c})
	}
	return c, func() {
		c.end(context.Canceled) // and unbinds it
		detach([]*holdContext{c})
	}
}

// bind makes a context end with the hold, and returns why if that has ended.
func (h *Hold) bind(c *holdContext) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase == contextsSuspended || h.phase == contextsOver {
		return h.cause
	}
	made := h.madeLocked()
	if made.bound == nil {
		made.bound = make(map[*holdContext]struct{})
	}
	made.bound[c] = struct{}{}
	c.kept = context.AfterFunc(c.Context, func() { h.unbind(c) }) // its own, which calls no code of users
	return nil
}

func (h *Hold) unbind(c *holdContext) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.madeLocked().bound, c)
}

// end ends the contexts of the hold. When it returns they have ended, also if another
// goroutine was ending them. The caller has to detach them.
func (h *Hold) end(cause error) (ended []*holdContext) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.endLocked(cause, contextsOver)
}

// endLocked ends the contexts that go on. It calls no code of users, so the caller may
// hold the mutex.
func (h *Hold) endLocked(cause error, to contextPhase) (ended []*holdContext) {
	from := h.phase
	if from == contextsOver {
		return nil
	}
	h.phase = to
	switch from {
	case contextsSuspended:
		return nil
	case contextsLive:
		h.byParent = h.parentEnded()
	}
	h.cause = cause
	if h.contexts == nil {
		return nil
	}
	if own := h.contexts.own; own != nil && from == contextsLive {
		ended = append(ended, own)
	}
	for c := range h.contexts.bound {
		ended = append(ended, c)
	}
	h.contexts.bound = nil
	for _, c := range ended {
		if c.kept != nil {
			c.kept()
		}
		c.end(cause)
	}
	return ended
}

// parentEnded is whether the parent has ended. It calls no code of users.
func (h *Hold) parentEnded() bool {
	if c, ours := h.parent.(*holdContext); ours {
		return c.Err() != nil
	}
	return isClosed(h.parentDone)
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
