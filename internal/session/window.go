package session

import (
	"sync"
	"time"

	"github.com/paddock-zk/paddock/internal/session/list"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
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
//
// The bytes of replies are bounded likewise, as a few hundred nodes of a megabyte each
// take a link for as long as thousands of requests take the servers. How long a reply will
// be is not known before it comes. So the window expects what the same operation has had
// lately. From the operations with which users read data and lists, it expects much until
// it knows better.
type window struct {
	mu       sync.Mutex // guards the fields below
	timeout  time.Duration
	requests bound
	bytes    bound
	expected map[wire.Op]int        // bytes of a reply
	quickest time.Duration          // answer that need not wait
	queue    list.List[slotRequest] // those who wait, first to last
	waking   bool                   // a goroutine is letting requests in, and looks again before it ends
}

// bound is how much of something may be on its way.
type bound struct {
	size, used  int
	least, most int
	limited     bool      // somebody has had to wait since it grew
	settled     bool      // it has been too large
	changed     time.Time // what was sent before says nothing of the present size
}

const (
	mostOutstanding  = 4096 // as servers bound them
	leastOutstanding = 8
	firstThroughput  = 512      // requests a second that any servers answer
	mostBytes        = 64 << 20 // of replies
	leastBytes       = 64 << 10
	firstBytes       = 4 << 20   // a second that any link carries
	expectedData     = 128 << 10 // before any data was read, and any list with a Stat
	expectedList     = 1 << 10   // before any other list
)

// Parts of the session timeout.
const (
	aimedDelay = 16 // how long answers are to wait
	tooLong    = 64 // what they may wait more before the window shrinks
	aimedTrip  = 7  // what an answer is to take in all, if the way is long
	leastDelay = 64 // how long they may wait even then
)

func newWindow() *window {
	return &window{
		requests: bound{size: mostOutstanding, least: leastOutstanding, most: mostOutstanding},
		bytes:    bound{size: mostBytes, least: leastBytes, most: mostBytes},
		expected: map[wire.Op]int{
			wire.OpGetData: expectedData, wire.OpGetChildren2: expectedData, wire.OpGetChildren: expectedList, wire.OpMultiRead: expectedList,
		},
	}
}

// begin is for a connection with that session timeout. wake has to follow.
func (w *window) begin(timeout time.Duration, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timeout, w.quickest = timeout, timeout
	w.requests.begin(timeout, firstThroughput, now)
	w.bytes.begin(timeout, firstBytes, now)
}

func (b *bound) begin(timeout time.Duration, throughput float64, now time.Time) {
	first := timeout.Seconds() / aimedDelay * throughput
	b.size = int(min(max(first, float64(b.least)), float64(b.most)))
	b.limited, b.settled, b.changed = false, false, now
}

func (b *bound) full() bool { return b.used >= b.size }

// inUse is whether as much is on its way that answers may be late because of it.
func (b *bound) inUse() bool { return b.used >= b.size/2 }

// load is what requests that are sent together take of a window.
type load struct{ requests, bytes int }

// expects is how much calls will take.
func (w *window) expects(calls ...*transport.Call) load {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.expectsLocked(calls)
}

func (w *window) expectsLocked(calls []*transport.Call) load {
	l := load{requests: len(calls)}
	for _, call := range calls {
		l.bytes += w.expected[call.Op()]
	}
	return l
}

// free takes what calls need if nobody has to wait. The last of them gives it back.
func (w *window) free(calls ...*transport.Call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queue.Len() == 0 && w.enterLocked(calls)
}

// enterLocked takes what calls need, which is more than fits if they are sent together.
func (w *window) enterLocked(calls []*transport.Call) bool {
	l := w.expectsLocked(calls)
	if w.requests.full() || l.bytes > 0 && w.bytes.full() {
		return false
	}
	w.takeLocked(l, calls)
	return true
}

func (w *window) takeLocked(l load, calls []*transport.Call) {
	w.requests.used += l.requests
	w.bytes.used += l.bytes
	calls[len(calls)-1].Occupy(w, l.requests, l.bytes)
}

// ask has calls wait in line. It calls grant in their turn, maybe at once, unless the wait was
// given up. grant must not block.
func (w *window) ask(grant func(), calls ...*transport.Call) *slotRequest {
	p := &slotRequest{grant: grant}
	p.calls = append(p.calls, calls...) // calls itself need not be on the heap
	w.mu.Lock()
	w.requests.limited = w.requests.limited || w.requests.full()
	w.bytes.limited = w.bytes.limited || w.bytes.full()
	w.queue.Push(p, &p.place)
	w.mu.Unlock()
	w.wake() // there may be room by now
	return p
}

// giveUp ends a wait, unless it was granted meanwhile.
func (w *window) giveUp(p *slotRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.place.Remove()
}

// most is how many requests, and how many bytes of replies, may be on their way.
func (w *window) most() load {
	w.mu.Lock()
	defer w.mu.Unlock()
	return load{w.requests.size, w.bytes.size}
}

// take takes slots for calls that wait for none. The last of them gives them back.
func (w *window) take(calls ...*transport.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.takeLocked(load{requests: len(calls)}, calls)
}

// Release gives a load back. It implements transport.Slots.
func (w *window) Release(requests, bytes int) {
	w.mu.Lock()
	w.requests.used -= requests
	w.bytes.used -= bytes
	w.mu.Unlock()
	w.wake()
}

// wake lets the requests in that have waited for longest. What they take is what is known by
// now of their replies. One that cannot be sent gives that back at once, so one goroutine
// lets all in.
func (w *window) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waking {
		return
	}
	w.waking = true
	for p := w.queue.First(); p != nil; p = w.queue.First() {
		if !w.enterLocked(p.calls) {
			break
		}
		p.place.Remove()
		w.mu.Unlock()
		p.grant()
		w.mu.Lock()
	}
	w.waking = false
}

// forgetting is by which part of a difference a shorter reply makes the window expect less.
const forgetting = 8

// answered takes in how long a request took, and its reply was.
func (w *window) answered(a transport.Ack) {
	defer w.wake()
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := w.expected[a.Op]; ok {
		w.expected[a.Op] = max(a.Size, e-(e-a.Size)/forgetting)
	}
	took := a.Replied.Sub(a.Sent)
	w.quickest = min(w.quickest, took)
	aim := max(min(w.quickest+w.timeout/aimedDelay, w.timeout/aimedTrip), w.quickest+w.timeout/leastDelay)
	late := took > aim+w.timeout/tooLong
	if late && w.requests.size == w.requests.least && w.requests.inUse() && !a.Sent.Before(w.requests.changed) {
		w.quickest = took
	}
	waiting := w.queue.Len() > 0
	w.requests.adapt(a, 1, aim, late, waiting)
	w.bytes.adapt(a, a.Size, aim, late, waiting)
}

// adapt changes a bound after an answer that has had that part in it.
func (b *bound) adapt(a transport.Ack, part int, aim time.Duration, late, waiting bool) {
	if a.Sent.Before(b.changed) {
		return
	}
	took := a.Replied.Sub(a.Sent)
	switch waits := waiting && b.full(); {
	case late && !b.inUse(): // it waits for something else
	case late && b.size == b.least:
		b.changed = a.Replied
	case late:
		b.size = max(b.least, b.size/2, int(int64(b.size)*int64(aim)/int64(took)))
		b.settled, b.changed = true, a.Replied
	case took > aim || !b.limited || b.size >= b.most:
	case b.settled:
		b.size = min(b.size+1+b.size/8, b.most)
		b.limited, b.changed = waits, a.Replied
	default:
		b.size = min(b.size+part, b.most)
		b.limited = waits
	}
}

// slotRequest waits for slots in a window.
type slotRequest struct {
	calls []*transport.Call
	grant func()
	place list.Place[slotRequest]
}
