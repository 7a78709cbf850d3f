package acquire

import (
	"context"
	"strings"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/cleanup"
	"github.com/paddock-zk/paddock/internal/session/nodename"
)

// Node is a node that was first in its queue. It lasts as long as the hold that relies on
// it. The session tracks it, and tells its owner of changes. It is not for use by several
// goroutines at once, except for State, Path, Token and other methods that only read.
type Node struct {
	queue          *Queue
	id             int64 // of its session
	path           string
	czxid          int64
	tracked        *session.TrackedNode
	tag            nodename.Tag
	mayStillAppear bool // a second one, of a creation that was given up
	sawMulti       bool
}

// Track makes the session track the node of an owner. The error is that of
// session.Session.Track.
func Track(ctx context.Context, o Owner) (err error) {
	n := o.Node()
	n.tracked, err = n.Session().Track(ctx, n.id, n.path, o)
	return err
}

// Path is the node's path, in full, "" for the zero Node.
func (n *Node) Path() string { return n.path }

// Token is the transaction that has made the node. It grows from holder to holder.
func (n *Node) Token() int64 { return n.czxid }

// Tag says which owner the node belongs to.
func (n *Node) Tag() nodename.Tag { return n.tag }

// Session is the client's session object.
func (n *Node) Session() *session.Session { return n.queue.Core.Session() }

// SessionID is the number of the session that the node belongs to.
func (n *Node) SessionID() int64 { return n.id }

// SawMulti is whether a MultiLock was seen in the queue, if the node can be handed over.
func (n *Node) SawMulti() bool { return n.sawMulti }

// State is how sure the client is that the node exists and that its session has not
// ended.
func (n *Node) State() (session.TrackedState, error) { return n.tracked.State() }

// Untrack ends the tracking. The caller has to remove the node then.
func (n *Node) Untrack() { n.tracked.Untrack() }

// Deleted tells the session that the node is gone.
func (n *Node) Deleted() { n.tracked.Deleted() }

// Remove deletes the node, in the background if need be.
func (n *Node) Remove() *cleanup.Removal {
	r := cleanup.Remove(n.Session(), n.id, n.path)
	n.SweepBeside()
	return r
}

// SweepBeside is Sweep while this node is being removed.
func (n *Node) SweepBeside() {
	if n.mayStillAppear {
		n.mayStillAppear = false
		cleanup.SweepBeside(n.Session(), n.id, n.queue.Path, n.prefix(), n.path[strings.LastIndexByte(n.path, '/')+1:])
	}
}

// Sweep looks for a second node, made by a creation that was applied late.
func (n *Node) Sweep() {
	if n.mayStillAppear {
		n.mayStillAppear = false
		cleanup.Sweep(n.Session(), n.id, n.queue.Path, n.prefix())
	}
}

// prefix is what the node's name begins with, before its kind.
func (n *Node) prefix() string {
	name := n.path[strings.LastIndexByte(n.path, '/')+1:]
	return name[:strings.LastIndex(name, string(n.queue.Kind))]
}

// In returns the node for an owner that asked with another Queue, which makes the same
// node.
func (n *Node) In(q *Queue) Node {
	other := *n
	other.queue = q
	return other
}

// Pass makes the session tell another owner of the node's changes. That owner has the
// node already. Pass fails, and changes nothing, unless the node is sure to be ours for
// some time.
func (n *Node) Pass(to Owner) error {
	if err := n.tracked.Pass(to); err != nil {
		return err
	}
	n.mayStillAppear = false // the other one looks for a second node
	return nil
}

// Observe calls fn with the node's data, now and after each change, until it is stopped
// or the session is over.
func (n *Node) Observe(fn func(data []byte)) (stop func()) {
	return session.ObserveOwn(n.Session(), n.id, n.path, fn)
}
