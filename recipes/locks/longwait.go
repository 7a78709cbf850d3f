package locks

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
)

// longWait is the length from which on a wait is logged. The line about a lock that
// this client itself holds comes again each time the wait has doubled.
const longWait = 10 * time.Second

// waitLog logs long waits for locks of one client. One timer looks after all of
// them.
type waitLog struct {
	session     *session.Session
	localQueues *localQueues // which know the waits in local queues

	armed atomic.Bool // the timer is set, or look is running

	mu          sync.Mutex // guards the fields below
	first, last *wait
	logged      map[string]loggedWait // by the path of the lock
}

// wait is an acquisition that waits on the servers. A MultiLock has one for each queue.
type wait struct {
	log        *waitLog
	queue      *acquire.Queue
	spare      int
	multi      *multiWait // nil for other locks
	prev, next *wait

	// Where it stands, guarded by the log's mu.
	since       time.Time         // it waits
	stands      acquire.EventKind // Wait; of a MultiLock also First or Away, and then it does not wait there
	node        string            // ours, in full
	ahead       int               // how many are before it
	predecessor string            // the name of the one that it waits for
	front       acquire.NodeName  // the first of the queue, if it is known
}

// multiWait is a MultiLock that waits.
type multiWait struct {
	members []string // the paths of all its members
	later   []string // of those that are taken by later steps
	waits   []*wait  // where it has waited in this step; guarded by the log's mu
}

// standing are the paths of the members that a MultiLock has, and of the others. The caller
// holds the log's mu.
func (m *multiWait) standing() (has, wants []string) {
	if m == nil {
		return nil, nil
	}
	for _, path := range m.members {
		lacks := func(w *wait) bool { return w.queue.Lock == path && w.stands != acquire.First }
		if slices.Contains(m.later, path) || slices.ContainsFunc(m.waits, lacks) {
			wants = append(wants, path)
		} else {
			has = append(has, path)
		}
	}
	return has, wants
}

// often is how many times a MultiLock lets others pass before the log says so, once. Where
// all go in the order of paths, that does not happen.
const often = 20

// logYields logs that a MultiLock has given way often, and to whom the last time.
func (w *wait) logYields(e *acquire.Event) {
	w.log.mu.Lock()
	has, wants := w.multi.standing()
	since := w.since
	w.log.mu.Unlock()
	w.log.session.Log().Info("giving way over and over: others take these locks in another order, see docs/combining-locks.md",
		zap.String("kind", monitor.MultiLock), zap.String("path", e.Queue.Lock), zap.Duration("waited", time.Since(since)), zap.Int("times", often),
		zap.String("to", e.Queue.PathOf(e.Predecessor)), zap.Strings("has", has), zap.Strings("wants", wants))
}

// loggedWait is what was logged of a lock, until nobody waits for it any more.
type loggedWait struct {
	long bool          // that the wait is long
	own  time.Duration // how long it was when the log said that this client holds the lock
}

// begin notes an acquisition that begins to wait; spare is how many leases of a semaphore it does not need. multi is
// the MultiLock that it is of, nil for none.
func (wl *waitLog) begin(q *acquire.Queue, spare int, multi *multiWait) *wait {
	w := &wait{log: wl, queue: q, spare: spare, multi: multi, since: time.Now(), stands: acquire.Wait}
	wl.mu.Lock()
	if multi != nil {
		multi.waits = append(multi.waits, w)
	}
	w.prev = wl.last
	if wl.last == nil {
		wl.first = w
	} else {
		wl.last.next = w
	}
	wl.last = w
	wl.mu.Unlock()
	wl.arm()
	return w
}

// note notes where the wait stands.
func (w *wait) note(e *acquire.Event) {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	if w.stands == acquire.First && e.Kind == acquire.Wait { // it has given way
		w.since = time.Now()
	}
	if w.stands = e.Kind; e.Kind != acquire.Wait {
		return
	}
	w.node, w.ahead, w.predecessor = e.Node, e.Ahead, e.Predecessor
	switch {
	case e.Position != nil:
		w.front = e.Position.Front()
	case e.Ahead == 1:
		w.front.Set(e.Predecessor)
	default:
		w.front.Set("")
	}
}

// end ends a wait; of none, nothing.
func (w *wait) end() {
	if w == nil {
		return
	}
	wl := w.log
	wl.mu.Lock()
	defer wl.mu.Unlock()
	if w.prev == nil {
		wl.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		wl.last = w.prev
	} else {
		w.next.prev = w.prev
	}
}

// arm sets the timer for a wait that has just been noted, unless it is set.
func (wl *waitLog) arm() {
	if !wl.armed.Load() && !wl.armed.Swap(true) {
		time.AfterFunc(longWait, wl.look)
	}
}

// longestWait is the wait for one lock that has lasted for longest.
type longestWait struct {
	queue   *acquire.Queue
	spare   int
	since   time.Time
	waiters int
	front   acquire.NodeName // of the queue, if it is known
	multi   *multiWait       // whose wait it is, nil if it is no MultiLock's
}

// look logs the long waits that are due, and sets the timer for the next ones.
func (wl *waitLog) look() {
	waits := wl.longest()
	if len(waits) == 0 {
		waits = wl.disarm()
	}
	if len(waits) == 0 {
		return
	}
	now := time.Now()
	held := wl.heldHere(waits, now)
	var due []func()
	next := longWait
	wl.mu.Lock()
	logged := make(map[string]loggedWait)
	for lock, w := range waits {
		waited := now.Sub(w.since)
		if waited < longWait {
			next = min(next, longWait-waited)
			continue
		}
		entry, write := wl.judge(w, wl.logged[lock], held[w.queue.Holders()], now)
		if write != nil {
			due = append(due, write)
		}
		if entry.own > 0 {
			next = min(next, 2*entry.own-waited)
		}
		logged[lock] = entry
	}
	wl.logged = logged
	wl.mu.Unlock()
	time.AfterFunc(next, wl.look)
	for _, write := range due {
		write()
	}
}

// disarm lets the next wait set the timer. It returns the waits that have found it
// set, after look had seen none.
func (wl *waitLog) disarm() map[string]*longestWait {
	wl.armed.Store(false)
	waits := wl.longest()
	if len(waits) == 0 || wl.armed.Swap(true) {
		return nil
	}
	return waits
}

// longest are the longest waits, by the path of the lock. Those of candidates do not count:
// to wait is what they are for.
func (wl *waitLog) longest() map[string]*longestWait {
	waits := make(map[string]*longestWait)
	note := func(w longestWait) {
		if session.IsElection(w.queue.Recipe) {
			return
		}
		have := waits[w.queue.Lock]
		if have == nil {
			waits[w.queue.Lock] = &w
			return
		}
		have.waiters += w.waiters
		have.spare = min(have.spare, w.spare)
		if have.front.String() == "" {
			have.queue, have.front = w.queue, w.front
		}
		if w.since.Before(have.since) {
			have.since, have.multi = w.since, w.multi
		}
	}
	wl.mu.Lock()
	for w := wl.first; w != nil; w = w.next {
		if w.stands == acquire.Wait {
			note(longestWait{w.queue, w.spare, w.since, 1, w.front, w.multi})
		}
	}
	wl.mu.Unlock()
	wl.localQueues.eachWait(note)
	return waits
}

// heldHere says, of the locks with a long wait, when the nodes of this client became
// holders, by the parent of the nodes.
func (wl *waitLog) heldHere(waits map[string]*longestWait, now time.Time) map[string][]time.Time {
	held := make(map[string][]time.Time)
	for _, w := range waits {
		if now.Sub(w.since) >= longWait {
			held[w.queue.Holders()] = nil
		}
	}
	if len(held) > 0 {
		session.TrackedUnder(wl.session, held)
	}
	return held
}

// judge returns what will have been logged of a long wait, and a function that logs it:
// nil if nothing is due. held is when this client's nodes became holders.
func (wl *waitLog) judge(w *longestWait, logged loggedWait, held []time.Time, now time.Time) (loggedWait, func()) {
	waited := now.Sub(w.since)
	oldest, own := now, 0 // of the nodes that have held the lock all the while
	for _, since := range held {
		if since.After(w.since) {
			continue
		}
		own++
		if since.Before(oldest) {
			oldest = since
		}
	}
	log := wl.session.Log()
	fields := []zap.Field{zap.String("kind", w.queue.Recipe), zap.String("path", w.queue.Lock), zap.Duration("waited", waited), zap.Int("waiters", w.waiters)}
	if has, wants := w.multi.standing(); len(wants) > 0 {
		fields = append(fields, zap.Strings("has", has), zap.Strings("wants", wants))
	}
	switch {
	case own > w.spare && waited >= 2*logged.own:
		fields = append(fields, zap.Duration("held", now.Sub(oldest)))
		return loggedWait{long: true, own: waited}, func() {
			log.Warn("waiting for a lock that this client holds itself: code that runs under a hold has to acquire with hold.Context()", fields...)
		}
	case own > w.spare: // it was logged not long ago
		return logged, nil
	case logged.long:
		return loggedWait{long: true}, nil
	}
	if front := w.front.String(); front != "" {
		fields = append(fields, zap.String("behind", w.queue.PathOf(front)))
	}
	return loggedWait{long: true}, func() { log.Info("waiting long for a lock", fields...) }
}
