// Package deadlock decides when a MultiLock yields: when it gives up its place in a
// queue, because an owner that waits behind it may have what it waits for elsewhere. It
// also decides how long an attempt for several leases keeps its turn, see [Turn]. It is
// pure and knows no ZooKeeper.
//
// A MultiLock can wait in a circle with an owner that takes the same locks one after
// another, in any order. Our node in queue i stands ahead of theirs, while in queue j
// theirs stands ahead of ours. So a MultiLock that is first in queue i checks from time to
// time, as long as it does not have all its locks. It asks whether the owner that has j
// waits behind us in i. If so, it yields: its node in i goes to the end of the queue, and
// it keeps every other place. Cycles of three or more show no such match. So without a
// match it also yields, after a longer time.
//
// Our nodes have a tag that says which owner they belong to, so that many owners can
// share a session. Nodes of other libraries are told apart by their sessions, so two of
// them may match although their owners differ. An owner may also give up waiting by
// itself. Time tells these cases apart: an owner that waits for us does not give back
// what we wait for. So a match counts only if the owner has had it for as long as our
// backoff.
package deadlock

import (
	"time"

	"github.com/paddock-zk/paddock/internal/session/nodename"
)

// View is what a MultiLock sees of its queues. Each view has all of them, in the same
// order.
type View struct {
	Now    time.Time
	Ours   nodename.Way // Joint, Ordered or Backward
	Queues []Queue
}

// Queue is what a MultiLock sees of one of its queues.
type Queue struct {
	Listed    bool // in this round; what is said of others is of an earlier list
	First     bool // our node is there with nobody ahead
	Lease     bool // a lease: nobody waits for it, but for our turn
	Own       string
	OwnTag    string
	Holders   []Node        // that have what we wait for there, or will wait for
	Followers []Node        // behind our node, where that is first
	Behind    nodename.Ways // how all those behind it take their locks
	Waits     bool          // our node is there with somebody ahead
	Made      int64         // the transaction that made our node, 0 if it is not known
	// Has is whether a node was in the latest list.
	Has func(name string) bool
}

// Node is a node of another owner.
type Node struct {
	Name    string
	Known   bool // what follows is
	Session int64
	Made    int64     // the transaction that made it
	Seen    time.Time // when it was asked about, and so was there
	Tag     string    // "" if it says none
	Way     nodename.Way
}

// inTheWay is whether another owner may be waiting for us there.
func (q *Queue) inTheWay() bool { return q.First && !q.Lease }

// ownerMatch is how likely two nodes are of one owner.
type ownerMatch int

const (
	unlike  ownerMatch = iota
	perhaps            // of one session, and no more shows
	alike
)

// match compares two nodes. One owner has one tag, also with nodes of several clients.
// Nodes of other libraries have no tag, and the threads of a process share a session.
func (n *Node) match(other *Node) ownerMatch {
	switch {
	case n.Tag != other.Tag:
		return unlike
	case n.Tag != "":
		return alike
	case n.Session != other.Session:
		return unlike
	}
	return perhaps
}

// defers is whether we yield to an owner. Of two MultiLocks only the younger yields.
// Otherwise a MultiLock would yield over and over to those that came after it.
func (q *Queue) defers(to *Node) bool { return !to.Way.Yields() || nodename.Younger(q.OwnTag, to.Tag) }
