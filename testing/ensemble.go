package zktest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// ensemble is what the members share: the order of the transactions, and the
// sessions. What the leader of a real ensemble does is done here.
type ensemble struct {
	cfg     config
	origin  time.Time // zero of the clock that sessions are timed by
	secret  [16]byte  // what session passwords are made from
	host    string    // of all members in memory
	members []*member // does not change

	// running is taken, by sending, while members are opened or shut, which
	// takes time. It comes before mu.
	running chan struct{}
	latency atomic.Int64 // a time.Duration
	dialed  atomic.Int64 // connections in memory so far

	// mu guards the fields below and those of members, sessions, connections
	// and rules that say so. It is never held over I/O, a wait or a callback.
	mu       sync.Mutex
	leader   *member // requests are judged against its data
	zxid     int64   // of the latest transaction
	sessions sessions
	rules    []*Rule
	requests map[string]int // counts by operation
	waiters  map[*waiter]struct{}
	sweeps   alarm
	sweeping bool   // sweeps is set
	conns    uint64 // accepted so far
	closed   bool
}

// reply is where the outcome of a transaction goes: to a request on a
// connection, or, without one, nowhere.
type reply struct {
	conn *conn
	xid  int32
}

// now is the time that transactions carry.
func (e *ensemble) now() int64 { return time.Now().UnixMilli() }

// submitLocked runs a write. The leader's data decide, and every member
// applies; the one that serves the client answers.
func (e *ensemble) submitLocked(to reply, who tree.Caller, op wire.Op, req wire.Record) tree.Outcome {
	e.zxid++
	txn := e.leader.data.Prepare(e.zxid, e.now(), who, op, req)
	var outcome tree.Outcome
	for _, m := range e.members {
		out := m.applyLocked(txn, to)
		if m == e.leader {
			outcome = out
		}
	}
	e.scheduleSweepLocked()
	e.wakeWaitersLocked()
	return outcome
}
