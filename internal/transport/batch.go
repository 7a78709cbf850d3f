package transport

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// Joint is a write for which it does not matter whether it is a request of its own or an
// operation of a transaction with those of others. Make one for each sending.
//
// Locks make two kinds: the creation of a node, with the list of its parent's children
// behind it, and a deletion.
type Joint struct {
	Write  *Call
	List   *Call        // of the children of Parent; nil behind a deletion
	Parent string       // of the node
	Make   wire.MultiOp // makes Parent; without an Op nothing does

	conn   *Conn
	undone int  // how often it was undone with others
	alone  bool // it is to be a request of its own
	asked  bool // whether Parent exists
	makes  bool // the transaction has to make Parent
}

// creates is whether it makes a node.
func (j *Joint) creates() bool { return j.List != nil }

// calls are its calls, in the order in which they are sent.
func (j *Joint) calls() []*Call {
	if j.List == nil {
		return []*Call{j.Write}
	}
	return []*Call{j.Write, j.List}
}

// isGone is whether it was taken back.
func (j *Joint) isGone() bool {
	return j.Write.phase == ended || j.List != nil && j.List.phase == ended
}

// size is how much it adds to what is written, at most: each operation of a transaction
// takes less than a request of its own.
func (j *Joint) size() int {
	n := len(j.Write.frame)
	if j.List != nil {
		n += len(j.List.frame)
	}
	if j.makes {
		n += len(wire.NewFrame(j.Make.Op, j.Make.Request))
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

// MostJointSize is the size that a joint request may have. Larger ones are sent by
// themselves.
const MostJointSize = 8 << 10

// batches are the joint requests of a connection. Its mu guards them.
type batches struct {
	waiting []*Joint
	since   time.Time     // when the first of them began to wait
	urgent  bool          // those that were undone do not wait again
	flights int           // writes with joint requests that have no answer
	trip    time.Duration // the quickest answer to one
	parents pathSet       // that exist
	refused pathTimes     // parents of nodes whose writes were refused
}

// SendAlone sends the calls of a joint request, as Send does, if no other is under way. Else
// it returns false, and Join is for it. parent is that of the node that the first call
// makes, "" if it makes none.
func (c *Conn) SendAlone(parent string, calls ...*Call) (sent bool, err error) {
	if c.transport.cfg.NoBatches {
		return true, c.Send(calls...)
	}
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return true, &LostError{Cause: err}
	}
	if c.batch.flights > 0 || len(c.batch.waiting) > 0 {
		c.mu.Unlock()
		return false, nil
	}
	c.queueLocked(&c.out, calls)
	calls[0].parent = parent
	c.batch.flights++
	calls[len(calls)-1].flight = true
	c.mu.Unlock()
	c.nudge()
	return true, nil
}

// Join queues a joint request. It leaves soon, with others that are waiting then. Each
// call ends as if it had been sent by itself, but the Stat of a created node shows its
// Czxid alone. Join does not block. After an error, a *LostError, nothing was queued and the
// calls do not end.
func (c *Conn) Join(j *Joint) error {
	now := time.Now()
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return &LostError{Cause: err}
	}
	b := &c.batch
	if len(b.waiting) == 0 {
		b.since = now
	}
	for _, call := range j.calls() {
		call.phase = queued
	}
	if j.creates() {
		j.Write.parent = j.Parent
	}
	j.conn, j.alone = c, b.refused.has(j.Parent, now)
	b.waiting = append(b.waiting, j)
	first := len(b.waiting) == 1
	c.mu.Unlock()
	if first {
		c.nudge()
	}
	return nil
}

// answeredLocked takes in that a write has its last answer.
func (c *Conn) answeredLocked(call *Call, now time.Time) {
	if took := now.Sub(call.sentAt); call.flight && (c.batch.trip == 0 || took < c.batch.trip) {
		c.batch.trip = took
	}
	c.landedLocked(call)
}

// landedLocked takes in that nothing comes for a write any more.
func (c *Conn) landedLocked(call *Call) {
	if !call.flight {
		return
	}
	call.flight = false
	c.batch.flights--
	if len(c.batch.waiting) > 0 {
		c.nudge()
	}
}

// takeJoint appends the joint requests to buf that may leave now. It returns when to look
// again, 0 for not before the next nudge. Before it looks, it lets others join: an answer
// to many wakes many goroutines, and most of them come back at once.
func (c *Conn) takeJoint(buf []byte, now time.Time) ([]byte, time.Duration) {
	for yields, before := 0, -1; yields < mostYields; yields++ {
		c.mu.Lock()
		n := len(c.batch.waiting)
		c.mu.Unlock()
		if n == 0 {
			return buf, 0
		}
		if n == before {
			break
		}
		before = n
		runtime.Gosched()
	}
	c.mu.Lock()
	var gone []*Joint
	var again time.Duration
	if b := &c.batch; c.err == nil {
		buf, c.out = c.takeLocked(buf, c.out, now) // a joint request does not overtake what its sender has sent before
		b.waiting, gone = withoutGone(b.waiting)
		var ready bool
		if ready, again = b.ready(time.Now()); ready {
			buf = c.flushLocked(buf, now)
			again = 0
		}
	}
	c.mu.Unlock()
	for _, j := range gone {
		j.end(&LostError{Cause: errCancelled})
	}
	return buf, again
}

// ready is whether requests may leave now, and otherwise after what time they may.
func (b *batches) ready(now time.Time) (ok bool, after time.Duration) {
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

// withoutGone parts the requests that were taken back from the others.
func withoutGone(all []*Joint) (left, gone []*Joint) {
	if !slices.ContainsFunc(all, (*Joint).isGone) {
		return all, nil
	}
	for _, j := range all {
		if j.isGone() {
			gone = append(gone, j)
		} else {
			left = append(left, j)
		}
	}
	return left, gone
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
func pick(waiting []*Joint, most int) (picked, rest []*Joint) {
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
			if _, twice := parents[j.Parent]; twice || onlyDeletions {
				rest = append(rest, j)
				continue
			}
			parents[j.Parent] = struct{}{}
		}
		bytes += size
		picked = append(picked, j)
	}
	return picked, rest
}

// flushLocked writes one batch to buf: deletions, creations, and the lists behind these.
func (c *Conn) flushLocked(buf []byte, now time.Time) []byte {
	b := &c.batch
	b.urgent = false
	if len(b.waiting) == 1 && !b.waiting[0].makes {
		only := b.waiting[0]
		clear(b.waiting)
		b.waiting = b.waiting[:0] // with its memory
		return c.flyLocked(buf, now, only.calls()...)
	}
	picked, rest := pick(b.waiting, c.transport.Suspects.Limit(wire.OpMulti, min(mostBytes, c.transport.cfg.MaxRequest-multiSize)))
	b.waiting, b.since = rest, time.Now()
	f := &flush{conn: c}
	var unknown []*Joint
	for _, j := range picked {
		switch {
		case !j.creates() && !j.alone:
			f.deletions = append(f.deletions, j)
		case j.alone:
			f.alone = append(f.alone, j)
		case j.makes || b.parents.has(j.Parent):
			f.creations = append(f.creations, j)
		case j.asked || j.Make.Op == 0:
			f.alone = append(f.alone, j)
		default:
			unknown = append(unknown, j)
		}
	}
	if len(unknown) < leastJoint { // it costs nothing to find out by trying
		f.alone = append(f.alone, unknown...)
		unknown = nil
	}
	if len(unknown) > 0 {
		buf = c.writeLocked(buf, now, c.askParents(unknown)...)
	}
	if calls := f.calls(); len(calls) > 0 {
		buf = c.flyLocked(buf, now, calls...)
	}
	if len(rest) > 0 {
		c.nudge()
	}
	return buf
}

// flyLocked is writeLocked for calls of which the last shows that all are answered.
func (c *Conn) flyLocked(buf []byte, now time.Time, calls ...*Call) []byte {
	calls[len(calls)-1].flight = true
	c.batch.flights++
	return c.writeLocked(buf, now, calls...)
}

// writeLocked appends calls to buf and marks them as sent.
func (c *Conn) writeLocked(buf []byte, now time.Time, calls ...*Call) []byte {
	for _, call := range calls {
		call.setXid(c.transport.nextXid())
		call.phase, call.sentAt = sent, now
		c.sent.add(request{xid: call.xid, call: call, sentAt: now})
		buf = append(buf, call.frame...)
	}
	return buf
}

// again puts requests back to the front of those that wait: nothing has happened for
// them. Those that nobody waits for any more end, and all if the connection has ended.
//
// One that Cancel has found sent must never be written after that. Its caller may have sent
// a barrier since, and takes what is not there behind it for what will never be.
func (c *Conn) again(all []*Joint) {
	c.mu.Lock()
	lost := &LostError{Cause: errCancelled}
	if c.over {
		lost.Cause = c.err
	}
	var left, gone []*Joint
	for _, j := range all {
		if c.over || j.Write.unwanted {
			gone = append(gone, j)
			continue
		}
		left = append(left, j)
		for _, call := range j.calls() {
			if call.phase == sent {
				call.phase = queued
			}
		}
	}
	c.batch.waiting = append(left, c.batch.waiting...)
	c.batch.urgent = len(c.batch.waiting) > 0
	c.mu.Unlock()
	for _, j := range gone {
		j.end(lost)
	}
	c.nudge()
}

// knowParents remembers that the parents of requests exist.
func (c *Conn) knowParents(of ...*Joint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range of {
		c.batch.parents.add(j.Parent)
	}
}

// batchCounts count the transactions with the requests of several.
type batchCounts struct{ batches, requests, undone atomic.Int64 }

// Batched says how many transactions have carried several joint requests, how many
// requests these were, and how many of the transactions were refused.
func (l *Transport) Batched() (batches, requests, undone int64) {
	return l.batched.batches.Load(), l.batched.requests.Load(), l.batched.undone.Load()
}

func (n *batchCounts) add(requests int) {
	n.batches.Add(1)
	n.requests.Add(int64(requests))
}
