package locks

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

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
	localQueues *localQueues
	armed       atomic.Bool // the timer is set, or look is running

	mu           sync.Mutex            // guards the fields below
	acquisitions list.List             // of *acquisition: those that wait on the servers
	logged       map[string]loggedWait // by the path of the lock
}

// loggedWait is what was logged of a lock, until nobody waits for it any more.
type loggedWait struct {
	long bool          // that the wait is long
	own  time.Duration // how long it was when the log said that this client holds the lock
}

// arm sets the timer for a wait that has just been noted, unless it is set.
func (wl *waitLog) arm() {
	if !wl.armed.Load() && !wl.armed.Swap(true) {
		time.AfterFunc(longWait, wl.look)
	}
}

// longestWait is the wait for one lock that has lasted for longest.
type longestWait struct {
	queue      *acquire.Queue
	spare      int
	since      time.Time
	waiters    int
	front      string   // of the queue, if it is known
	has, wants []string // of a MultiLock
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
	wl.each(func(of *acquisition, w *wait) {
		if isElection(w.queue.Recipe) {
			return
		}
		spare := 0
		if of != nil {
			spare = of.spare
		}
		have := waits[w.queue.Lock]
		if have == nil {
			have = &longestWait{spare: spare}
			waits[w.queue.Lock] = have
		}
		have.waiters++
		have.spare = min(have.spare, spare)
		if have.front == "" {
			have.queue, have.front = w.queue, w.at.Front()
		}
		if have.waiters == 1 || w.since.Before(have.since) {
			have.since = w.since
			have.has, have.wants = of.standing()
		}
	})
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
	if len(held) == 0 {
		return nil
	}
	for _, owner := range session.Owners(wl.session) {
		if o, ours := owner.(*ownership); ours {
			parent := o.queue.Holders()
			if since, wanted := held[parent]; wanted {
				held[parent] = append(since, o.first)
			}
		}
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
	if len(w.wants) > 0 {
		fields = append(fields, zap.Strings("has", w.has), zap.Strings("wants", w.wants))
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
	if w.front != "" {
		fields = append(fields, zap.String("behind", w.queue.PathOf(w.front)))
	}
	return loggedWait{long: true}, func() { log.Info("waiting long for a lock", fields...) }
}
