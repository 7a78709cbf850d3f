// Package deadlock decides when a MultiLock yields: when it gives up its place in a queue,
// because whoever waits behind it there may have what it waits for elsewhere. It also
// decides how long an attempt for several leases keeps its turn, see [Turn]. It is pure
// and knows no ZooKeeper.
//
// A MultiLock can wait in a circle with an owner that takes the same locks one after
// another, in whatever order. Our node in queue i stands ahead of theirs, while in queue j
// theirs stands ahead of ours. So while a MultiLock is not whole, and is first in queue i,
// it looks from time to time whether the owner that has j is the one that waits behind us
// in i. If so, it yields: its node in i goes to the end of the queue, and every other place
// is kept. Cycles of three or more show no such match, so without one the same is done
// after a longer time.
//
// Nodes of ours say whose they are, by a tag, so that many owners can share a session.
// Those of other libraries are told apart by their sessions, and may match for no
// reason. An owner may also give up waiting by itself. What tells them apart is time: an
// owner that waits for us does not give back what we wait for. So it has to have had
// that for as long as our backoff.
package deadlock

import (
	"time"

	"github.com/paddock-zk/paddock/internal/session/nodename"
)

// View is what a MultiLock sees of its queues, all of them in each view, in one order.
type View struct {
	Now    time.Time
	Queues []Queue
}

// Queue is what it sees of one of them.
type Queue struct {
	Listed    bool // in this round; what is said of others is of an earlier list
	First     bool // our node is there with nobody ahead
	Lease     bool // a lease: nobody waits for it, but for our turn
	Own       string
	OwnTag    string
	Holders   []Node // that have what we wait for there, or will wait for
	Followers []Node // behind our node, where that is first
	// Has is whether a node was in the latest list.
	Has func(name string) bool
}

// Node is a node of somebody else's.
type Node struct {
	Name    string
	Known   bool // what follows is
	Session int64
	Tag     string // "" if it says none
	Yields  bool   // it is a MultiLock's
}

// inTheWay is whether somebody may be waiting for us there.
func (q *Queue) inTheWay() bool { return q.First && !q.Lease }

// ownerMatch is how likely two nodes are of one owner.
type ownerMatch int

const (
	unlike  ownerMatch = iota
	perhaps            // of one session, and no more is known
	alike
)

// match compares two nodes. Nodes that say nothing, as those of other libraries, are told
// apart by their sessions. An owner that nests locks may have forgotten to pass on the
// context, and so have different tags. A MultiLock is not suspected of that, or those of
// one session would yield to each other for whatever anybody there holds.
func (n *Node) match(other *Node) ownerMatch {
	differ := n.Tag != other.Tag && n.Tag != "" && other.Tag != ""
	switch {
	case n.Session != other.Session, differ && (n.Yields || other.Yields):
		return unlike
	case differ:
		return perhaps
	}
	return alike
}

// defers is whether we yield to an owner. Of two that would both, only the younger does:
// otherwise a MultiLock would yield over and over to those that came after it.
func (q *Queue) defers(to *Node) bool { return !to.Yields || nodename.Younger(q.OwnTag, to.Tag) }
