package locks

import (
	"fmt"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/internal/session"
)

// shared is what the locks of one client have in common, through however many
// lock objects.
type shared struct {
	localQueues localQueues
	leases      leaseTotals
	waitLog     waitLog
}

var sharedSlot = session.Slot[shared]{New: func(s *session.Session) *shared {
	sh := &shared{
		localQueues: localQueues{made: time.Now(), all: make(map[localQueueKey]*localQueue)},
		leases:      leaseTotals{of: make(map[string]*leaseTotal)},
	}
	sh.waitLog.session, sh.waitLog.localQueues = s, &sh.localQueues
	session.Inspect(s, inspector{s, sh})
	return sh
}}

func sharedOf(s *session.Session) *shared { return sharedSlot.Of(s) }

// leaseTotals has the number of leases of each semaphore that is in use. Two lock
// objects that state it differently would not exclude each other.
type leaseTotals struct {
	mu sync.Mutex // guards what is below
	of map[string]*leaseTotal
}

type leaseTotal struct {
	total int
	users int // acquisitions, and leases that are held
}

// use begins a use of the semaphore at path, or several.
func (l *leaseTotals) use(path string, total, times int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of[path]
	if t == nil {
		t = &leaseTotal{total: total}
		l.of[path] = t
	}
	if t.total != total {
		return fmt.Errorf("%w: %s is in use as a semaphore with %d leases, and this one has %d", ErrInvalidLock, path, t.total, total)
	}
	t.users += times
	return nil
}

// done ends a use.
func (l *leaseTotals) done(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of[path]
	if t.users--; t.users == 0 {
		delete(l.of, path)
	}
}
