package session

import (
	"sync"
	"time"
)

// window bounds the requests of the user that are on their way.
//
// Servers answer the requests of a session in their order, so a renewal or a ping waits
// for all requests before it. Without a bound, a crowd of goroutines could keep a healthy
// session from being renewed in time. So the window grows until answers wait for a
// sixteenth of the session timeout. This costs no throughput, since the servers have
// enough to do for all that time. The wait of an answer is the time by which it takes
// longer than the quickest answer on this connection. If the window is as small as it can
// be, such an answer counts as the quickest.
//
// It begins small and grows by one with each answer, as in TCP. Once it has been too
// large, it grows by an eighth in each round.
type window struct {
	mu       sync.Mutex // guards the fields below
	timeout  time.Duration
	size     int
	used     int
	limited  bool          // somebody has had to wait since the window grew
	settled  bool          // it has been too large
	changed  time.Time     // what was sent before says nothing of the present size
	quickest time.Duration // answer that need not wait
	queue    slotQueue
}

const (
	mostOutstanding  = 4096 // as servers bound them
	leastOutstanding = 8
	firstThroughput  = 512 // requests a second that any servers answer
)

// Parts of the session timeout.
const (
	aimedDelay = 16 // how long answers are to wait
	tooLong    = 64 // what they may wait more before the window shrinks
	aimedTrip  = 7  // what an answer is to take in all, if the way is long
	leastDelay = 64 // how long they may wait even then
)

func newWindow() *window { return &window{size: mostOutstanding} }

// begin is for a connection with that session timeout.
func (w *window) begin(timeout time.Duration, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := timeout.Seconds() / aimedDelay * firstThroughput
	w.timeout, w.size = timeout, int(min(max(first, leastOutstanding), mostOutstanding))
	w.limited, w.settled, w.changed, w.quickest = false, false, now, timeout
	w.wakeLocked()
}

// free takes n slots if nobody has to wait.
func (w *window) free(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.freeLocked(n)
}

func (w *window) freeLocked(n int) bool {
	if w.queue.first != nil || w.used >= w.size {
		return false
	}
	w.used += n
	return true
}

// ask waits in line for n slots.
func (w *window) ask(n int) *slotRequest {
	p := &slotRequest{n: n, granted: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.freeLocked(n) { // meanwhile
		close(p.granted)
		return p
	}
	w.limited = true
	w.queue.push(p)
	return p
}

// giveUp ends a wait.
func (w *window) giveUp(p *slotRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.queue.remove(p) { // granted meanwhile
		w.used -= p.n
		w.wakeLocked()
	}
}

// most is how many requests may be on their way.
func (w *window) most() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size
}

// take takes slots that are not waited for.
func (w *window) take(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used += n
}

// Release gives n slots back. It implements transport.Slots.
func (w *window) Release(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used -= n
	w.wakeLocked()
}

// wakeLocked lets the requests in that have waited for longest. More than fit may enter
// together if they are sent together.
func (w *window) wakeLocked() {
	for p := w.queue.first; p != nil && w.used < w.size; p = w.queue.first {
		w.queue.remove(p)
		w.used += p.n
		close(p.granted)
	}
}

// answered takes in how long a request took.
func (w *window) answered(sent, received time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	took := received.Sub(sent)
	w.quickest = min(w.quickest, took)
	if sent.Before(w.changed) {
		return
	}
	aim := max(min(w.quickest+w.timeout/aimedDelay, w.timeout/aimedTrip), w.quickest+w.timeout/leastDelay)
	switch late := took > aim+w.timeout/tooLong; {
	case late && w.size == leastOutstanding:
		w.quickest, w.changed = took, received
	case late:
		w.size = max(leastOutstanding, w.size/2, int(int64(w.size)*int64(aim)/int64(took)))
		w.settled, w.changed = true, received
	case took > aim || !w.limited || w.size >= mostOutstanding:
	case w.settled:
		w.size = min(w.size+1+w.size/8, mostOutstanding)
		w.limited, w.changed = w.queue.first != nil, received
		w.wakeLocked()
	default:
		w.size++
		w.limited = w.queue.first != nil
		w.wakeLocked()
	}
}

// slotRequest waits for slots in a window.
type slotRequest struct {
	n          int
	granted    chan struct{} // closed
	queued     bool
	prev, next *slotRequest
}

// slotQueue is the requests that wait, first to last.
type slotQueue struct{ first, last *slotRequest }

func (q *slotQueue) push(p *slotRequest) {
	p.prev, p.queued = q.last, true
	if q.last != nil {
		q.last.next = p
	} else {
		q.first = p
	}
	q.last = p
}

// remove reports whether p was waiting.
func (q *slotQueue) remove(p *slotRequest) bool {
	if !p.queued {
		return false
	}
	p.queued = false
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		q.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		q.last = p.prev
	}
	p.prev, p.next = nil, nil
	return true
}
