package check

import (
	"fmt"
	"math"
	"time"
)

// Record is what happened in one run. Times count from its begin, by one clock.
type Record struct {
	Timeout time.Duration // the longest session timeout
	Log     []Txn         // in the order of the zxids
	Locks   []Lock
	Holds   []Hold
	Writes  []Write
	Waits   []Wait
	Left    []string // what was found when everybody had given back and gone

	// Forced are sessions that were ended by force, and when: nobody can know
	// that before it happens.
	Forced map[int64]time.Duration
	// Healed is when the last fault was over.
	Healed time.Duration
	// Over is when the candidates of elections were told to leave.
	Over time.Duration
}

// Kind is what a lock is.
type Kind int

// The kinds of lock, each with a layout of its own.
const (
	Mutex     Kind = iota + 1 // <path>/...lock-<digits>
	ReadWrite                 // <path>/...__WRIT__<digits>, ...__READ__<digits>
	Semaphore                 // <path>/leases/...lease-<digits>
	Election                  // <path>/...latch-<digits>, or as Mutex: somebody always wants to lead
)

// Lock is one path that is locked.
type Lock struct {
	Path    string
	Kind    Kind
	Permits int // of a semaphore
}

// queue is the node that contenders stand under.
func (l Lock) queue() string {
	if l.Kind == Semaphore {
		return l.Path + "/leases"
	}
	return l.Path
}

// Mode is what a hold lets others do.
type Mode int

// The modes of a hold.
const (
	Alone  Mode = iota + 1
	Shared      // with other readers
	Lease       // with as many as there are permits
)

// Never is later than everything.
const Never = time.Duration(math.MaxInt64)

// Hold is what a caller was told of one node that it holds.
type Hold struct {
	Who     string // for messages
	Owner   int    // holds of one owner do not exclude each other
	Lock    string // its path
	Mode    Mode
	Node    string // its path
	Session int64
	Token   int64 // as the caller was told, 0 for none
	Asked   time.Duration
	Granted time.Duration
	Ended   time.Duration // lost, or about to be given back; Never if it was not seen
	// ContextsEnded is when the last of its contexts had ended, 0 if nobody looked.
	ContextsEnded time.Duration
	// Over is whether it was over when the caller first looked at it: a process may
	// be stopped between the grant and its next step.
	Over bool
}

func (h Hold) String() string {
	return fmt.Sprintf("%s on %s, granted %v, ended %v", h.Who, h.Node, h.Granted, h.Ended)
}

// Outcome is what a caller was told of a write.
type Outcome int

// The outcomes of a write.
const (
	Done Outcome = iota + 1
	Unknown
	NotDone
)

// Write is a write under a lock.
type Write struct {
	Who     string
	ID      string   // the data that it wrote, which nobody else writes
	Path    string   // where
	Nodes   []string // that stand for the hold
	Fenced  bool     // it was to be refused without them
	Outcome Outcome
}

// Wait is a call that waited for a lock, or for servers.
type Wait struct {
	Who      string
	Lock     string
	Began    time.Duration
	Returned time.Duration
	// Limit is when its caller wanted it to end, Never without.
	Limit time.Duration
	OK    bool
	// Yields is whether it lets others pass, or waits for some who do, so that
	// how long it takes depends on how many there are.
	Yields bool
}

// Txn is one transaction of the servers' log.
type Txn struct {
	Zxid    int64
	At      time.Duration
	Session int64 // whose it was
	Closes  bool  // it ends that session
	Changes []Change
}

// ChangeKind is what happened to a node.
type ChangeKind int

// The kinds of change.
const (
	Created ChangeKind = iota + 1
	Deleted
	DataSet
)

// Change is what happened to one node.
type Change struct {
	Kind  ChangeKind
	Path  string
	Owner int64 // of a created one, the session if it is ephemeral
	Data  string
}

// Violation is a promise that was broken.
type Violation struct {
	Checker string
	Text    string
}

func (v Violation) String() string { return v.Checker + ": " + v.Text }

// verdict collects what one checker finds.
type verdict struct {
	checker string
	found   []Violation
}

// most is how many violations a checker tells of: one fault can break the same
// promise again and again.
const most = 5

func (v *verdict) add(format string, args ...any) {
	if len(v.found) < most {
		v.found = append(v.found, Violation{v.checker, fmt.Sprintf(format, args...)})
	}
}

// Checker is one promise.
type Checker struct {
	Name string
	Of   func(*Record) []Violation
}

// All are the checkers.
var All = []Checker{
	{"front", Front}, {"held at once", HeldAtOnce}, {"contexts", Contexts}, {"fence", Fence}, {"order", Order}, {"readers and writers", ReadersAndWriters},
	{"permits", Permits}, {"tokens", Tokens}, {"progress", Progress}, {"leader", Leader}, {"cancelled", Cancelled}, {"left", Left},
}
