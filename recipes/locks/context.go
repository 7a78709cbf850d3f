package locks

import (
	"context"
	"errors"

	"github.com/paddock-zk/paddock/framework"
)

// holdContext is a context that ends with a hold and carries it.
//
// A context of package context that is cancelled asks its parent to forget it, and the
// parent may be the user's. So there are two, one below the other. A loss ends the lower
// one, which asks only the upper one and calls no code of users. The upper one is the
// parent's child, and is ended when the hold is released.
type holdContext struct {
	context.Context
	carries *holdChain
	end     context.CancelCauseFunc // returns when children have ended
	detach  context.CancelFunc      // makes the parent forget it
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
func newHoldContext(carries *holdChain) *holdContext {
	upper, detach := context.WithCancel(carries.parent)
	lower, end := context.WithCancelCause(upper)
	return &holdContext{Context: lower, carries: carries, end: end, detach: detach}
}

// newOutlasting is newHoldContext for a hold that shares the lock of the hold that its
// parent comes from. It has the values and the deadline of its parent, and ends with it,
// unless the parent has ended by the release of that hold. Then it goes on, until
// outermost ends.
func newOutlasting(outermost context.Context, carries, from *holdChain) *holdContext {
	parent := carries.parent
	base, detach := context.WithoutCancel(parent), context.CancelFunc(func() {})
	deadline, limited := parent.Deadline()
	if limited {
		base, detach = context.WithDeadline(base, deadline)
	}
	lower, end := context.WithCancelCause(base)
	follow := func(ctx context.Context, outlasts bool) (stop func() bool) {
		return context.AfterFunc(ctx, func() {
			switch cause := context.Cause(ctx); {
			case outlasts && from.hold.released.Load() && errors.Is(cause, ErrReleased):
			case limited && errors.Is(ctx.Err(), context.DeadlineExceeded): // its own ends it, with this error
			default:
				end(cause)
			}
		})
	}
	stop, stopOutermost := follow(parent, true), follow(outermost, false) //nolint:contextcheck // both are callers' contexts
	return &holdContext{Context: lower, carries: carries, end: end, detach: func() {
		stop()
		stopOutermost()
		detach()
	}}
}

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
//     lock back.
//
// So it ends when a hold is released that the context given to Acquire comes from: the
// lock stays held, and Bind gives a context to go on with. There is no need for that after
// a re-entry or a downgrade. The context then outlasts the hold that was entered, and ends
// with the context that was given to acquire that one.
//
// It never begins again.
func (h *Hold) Context() context.Context {
	if h.isNone() {
		return over
	}
	h.mu.Lock()
	own := h.own
	h.mu.Unlock()
	if own != nil {
		return own
	}
	c := h.newContext() // without the mutex, as it calls methods of the parent
	h.mu.Lock()
	if h.own == nil {
		h.own = c
	}
	own = h.own
	needless := own != c || h.ended != nil
	if needless {
		c.end(h.ended)
	}
	h.mu.Unlock()
	if needless {
		c.detach()
	}
	return own
}

// newContext makes the hold's own context.
func (h *Hold) newContext() *holdContext {
	from := h.chain.entered()
	if from == nil {
		return newHoldContext(&h.chain)
	}
	outermost := from
	for next := from; next != nil; next = next.entered() {
		outermost = next
	}
	return newOutlasting(outermost.parent, &h.chain, from)
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
	c := newHoldContext(&holdChain{hold: h, outer: holdChainOf(ctx), parent: ctx})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		c.end(h.ended)
	} else {
		if h.bound == nil {
			h.bound = make(map[*holdContext]struct{})
		}
		h.bound[c] = struct{}{}
	}
	context.AfterFunc(c.Context, func() { h.forget(c) })
	return c, func() { c.end(context.Canceled) }
}

// forget forgets a context that Bind has made and that has ended.
func (h *Hold) forget(c *holdContext) {
	h.mu.Lock()
	delete(h.bound, c)
	h.mu.Unlock()
	c.detach()
}

// endContexts ends the contexts of a hold that is released, for good.
func (h *Hold) endContexts() {
	if own := h.end(ErrReleased); own != nil {
		own.detach()
	}
}

// end ends the contexts of the hold, and returns its own one, nil for none. When it
// returns they have ended, also if another goroutine was ending them. It calls no code of
// users.
func (h *Hold) end(cause error) (own *holdContext) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.ended = cause
		goroutines.ended(h)
		if h.own != nil {
			h.own.end(cause)
		}
		for c := range h.bound {
			c.end(cause)
		}
	}
	return h.own
}
