// Package localqueue lets goroutines wait for something that only one of them may have at a
// time. It knows no ZooKeeper, and nothing of what they wait for.
package localqueue

import (
	"context"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/internal/session/list"
)

// Queues are the local queues of one client, by what their goroutines want. The zero value
// is ready for use.
//
// K is what they want, V what the one has whose turn it is, and W says who waits.
type Queues[K, V comparable, W any] struct {
	mu  sync.Mutex // guards all queues
	all map[K]*Queue[K, V, W]
}

// Queue is a local queue. At any time it is the turn of one goroutine, which has a value. It
// gives up the value together with the turn. The queue is over if nobody waits then.
//
// Goroutines without a queue have the nil one. It passes nothing on.
type Queue[K, V comparable, W any] struct {
	queues *Queues[K, V, W]
	key    K

	// The fields below are guarded by the queues' mu.
	value   V // of whoever has the turn, zero as long as it has none
	waiters list.List[Waiter[K, V, W]]
	most    int // how many may go on beside the queue
	beside  int // how many do
}

// Waiter is a goroutine in a local queue. It is small, as there may be thousands.
type Waiter[K, V comparable, W any] struct {
	queue    *Queue[K, V, W]
	who      W
	since    time.Time
	place    list.Place[Waiter[K, V, W]] // in the queue; guarded by the queues' mu
	answered sync.WaitGroup              // of one, which takes less than a channel

	// The answer.
	told  Told
	value V
}

// Told is what a waiter is told.
type Told uint8

// The answers to a waiter.
const (
	TimeUp Told = iota // its context has ended, and it has left the queue. The value is the one that there was when it joined
	Turn               // it is its turn, with a value
	Beside             // it goes on beside the queue, and says BesideOver when it is done
)

// Join enters the queue for a key, or begins it. It returns
//
//   - the queue alone: it is the caller's turn, without a value;
//   - the queue and a waiter: the caller has to Await its turn;
//   - neither, if the caller does not wait: another has the turn, with the value has.
func (qs *Queues[K, V, W]) Join(key K, who W, wait bool) (q *Queue[K, V, W], w *Waiter[K, V, W], has V) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q = qs.all[key]
	switch {
	case q == nil:
		if qs.all == nil {
			qs.all = make(map[K]*Queue[K, V, W])
		}
		q = &Queue[K, V, W]{queues: qs, key: key}
		qs.all[key] = q
		return q, nil, has
	case !wait:
		return nil, nil, q.value
	}
	w = &Waiter[K, V, W]{queue: q, who: who, since: time.Now(), value: q.value}
	w.answered.Add(1)
	q.waiters.Push(w, &w.place)
	q.spreadLocked()
	return q, w, has
}

// Each reports who waits in any queue, and since when. It must not call the queues.
func (qs *Queues[K, V, W]) Each(report func(who W, since time.Time)) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, q := range qs.all {
		for w := range q.waiters.All() {
			report(w.who, w.since)
		}
	}
}

// Await waits until another goroutine tells the waiter something, or its context ends. It has
// one channel for both, since a select on two would take more of the stack.
func (w *Waiter[K, V, W]) Await(ctx context.Context) (Told, V) {
	stop := context.AfterFunc(ctx, w.withdraw)
	w.answered.Wait()
	stop()
	return w.told, w.value
}

// withdraw leaves the queue, unless the waiter has been told something else.
func (w *Waiter[K, V, W]) withdraw() {
	w.queue.queues.mu.Lock()
	defer w.queue.queues.mu.Unlock()
	if w.place.Remove() {
		w.answered.Done()
	}
}

// tellLocked takes the first waiter out of the queue and tells it something. It reports false
// if there is none.
func (q *Queue[K, V, W]) tellLocked(told Told, value V) bool {
	w := q.waiters.First()
	if w == nil {
		return false
	}
	w.place.Remove()
	w.told, w.value = told, value
	w.answered.Done()
	return true
}

// Has is the value of whoever has the turn.
func (q *Queue[K, V, W]) Has() V {
	q.queues.mu.Lock()
	defer q.queues.mu.Unlock()
	return q.value
}

// Waits is whether anybody waits in it. A nil queue has nobody.
func (q *Queue[K, V, W]) Waits() bool {
	if q == nil {
		return false
	}
	q.queues.mu.Lock()
	defer q.queues.mu.Unlock()
	return q.waiters.First() != nil
}

// Set says what the caller has, whose turn it is.
func (q *Queue[K, V, W]) Set(value V) {
	if q == nil {
		return
	}
	q.queues.mu.Lock()
	defer q.queues.mu.Unlock()
	q.value = value
}

// Pass ends the turn of the one who has a value, and gives the next one another value, which
// to makes. It reports false, and the turn goes on, if that one does not have it any more, if
// nobody waits, or if to refuses. to must not call the queues. Nobody else sees the queue
// before it has returned.
func (q *Queue[K, V, W]) Pass(value V, to func(next W) (V, bool)) bool {
	if q == nil {
		return false
	}
	q.queues.mu.Lock()
	defer q.queues.mu.Unlock()
	if q.value != value || q.waiters.Len() == 0 {
		return false
	}
	made, ok := to(q.waiters.First().who)
	if !ok {
		return false
	}
	q.value = made
	return q.tellLocked(Turn, made)
}

// Leave ends the turn of the one who has a value. The next one goes on with what it leaves.
// It reports false if nobody does: the queue is over then, or it was not its turn any more.
func (q *Queue[K, V, W]) Leave(value, leaves V) bool {
	if q == nil {
		return false
	}
	q.queues.mu.Lock()
	defer q.queues.mu.Unlock()
	if q.value != value {
		return false
	}
	q.value = leaves
	if q.tellLocked(Turn, leaves) {
		return true
	}
	var none V
	q.value = none
	delete(q.queues.all, q.key)
	return false
}

// Spread lets so many of those that have waited longest go on beside the queue at a time.
func (q *Queue[K, V, W]) Spread(most int) {
	if q == nil {
		return
	}
	q.queues.mu.Lock()
	defer q.queues.mu.Unlock()
	q.most = most
	q.spreadLocked()
}

// BesideOver says that one of those is done.
func (q *Queue[K, V, W]) BesideOver() {
	q.queues.mu.Lock()
	defer q.queues.mu.Unlock()
	q.beside--
	q.spreadLocked()
}

func (q *Queue[K, V, W]) spreadLocked() {
	var none V
	for q.beside < q.most && q.tellLocked(Beside, none) {
		q.beside++
	}
}
