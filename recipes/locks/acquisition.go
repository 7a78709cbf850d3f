package locks

import (
	"container/list"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
)

// acquisition is what there is to tell of an attempt: the tracer, the log and the inspector
// have it from here. It observes the attempt.
type acquisition struct {
	trace *acquireTrace // as which the tracer knows it, nil for none
	spare int           // leases of a semaphore that it does not need
	multi *multiWait    // nil for a lock that is no MultiLock

	log *waitLog

	// The attempt's goroutine changes these under the log's mu.
	entry *list.Element // in the log while it waits, else nil
	waits []wait        // where it has waited; until it waits once more also after its end
}

// wait is where an acquisition waits: in a queue on the servers, or in a local queue.
type wait struct {
	queue *acquire.Queue
	since time.Time
	local bool // and then nothing else is known

	stands acquire.EventKind // Wait; of a MultiLock also First or Away, and then it does not wait there
	node   string            // ours, in full
	at     acquire.Position
}

// multiWait is a MultiLock of which a step waits.
type multiWait struct {
	members []string // the paths of all its members
	later   []string // of those that are taken by later steps
	gave    int      // how often it has let others pass
	giving  bool     // it has done so since it last waited
}

// standing are the paths of the members that a MultiLock has, and of the others. The caller
// holds the log's mu.
func (a *acquisition) standing() (has, wants []string) {
	if a == nil || a.multi == nil {
		return nil, nil
	}
	for _, path := range a.multi.members {
		lacks := func(w wait) bool { return w.queue.Lock == path && w.stands != acquire.First }
		if slices.Contains(a.multi.later, path) || slices.ContainsFunc(a.waits, lacks) {
			wants = append(wants, path)
		} else {
			has = append(has, path)
		}
	}
	return has, wants
}

// Observe tells the log of waits and the tracer.
func (a *acquisition) Observe(e acquire.Event) {
	switch e.Kind {
	case acquire.Wait, acquire.First, acquire.Away:
		a.note(&e)
	case acquire.Yield:
		a.gaveWay(&e)
	case acquire.End:
		if a.entry != nil {
			a.log.remove(a)
		}
	}
	a.trace.observe(&e)
}

// note notes where the acquisition stands in a queue.
func (a *acquisition) note(e *acquire.Event) {
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	if a.entry == nil {
		a.waits = a.waits[:0]
	}
	i := slices.IndexFunc(a.waits, func(w wait) bool { return w.queue == e.Queue })
	if i < 0 && e.Kind == acquire.First { // it has not waited there
		return
	}
	if i < 0 {
		i = len(a.waits)
		a.waits = append(a.waits, wait{queue: e.Queue, since: time.Now(), stands: acquire.Wait})
	}
	if a.entry == nil {
		a.entry = a.log.acquisitions.PushBack(a)
		a.log.arm()
	}
	w := &a.waits[i]
	if w.stands == acquire.First && e.Kind == acquire.Wait { // it has given way
		w.since = time.Now()
	}
	if w.stands = e.Kind; e.Kind == acquire.Wait {
		w.node, w.at = e.Node, *e.Position
	}
	if a.multi != nil {
		a.multi.giving = false
	}
}

// often is how many times a MultiLock lets others pass before the log says so, once. Where
// all go in the order of paths, that does not happen.
const often = 20

// gaveWay logs that a MultiLock has given way often, and to whom the last time. It does not
// count queues in which nobody is behind it, and places that it gives up at once count once.
func (a *acquisition) gaveWay(e *acquire.Event) {
	m := a.multi
	if m == nil || e.Predecessor == "" || m.giving {
		return
	}
	m.giving = true
	if m.gave++; m.gave != often || a.entry == nil {
		return
	}
	a.log.mu.Lock()
	has, wants := a.standing()
	since := a.waits[0].since
	a.log.mu.Unlock()
	a.log.session.Log().Info("giving way over and over: others take these locks in another order, see docs/combining-locks.md",
		zap.String("kind", monitor.MultiLock), zap.String("path", e.Queue.Lock), zap.Duration("waited", time.Since(since)), zap.Int("times", often),
		zap.String("to", e.Queue.PathOf(e.Predecessor)), zap.Strings("has", has), zap.Strings("wants", wants))
}

// remove removes an acquisition that waits no more.
func (wl *waitLog) remove(a *acquisition) {
	wl.mu.Lock()
	defer wl.mu.Unlock()
	wl.acquisitions.Remove(a.entry)
	a.entry = nil
}

// each reports all waits of the client, and the acquisition that each is of: nil for a wait
// in a local queue.
func (wl *waitLog) each(note func(of *acquisition, w *wait)) {
	wl.mu.Lock()
	for entry := wl.acquisitions.Front(); entry != nil; entry = entry.Next() {
		a := entry.Value.(*acquisition) //nolint:forcetypeassert // nothing else is in it
		for i := range a.waits {
			if w := &a.waits[i]; w.stands == acquire.Wait {
				note(a, w)
			}
		}
	}
	wl.mu.Unlock()
	wl.localQueues.Each(func(q *queue, since time.Time) {
		note(nil, &wait{queue: &q.Queue, since: since, local: true})
	})
}
