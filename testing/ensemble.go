package zktest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// ensemble is what the members share: the order of the transactions, the
// sessions, and who reaches whom. How a request gets from the member that took
// it to the leader and back is in replication.go, who leads in election.go.
type ensemble struct {
	cfg     config
	begun   time.Time // when it was made
	secret  [16]byte  // what session passwords are made from
	host    string    // of all members in memory
	members []*member // does not change

	// running is taken, by sending, while members are opened or shut, which
	// takes time. It comes before mu.
	running chan struct{}
	closing chan struct{} // closed when Close begins
	latency atomic.Int64  // a time.Duration
	dialed  atomic.Int64  // connections in memory so far

	// mu guards the fields below and those of members, sessions, connections
	// and rules that say so. It is never held over I/O, a wait or a callback.
	mu           sync.Mutex
	origin       time.Time     // zero of the clock that sessions are timed by
	wall         time.Duration // what the clock on the wall is ahead
	said         transcript
	log          []Transaction
	playing      []*Playing
	dials        map[string]int // connections in memory so far, by client
	leader       *member        // whom a majority elected last; nil while nobody leads
	head         *member        // whose replica has everything; the leader, or who led last
	prefer       *member        // who is to win the next election, if possible
	epoch        int64          // counts elections; 0 for ever on a server alone
	zxid         int64          // of the latest transaction, or the epoch's first
	last         int64          // of the latest transaction
	cut          [][]bool
	sessions     sessions
	rules        []*Rule
	requests     map[string]int // counts by operation
	waiters      map[*waiter]struct{}
	sweeps       alarm
	sweeping     bool // sweeps is set
	election     alarm
	electing     bool // election is set
	beats        alarm
	dog          watchdog
	conns        uint64 // accepted so far
	transactions int64
	closed       bool
}

// reply is where the outcome of a request goes: to a connection, or, without
// one, nowhere.
type reply struct {
	conn *conn
	xid  int32
}

// now is the time that transactions carry.
func (e *ensemble) now() int64 { return time.Now().Add(e.wall).UnixMilli() }

// errNoLeader reports that nothing can be written for want of a majority.
var errNoLeader = errors.New("no leader with a majority")

// ownLocked runs a write of the server's own.
func (e *ensemble) ownLocked(op wire.Op, who tree.Caller, req wire.Record) (tree.Outcome, error) {
	if !e.canCommitLocked(e.leader) {
		return tree.Outcome{}, errNoLeader
	}
	return e.commitLocked(proposal{who: who, op: op, req: req}), nil
}

// setTimersLocked sets the alarms of an ensemble that has begun to run.
func (e *ensemble) setTimersLocked() {
	if len(e.members) > 1 {
		e.nextBeatLocked()
	}
}

// stopTimersLocked stops all alarms.
func (e *ensemble) stopTimersLocked() {
	e.pauseLocked()
	e.election.stop()
	e.beats.stop()
	e.dog.alarm.stop()
	for _, m := range e.members {
		m.arrivals.stop()
		m.overdue.stop()
	}
}

// waitTimers returns when no alarm is ringing any more.
func (e *ensemble) waitTimers() {
	e.sessions.alarm.wait()
	e.sweeps.wait()
	e.election.wait()
	e.beats.wait()
	e.dog.alarm.wait()
	for _, m := range e.members {
		m.arrivals.wait()
		m.overdue.wait()
	}
}
