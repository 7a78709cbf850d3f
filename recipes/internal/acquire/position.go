package acquire

import (
	"cmp"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Position is where a contender stands in its queue.
type Position struct {
	Place       int    // the place in the queue
	Predecessor string // the node that it waits for, "" for none
	Head        string // the first of the queue, if that is not the one that it waits for
	next        string // the node before the one that it waits for, "" for none or if no event grants the lock
	sessionID   int64  // the session of the first one, if it is known
}

// Only is the node that a contender waits for if that node is the first of its queue.
// Otherwise it is "".
func (p *Position) Only() string {
	if p.Head != "" {
		return ""
	}
	return p.Predecessor
}

// Ahead is how many nodes stand before ours, and the path of the one that it waits for, in
// full. They are 0 and "" for leases: any of those before them may become free.
func (p *Position) Ahead(q *Queue) (n int, behind string) {
	if p.Predecessor == "" {
		return 0, ""
	}
	return p.Place, q.PathOf(p.Predecessor)
}

// Front is the name of the first node of the queue.
func (p *Position) Front() string { return cmp.Or(p.Head, p.Predecessor) }

// mostLists is how many lists in a row may show a node of another kind ahead of a
// contender that would be first, before the contender is refused. With the pauses
// between them that is about a second.
const mostLists = 10

// locate reads from the latest list where a contender stands: its place, and the place of
// the node that it waits for, -1 for none. If its node has gone, the contender is absent
// and the error is errStale.
//
// The first list decides to which kind of lock the queue belongs, see Queue.Check. A node
// of another kind may have come while the queue was ours, and is refused by its own
// client. But if all before it have gone meanwhile, that client may have got its lock. So
// nobody behind such a node is first until a list shows that it has gone.
func (a *Attempt) locate(k *contender) (at, ahead int, err error) {
	snap := k.snapshot
	if at = snap.Find(k.name()); at < 0 {
		return at, -1, a.deleted(k)
	}
	if err := k.queue.Check(snap); err != nil && !k.admitted {
		return at, -1, err
	}
	k.admitted, k.first = true, false
	k.behindOther = snap.OtherAhead(at) || k.beside != ""
	a.sawMulti = a.sawMulti || k.queue.Handovers > 0 && snap.HasYielding()
	ahead, waits := k.queue.Rule(snap, at)
	switch {
	case waits:
		return at, ahead, nil
	case !k.behindOther:
		k.first, k.listsBehind = true, 0
		return at, -1, nil
	case k.beside != "":
		return at, -1, a.waitForOther(k, k.queue.Lock, k.beside)
	}
	return at, -1, a.waitForOther(k, k.queue.Path, snap.FirstOther())
}

// waitForOther counts a list that shows nobody ahead but a node of another kind of lock,
// which is a child of path.
func (a *Attempt) waitForOther(k *contender, path, other string) error {
	a.other = &Obstacle{Lock: k.queue.Lock, Node: session.Join(path, other)}
	if k.listsBehind == mostLists {
		return otherKind(path, other)
	}
	k.listsBehind++
	return errStale
}

// set notes where locate has found a contender that waits.
func (p *Position) set(k *contender, at, ahead int) {
	*p = Position{Place: at, Predecessor: k.snapshot.Name(ahead)}
	if ahead == 0 {
		return
	}
	p.Head = k.snapshot.Name(0)
	if k.queue.EventGrants {
		p.next = k.snapshot.Name(ahead - 1)
	}
}

// mayBeFirst returns nil if a contender that is made now would be first. If others would
// be ahead, it returns ErrNotAcquired, and the position says which.
func (a *Attempt) mayBeFirst(k *contender, p *Position) error {
	snap := k.snapshot
	if err := k.queue.Check(snap); err != nil {
		return err
	}
	if _, waits := k.queue.Rule(snap, snap.Len()); !waits {
		return nil
	}
	*p = Position{Place: snap.Len(), Predecessor: snap.Name(0)}
	a.sawAhead = true
	return ErrNotAcquired
}

// Obstacle is the node that was in the way of an attempt. It is made only for an error.
type Obstacle struct {
	Lock    string   // the path of the lock, in full
	Node    string   // at the front of the queue, in full, "" if it is not known
	Session int64    // of that node, 0 if it is not known
	Ahead   int      // how many nodes stand before ours
	Local   bool     // the node is this client's
	Has     []string // the paths of a MultiLock's members that it had by then, in full
}

// obstacle is the node in the way, as a position has it.
func (p *Position) obstacle(q *Queue) *Obstacle {
	in := &Obstacle{Lock: q.Lock, Ahead: p.Place, Session: p.sessionID}
	if front := p.Front(); front != "" {
		in.Node = session.Join(q.Path, front)
	}
	return in
}

// sessionOfRead is the session of a node that a request has read, 0 if it cannot be
// told.
func sessionOfRead(read *transport.Call) int64 {
	var resp wire.GetDataResponse
	if read.Err() != nil || read.Code() != wire.CodeOK || read.Decode(&resp) != nil {
		return 0
	}
	return resp.Stat.EphemeralOwner
}
