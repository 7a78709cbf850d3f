package recipes

import (
	"context"
	"time"
)

// holdContext is a hold as its own context, so that a hold costs no more than
// itself until somebody wants to be woken by it.
//
// What ends it is the parent or the hold, whichever comes first, and that is
// never taken back. Only when it is asked for its channel, its cause or a child
// that can be cancelled, a context of package context is made (whole) that does
// the rest: waits for the parent, wakes children and keeps the cause.
type holdContext Hold

// Deadline implements context.Context.
func (c *holdContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// Done implements context.Context.
func (c *holdContext) Done() <-chan struct{} { return c.makeWhole().Done() }

// Err implements context.Context.
func (c *holdContext) Err() error {
	err := c.parent.Err()
	if err == nil && !c.ended.Load() {
		return nil // there was nothing yet that could have ended it
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch over := (*Hold)(c).overLocked(); {
	case c.contexts != nil && c.contexts.whole != nil:
		return c.contexts.whole.Err()
	case c.byParent:
		return err
	case over != nil:
		return context.Canceled
	case err != nil:
		c.byParent = true
	}
	return err
}

// Value implements context.Context. Package context asks for its own key when
// it looks for a cause, or for the parent of a context to be made, and must
// find one of its own.
func (c *holdContext) Value(key any) any {
	switch {
	case key == ownerKey{}:
		return &c.owner
	case key == wholeKey || wholeKey == nil:
		return c.makeWhole().Value(key)
	}
	return c.parent.Value(key)
}

// String names it where contexts are printed.
func (c *holdContext) String() string { return "recipes.Hold.Context" }

// makeWhole returns the context that does what this one does not do itself.
func (c *holdContext) makeWhole() context.Context {
	h := (*Hold)(c)
	if whole := h.madeWhole(); whole != nil {
		return whole
	}
	// Both without the mutex, as the parent may be anybody's.
	whole, cancel := context.WithCancelCause(c.parent)
	c.mu.Lock()
	ended := h.overLocked()
	if c.byParent {
		ended = nil
	}
	made := h.madeLocked()
	if made.whole == nil && ended == nil {
		made.whole, made.cancel = whole, cancel
		c.mu.Unlock()
		return whole
	}
	c.mu.Unlock()
	cancel(nil) // not needed
	if ended == nil {
		return h.madeWhole()
	}
	// The hold ended before the parent did, whatever the parent has done since.
	whole, cancel = context.WithCancelCause(context.WithoutCancel(c.parent))
	cancel(ended)
	c.mu.Lock()
	if made.whole == nil {
		made.whole = whole
	}
	c.mu.Unlock()
	return h.madeWhole()
}

// madeWhole is what makeWhole has made, nil if it has not.
func (h *Hold) madeWhole() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.contexts == nil {
		return nil
	}
	return h.contexts.whole
}

// madeLocked is where the contexts are kept.
func (h *Hold) madeLocked() *contexts {
	if h.contexts == nil {
		h.contexts = &contexts{}
	}
	return h.contexts
}

// wholeKey is what package context asks a context for to find the nearest one
// of its own; nil if it does not, and then every key may be it. Some versions ask
// only a context that has ended.
var wholeKey = func() any {
	var p probe
	_ = context.Cause(&p)
	return p.asked
}()

// probe is a context that remembers what it was asked for.
type probe struct {
	context.Context
	asked any
}

func (p *probe) Value(key any) any { p.asked = key; return nil }
func (p *probe) Err() error        { return context.Canceled }
