package listeners

// listener is one function with its queue. All fields but the first three are
// guarded by hub.mu.
//
// It is registered until it is removed, or until the hub was closed and its
// queue is empty.
type listener[E any] struct {
	hub *Hub[E]
	fn  func(E)
	end func() // called once, with hub.mu held, when fn will not be called again; may be nil

	queue   []E
	running bool // it has a goroutine
	removed bool
	ended   bool
}

func (l *listener[E]) remove() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.removed, l.queue = true, nil
	delete(l.hub.listeners, l)
	l.settleLocked()
}

func (l *listener[E]) queueLocked(e E) {
	l.queue = append(l.queue, e)
	if l.running {
		return
	}
	l.running = true
	l.hub.running++
	go l.deliver()
}

// deliver ends with the queue. It also ends if fn ends its goroutine
// (runtime.Goexit, as in testing.T.FailNow); another one takes over then.
func (l *listener[E]) deliver() {
	done := false
	defer func() {
		if !done {
			go l.deliver()
		}
	}()
	for {
		e, ok := l.next()
		if !ok {
			done = true
			return
		}
		l.call(e)
	}
}

// next takes one event at a time, so that after remove there is none.
func (l *listener[E]) next() (e E, ok bool) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if len(l.queue) == 0 {
		l.queue = nil // a burst's array is not kept for the quiet time after it
		l.running = false
		l.hub.running--
		l.settleLocked()
		l.hub.settleLocked()
		return e, false
	}
	e, l.queue[0] = l.queue[0], e
	l.queue = l.queue[1:]
	return e, true
}

func (l *listener[E]) call(e E) {
	defer func() {
		if r := recover(); r != nil {
			l.hub.report(r)
		}
	}()
	l.fn(e)
}

// settleLocked ends the listener once fn will not be called again.
func (l *listener[E]) settleLocked() {
	if l.ended || l.running || !l.removed && !l.hub.closed {
		return
	}
	l.ended = true
	delete(l.hub.listeners, l)
	if l.end != nil {
		l.end()
	}
}
