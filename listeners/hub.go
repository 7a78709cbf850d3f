package listeners

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/paddock-zk/paddock/internal/contextend"
)

// Source is what a reader of events needs of a Hub.
type Source[E any] interface {
	// Listen calls fn for each event until remove is called; see Hub.Listen.
	Listen(fn func(E)) (remove func())
	// Subscribe is Listen for a select statement; see Hub.Subscribe.
	Subscribe() *Subscription[E]
}

var (
	errNilFunc    = errors.New("listeners: Listen without a function")
	errNilContext = errors.New("listeners: Wait without a context")
)

// Hub passes every published event to every listener, in order, each at its
// own pace. The zero value is ready. All methods may be called by many
// goroutines at once and from inside a listener. A Hub must not be copied after
// first use.
//
// Every listener gets the events in the order of the calls of Publish. Nothing
// is dropped: a listener that blocks delays only itself, and its queue grows
// without bound. A listener that panics stays registered and goes on with the
// next event; OnPanic hears of the panic. There is no order between listeners:
// one may be far ahead.
//
// A listener has a goroutine only while it has something to deliver, and never
// more than one.
//
// Source: Curator ConnectionStateManager and StandardListenerManager.
// Differs: Curator delivers to all listeners in one thread by default, and
// drops the oldest event when its queue is full.
type Hub[E any] struct {
	// ReplayLast makes a new listener start with the event published last, so
	// that nothing falls between asking and listening. Set it before use.
	ReplayLast bool
	// OnPanic gets the value that a listener panicked with. It runs in the
	// listener's goroutine while that panics, so debug.Stack shows the place.
	// It must not panic itself. If it is nil, panics are dropped. Set it before
	// use.
	OnPanic func(recovered any)

	mu        sync.Mutex // guards the fields below and those of listeners; never held over a listener
	listeners map[*listener[E]]struct{}
	last      E // kept if ReplayLast
	published bool
	closed    bool
	running   int           // listeners with a goroutine, registered or not
	drained   chan struct{} // made by the first Wait; closed when closed and none is running
}

// Listen calls fn for each event published from now on, one at a time, until
// remove is called.
//
// remove drops the queued events. It does not wait: one call of fn may still run,
// or begin, after remove has returned. There is no call after that one. remove may
// be called more than once and from inside fn. After Close, Listen registers
// nothing.
//
// A nil fn is a programmer's error. Listen does not register it, and calls OnPanic
// at once.
func (h *Hub[E]) Listen(fn func(E)) (remove func()) {
	if fn == nil {
		h.report(errNilFunc)
		return func() {}
	}
	l := &listener[E]{hub: h, fn: fn}
	h.add(l)
	return l.remove
}

// Publish queues e for every listener and never blocks. After Close it does
// nothing.
func (h *Hub[E]) Publish(e E) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	if h.ReplayLast {
		h.last, h.published = e, true
	}
	for l := range h.listeners {
		l.queueLocked(e)
	}
}

// Close takes no more events and does not wait, so a listener may call it;
// what is queued is still delivered. Closing twice is fine.
func (h *Hub[E]) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for l := range h.listeners {
		l.settleLocked()
	}
	h.settleLocked()
}

// Wait returns nil when Close was called, everything queued has been
// delivered, and every call of a listener has returned, removed ones included.
// From then on no listener is called.
//
// Wait also waits for a Subscription until it has been read to its end or
// stopped. So it does not return if a reader has gone away without Stop, or if
// a listener calls it. If ctx ends first, the error matches ctx.Err(); the
// cause of ctx is in the text alone. A nil ctx is an error.
func (h *Hub[E]) Wait(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	drained := h.whenDrained()
	select {
	case <-drained:
		return nil
	default:
	}
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("listeners: waiting: %w", contextend.Of(ctx))
	}
}

func (h *Hub[E]) whenDrained() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.drained == nil {
		h.drained = make(chan struct{})
		h.settleLocked()
	}
	return h.drained
}

// settleLocked wakes Wait once there is nothing left to wait for. None can be
// started after that, for a closed hub queues nothing.
func (h *Hub[E]) settleLocked() {
	if !h.closed || h.running > 0 || h.drained == nil {
		return
	}
	select {
	case <-h.drained:
	default:
		close(h.drained)
	}
}

func (h *Hub[E]) add(l *listener[E]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		l.settleLocked()
		return
	}
	if h.listeners == nil {
		h.listeners = make(map[*listener[E]]struct{})
	}
	h.listeners[l] = struct{}{}
	if h.published {
		l.queueLocked(h.last)
	}
}

func (h *Hub[E]) report(recovered any) {
	if h.OnPanic != nil {
		h.OnPanic(recovered)
	}
}
