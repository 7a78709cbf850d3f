package listeners

import "sync"

// Subscription receives events until it is stopped or its hub is closed.
//
// A reader that goes away must call Stop. Otherwise the queue keeps growing
// until the hub is closed, and one goroutine waits with the next event even
// after that. The hub cannot tell a late reader from one that has gone.
type Subscription[E any] struct {
	// C delivers the events. It is closed after Stop, and by the hub's Close
	// once drained.
	C <-chan E

	stop func()
}

// Subscribe is Listen for a select statement. After Close the subscription's
// channel is closed from the beginning.
func (h *Hub[E]) Subscribe() *Subscription[E] {
	c, stopped := make(chan E), make(chan struct{})
	l := &listener[E]{hub: h, end: func() { close(c) }}
	l.fn = func(e E) {
		select {
		case c <- e:
		case <-stopped:
		}
	}
	h.add(l)
	stop := sync.OnceFunc(func() {
		l.remove()
		close(stopped)
	})
	return &Subscription[E]{C: c, stop: stop}
}

// Stop ends the subscription: it drops the queued events, and C is closed soon.
// One event that was on its way may still be received. Stop does not wait for
// the reader. It may be called more than once, by any goroutine.
func (s *Subscription[E]) Stop() {
	if s.stop != nil {
		s.stop()
	}
}
