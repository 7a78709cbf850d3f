package zktest

import (
	"sync"

	"github.com/paddock-zk/paddock/internal/wire"
)

// queue is what waits to be sent.
type queue struct {
	wake chan struct{} // holds a token when there is something to do

	mu   sync.Mutex // guards the fields below; held for copying only
	buf  []byte
	last bool // nothing follows: close when all is sent
}

// signal wakes the writing goroutine.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// add queues one frame, and reports whether there is still room for more.
func (q *queue) add(records ...wire.Record) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last {
		return true
	}
	q.buf = wire.AppendFrame(q.buf, records...)
	q.signal()
	return len(q.buf) <= maxQueued
}

// finish says that nothing follows.
func (q *queue) finish() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = true
	q.signal()
}

// take returns all that is queued, in exchange for a buffer to use next.
func (q *queue) take(spare []byte) (buf []byte, last bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	buf, q.buf = q.buf, spare[:0]
	return buf, q.last
}
