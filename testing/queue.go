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

// add queues one frame. It returns how long that is, and how much waits.
func (q *queue) add(records ...wire.Record) (n, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last {
		return 0, 0
	}
	before := len(q.buf)
	q.buf = wire.AppendFrame(q.buf, records...)
	q.signal()
	return len(q.buf) - before, len(q.buf)
}

// addPart queues the first n bytes of a frame, at least one byte less than all.
func (q *queue) addPart(n int, records ...wire.Record) {
	frame := wire.AppendFrame(nil, records...)
	q.raw(string(frame[:min(n, len(frame)-1)]))
}

// raw queues text that is no frame.
func (q *queue) raw(text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.last {
		q.buf = append(q.buf, text...)
		q.signal()
	}
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
