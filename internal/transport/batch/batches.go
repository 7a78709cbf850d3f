// Package batch has requests of different locks leave together: creations of nodes with the
// lists behind them, and deletions. To its caller each is a request of its own, with its own
// outcome. A connection knows nothing of it but a transport.Source.
//
// See docs/decisions/022-batches.md.
package batch

import (
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Conn is what batches need of a connection. A transport.Conn is one.
type Conn interface {
	Send(calls ...*transport.Call) error
	Wake() // has Fill called, soon
	Limit(op wire.Op, most int) int
	Doubts(op wire.Op) bool
}

// joint is a write for which it does not matter whether it is a request of its own or an
// operation of a transaction with those of others.
type joint struct {
	write  *transport.Call
	list   *transport.Call // of the children of parent; nil behind a deletion
	parent string          // of the node
	make   wire.MultiOp    // makes parent; without an Op nothing does

	undone int  // how often it was undone with others
	alone  bool // it is to be a request of its own
	asked  bool // whether parent exists
	makes  bool // the transaction has to make parent
}

// creates is whether it makes a node.
func (j *joint) creates() bool { return j.list != nil }

// calls are its calls, in the order in which they are sent.
func (j *joint) calls() []*transport.Call {
	if j.list == nil {
		return []*transport.Call{j.write}
	}
	return []*transport.Call{j.write, j.list}
}

// size is how much it adds to what is written, at most: each operation of a transaction
// takes less than a request of its own.
func (j *joint) size() int {
	n := len(j.write.Frame())
	if j.list != nil {
		n += len(j.list.Frame())
	}
	if j.makes {
		n += len(wire.NewFrame(j.make.Op, j.make.Request))
	}
	return n
}

// The bounds of batches, chosen by measurement, see docs/decisions/022-batches.md.
const (
	// A joint request leaves at once while fewer than nearFlights writes have no answer,
	// and one more for each farFlight that an answer takes. So near servers get no more
	// than they can work on, or the requests of others would wait behind ours. Over a long
	// way there are as many on it as there would be without batches.
	nearFlights = 2
	farFlight   = time.Millisecond / 4
	// Otherwise it leaves with the next answer. After longestWait it leaves without one,
	// one more for each longestWait that an answer takes.
	longestWait = time.Millisecond

	leastJoint = 3        // requests in one transaction; fewer leave each by itself, which is as fast
	mostJoint  = 48       // requests in one write
	mostBytes  = 64 << 10 // of one write
	mostYields = 8        // for others to join
	mostUndone = 4        // before a request leaves alone
)

// MostSize is the size that a joint request may have. Larger ones are sent by themselves.
const MostSize = 8 << 10

// Batches are the joint requests of a connection. It is the connection's transport.Source.
type Batches struct {
	conn   Conn
	counts *Counts

	mu      sync.Mutex // guards the fields below
	waiting []*joint
	asking  []*joint      // they wait for the answer whether their parents exist
	since   time.Time     // when the first of those that wait began to
	urgent  bool          // those that were undone do not wait again
	flights int           // writes with joint requests that have no answer
	trip    time.Duration // the quickest answer to one
	parents pathSet       // that exist
	refused pathSet       // parents of nodes whose writes were refused, since refusal
	refusal time.Time     // when the first of these was noted
	over    error         // why the connection has ended, once its calls have
}

// Create sends the creation of a node below parent, and a list of the parent's children
// behind it. If other joint requests are under way, it leaves soon, with those that wait
// then. With makes, which says how, a missing parent may be made in the same transaction.
// Each call ends as if it had been sent by itself, but the Stat of a created node shows its
// Czxid alone. Create does not block. After an error, a *transport.LostError, nothing was
// queued and the calls do not end.
func Create(c *transport.Conn, parent string, makes func() wire.MultiOp, create, list *transport.Call) error {
	b, ok := c.Source().(*Batches)
	if !ok || b.alone(list) {
		return c.Send(create, list)
	}
	j := &joint{write: create, list: list, parent: parent}
	if makes != nil {
		j.make = makes()
	}
	return b.join(j)
}

// Delete likewise sends the deletion of a node below parent.
func Delete(c *transport.Conn, parent string, remove *transport.Call) error {
	b, ok := c.Source().(*Batches)
	if !ok || b.alone(remove) {
		return c.Send(remove)
	}
	return b.join(&joint{write: remove, parent: parent})
}

// alone is whether no other joint request is under way, so that one leaves as it is. last is
// the last of its calls.
func (b *Batches) alone(last *transport.Call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.flights > 0 || len(b.waiting) > 0 {
		return false
	}
	b.fly(last)
	return true
}

// fly counts a write that is about to be sent, until its last call has ended.
func (b *Batches) fly(last *transport.Call) {
	b.flights++
	last.Tell(b, true)
}

func (b *Batches) join(j *joint) error {
	now := time.Now()
	b.mu.Lock()
	if b.over != nil {
		err := b.over
		b.mu.Unlock()
		return &transport.LostError{Cause: err}
	}
	if len(b.waiting) == 0 {
		b.since = now
	}
	j.alone = now.Sub(b.refusal) < refusedFor && b.refused.has(j.parent)
	b.waiting = append(b.waiting, j)
	first := len(b.waiting) == 1
	b.mu.Unlock()
	if first {
		b.conn.Wake()
	}
	return nil
}

// Landed is told of the end of a call that was sent as it is, or was the last of a write. If it is a list,
// its answer shows that the parent exists.
func (b *Batches) Landed(call *transport.Call, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if call.Op() == wire.OpGetChildren && call.Err() == nil && call.Code() == wire.CodeOK {
		b.parents.addHash(maphash.Bytes(pathSeed, call.Path()))
	}
	if !last {
		return
	}
	if took := call.Took(); took > 0 && (b.trip == 0 || took < b.trip) {
		b.trip = took
	}
	if b.flights--; len(b.waiting) > 0 {
		b.conn.Wake()
	}
}

// Cancel takes a call back that waits, with the other one of its request, and reports whether
// it did.
func (b *Batches) Cancel(call *transport.Call) bool {
	var taken *joint
	b.mu.Lock()
	for _, all := range []*[]*joint{&b.waiting, &b.asking} {
		if i := slices.IndexFunc(*all, func(j *joint) bool { return j.write == call || j.list == call }); i >= 0 {
			taken = (*all)[i]
			*all = slices.Delete(*all, i, i+1)
		}
	}
	b.mu.Unlock()
	if taken == nil {
		return false
	}
	taken.abandon(nil)
	return true
}

// End ends all that wait, with their connection.
func (b *Batches) End(cause error) {
	b.mu.Lock()
	lost := b.waiting
	b.waiting, b.over = nil, cause
	b.mu.Unlock()
	for _, j := range lost {
		j.abandon(cause)
	}
}

// Fill sends the joint requests that may leave now. It returns when to look again, 0 for not
// before the next Wake. Before it looks, it lets others join: an answer to many wakes many
// goroutines, and most of them come back at once.
func (b *Batches) Fill() time.Duration {
	for yields, before := 0, -1; yields < mostYields; yields++ {
		b.mu.Lock()
		n := len(b.waiting)
		b.mu.Unlock()
		if n == 0 {
			return 0
		}
		if n == before {
			break
		}
		before = n
		runtime.Gosched()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ready, again := b.ready(time.Now())
	if ready {
		b.flushLocked()
	}
	return again
}

// ready is whether requests may leave now, and otherwise after what time they may.
func (b *Batches) ready(now time.Time) (ok bool, after time.Duration) {
	few := nearFlights + int(b.trip/farFlight)
	switch {
	case len(b.waiting) == 0:
		return false, 0
	case b.urgent, b.flights < few:
		return true, 0
	case b.flights >= few+int(b.trip/longestWait):
		return false, 0
	}
	after = longestWait - now.Sub(b.since)
	return after <= 0, max(after, 0)
}

// pick takes out what leaves in one write, in order, and returns the rest. If too many
// wait for one write, the deletions leave first. A creation never leaves before a deletion
// that was asked for earlier, or a lock could wait for its own former node.
//
// All nodes of one transaction have one czxid, which is a lock's fencing token. So it has
// one creation for each parent at most: two nodes of one lock must not be equal.
//
// All of it takes most bytes, so that no request in it is larger than the servers allow. One
// that is larger with its parent leaves alone, without it.
func pick(waiting []*joint, most int) (picked, rest []*joint) {
	deletions := 0
	for _, j := range waiting {
		if !j.creates() {
			deletions++
		}
	}
	onlyDeletions := len(waiting) > mostJoint && deletions >= mostJoint/2
	parents := make(map[string]struct{}, min(len(waiting), mostJoint))
	bytes := 0
	for i, j := range waiting {
		size := j.size()
		if len(picked) == mostJoint || len(picked) > 0 && bytes+size > most {
			return picked, append(rest, waiting[i:]...)
		}
		if size > most {
			j.alone, j.makes = true, false
		}
		if j.creates() {
			if _, twice := parents[j.parent]; twice || onlyDeletions {
				rest = append(rest, j)
				continue
			}
			parents[j.parent] = struct{}{}
		}
		bytes += size
		picked = append(picked, j)
	}
	return picked, rest
}

// flushLocked sends one batch: deletions, creations, and the lists behind these. If the
// connection has ended, they go on waiting: End follows.
func (b *Batches) flushLocked() {
	b.urgent = false
	if only := b.waiting[0]; len(b.waiting) == 1 && !only.makes {
		calls := only.calls()
		b.fly(calls[len(calls)-1])
		if b.conn.Send(calls...) == nil {
			clear(b.waiting)
			b.waiting = b.waiting[:0] // with its memory
		}
		return
	}
	picked, rest := pick(b.waiting, b.conn.Limit(wire.OpMulti, mostBytes)-multiSize)
	f := &flush{batches: b}
	var unknown []*joint
	for _, j := range picked {
		switch {
		case !j.creates() && !j.alone:
			f.deletions = append(f.deletions, j)
		case j.alone:
			f.alone = append(f.alone, j)
		case j.makes || b.parents.has(j.parent):
			f.creations = append(f.creations, j)
		case j.asked || j.make.Op == 0:
			f.alone = append(f.alone, j)
		default:
			unknown = append(unknown, j)
		}
	}
	if len(unknown) < leastJoint { // it costs nothing to find out by trying
		f.alone = append(f.alone, unknown...)
		unknown = nil
	}
	calls := b.askParents(unknown)
	if own := f.calls(); len(own) > 0 {
		b.fly(own[len(own)-1])
		calls = append(calls, own...)
	}
	if b.conn.Send(calls...) != nil {
		return
	}
	b.waiting, b.asking, b.since = rest, append(b.asking, unknown...), time.Now()
	if len(rest) > 0 {
		b.conn.Wake()
	}
}

// again puts requests back to the front of those that wait: nothing has happened for
// them. Those that nobody waits for any more end, and all if the connection has ended.
//
// One that Conn.Cancel has found sent must never be written after that. Its caller may have
// sent a barrier since, and takes what is not there behind it for what will never be.
func (b *Batches) again(all []*joint) {
	b.mu.Lock()
	over := b.over
	var left, gone []*joint
	for _, j := range all {
		if over != nil || j.write.Unwanted() {
			gone = append(gone, j)
		} else {
			left = append(left, j)
		}
	}
	b.waiting = append(left, b.waiting...)
	b.urgent = len(b.waiting) > 0
	b.mu.Unlock()
	for _, j := range gone {
		j.abandon(over)
	}
	b.conn.Wake()
}

// knowParents remembers that the parents of requests exist.
func (b *Batches) knowParents(of ...*joint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, j := range of {
		b.parents.add(j.parent)
	}
}

// Counts count the transactions with the requests of several, of all connections of a client.
type Counts struct{ batches, requests, undone atomic.Int64 }

// Source makes the batches of a connection.
func (n *Counts) Source(c *transport.Conn) transport.Source { return &Batches{conn: c, counts: n} }

// Load says how many transactions have carried several joint requests, how many requests
// these were, and how many of the transactions were refused.
func (n *Counts) Load() (batches, requests, undone int64) {
	return n.batches.Load(), n.requests.Load(), n.undone.Load()
}
