// Package acquire gets nodes to the front of their queues. It is the only code that
// creates contenders, lists their queues and watches the nodes ahead.
//
// An Attempt has contenders in one queue or in several. Its loop is the same for every
// lock: make what is missing and list the queues in one round trip, judge, wait,
// begin again. What differs is a policy: single for mutexes and the sides of a
// read/write lock, semaphore for leases, multi for several locks at once.
//
// Goroutines of one client that want the same lock wait before that, in the local queue of
// package locks (localqueue.go).
package acquire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// Queue is where nodes of one kind wait in order, and whom each waits for. The rules are
// in znode/rule.go, and position.go applies them. It also has the options of the lock
// object, for whoever goes by one of them.
type Queue struct {
	Core   session.Core
	Lock   string       // the path of the lock, in full
	Path   string       // the parent of the nodes, in full
	Recipe string       // what logs and tracers call the lock, see package monitor
	Kind   znode.Kind   // of the nodes that are made
	Kinds  []znode.Kind // that count
	Rule   znode.Rule
	// EventGrants is whether the event of the node ahead alone can grant the lock, see
	// lookahead.go.
	EventGrants bool

	// The options, see package locks.
	Data           []byte // of the nodes, unless they are Revocable; nil for the client's default
	EndOnSuspended bool
	FailOnLoss     bool // of the session, instead of beginning again in the next one
	Revocable      bool
	ReleaseWait    time.Duration
	Handovers      int           // of one node among goroutines, in a row
	Burst          time.Duration // for which the lock is handed over however often that is
}

// NodeData is what a node of ours is made with.
func (q *Queue) NodeData(c *transport.Conn) []byte {
	switch {
	case q.Revocable:
		return []byte{}
	case q.Data != nil:
		return q.Data
	}
	return q.Core.Data(c)
}

var (
	// ErrNotAcquired reports that another owner has the lock.
	ErrNotAcquired = errors.New("lock not acquired")
	// ErrInvalidLock reports a lock that cannot be used, such as one on a path that a
	// lock of another kind uses.
	ErrInvalidLock = errors.New("invalid lock")
)

// FullPath is the path of a lock in full. core is nil without a client. The error matches
// ErrInvalidLock.
func FullPath(core session.Core, path string) (full string, err error) {
	if core == nil {
		return "", fmt.Errorf("%w: no client", ErrInvalidLock)
	}
	full, err = core.Full(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrInvalidLock, err)
	case path == "/":
		return "", fmt.Errorf("%w: the root belongs to no lock alone", ErrInvalidLock)
	case full == "/zookeeper" || strings.HasPrefix(full, "/zookeeper/"):
		return "", fmt.Errorf("%w: %s is the servers' own: they keep their quotas and their configuration below /zookeeper", ErrInvalidLock, full)
	}
	return full, nil
}

// passing is whether an attempt goes on after a failure.
func passing(err error) bool {
	return session.Passing(err) || errors.Is(err, session.ErrSessionOver) || errors.Is(err, errStale) ||
		errors.Is(err, session.ErrKeepsVanishing)
}

// isPart is whether the queue is one of several of its lock, as those of a semaphore are.
func (q *Queue) isPart() bool { return q.Path != q.Lock }

// Holders is the parent of the nodes that hold the lock.
func (q *Queue) Holders() string {
	if q.isPart() {
		return session.Join(q.Lock, znode.Leases)
	}
	return q.Path
}

// Parse reads a list of the queue's children. The error is znode.ErrSequenceExhausted.
func (q *Queue) Parse(children wire.Names) (*znode.Snapshot, error) {
	return znode.Parse(children, q.Kinds, !q.isPart())
}

// List lists the queue. One that does not exist is empty.
func (q *Queue) List(ctx context.Context, c *transport.Conn) (*znode.Snapshot, error) {
	snap, _, err := q.list(ctx, c)
	return snap, err
}

func (q *Queue) list(ctx context.Context, c *transport.Conn) (snap *znode.Snapshot, exists bool, err error) {
	var names wire.Names
	err = q.Core.Session().Round(ctx, c, wire.OpGetChildren, false, &wire.PathWatchRequest{Path: q.Path}, &names)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, false, err
	}
	snap, parsed := q.Parse(names)
	return snap, err == nil, parsed
}

// Look lists the queue for somebody who does not stand in it. It refuses what an attempt
// would refuse, as checkAround and Check do.
func (q *Queue) Look(ctx context.Context, c *transport.Conn) (*znode.Snapshot, error) {
	snap, exists, err := q.list(ctx, c)
	if err == nil {
		err = q.checkAround(ctx, c, exists)
	}
	if err == nil {
		err = q.Check(snap)
	}
	if err != nil {
		return nil, err
	}
	return snap, nil
}

// checkAround refuses what the children of the queue do not show: a chroot that is
// missing, and parts of a lock of another kind. exists is whether the queue's parent was
// there. Most often that needs no request.
func (q *Queue) checkAround(ctx context.Context, c *transport.Conn, exists bool) error {
	if exists {
		return q.checkFolder(ctx, c)
	}
	if err := q.Core.CheckChroot(ctx); err != nil || !q.isPart() {
		return err
	}
	return q.CheckLock(ctx, c)
}

// CheckLock refuses the queue, which is a part of its lock, if a lock of another kind uses
// the lock's own path.
func (q *Queue) CheckLock(ctx context.Context, c *transport.Conn) error {
	list := session.NewList(q.Lock)
	err := q.Core.Session().Send(ctx, c, list)
	if err == nil {
		err = q.Core.Session().Await(ctx, c, list, false)
	}
	parents := session.Parents{Check: noContender}
	return parents.Look(q.Lock, list, err)
}

// checkFolder refuses the folder in which a semaphore has its turns, whose nodes look like
// those of a mutex. It asks the servers only where the path ends like that.
func (q *Queue) checkFolder(ctx context.Context, c *transport.Conn) error {
	above, isFolder := strings.CutSuffix(q.Path, "/"+znode.Turns)
	if !isFolder || q.isPart() || !slices.Contains(q.Kinds, znode.Lock) {
		return nil
	}
	_, err := session.Stat(ctx, q.Core.Session(), c, session.Join(above, znode.Leases))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err == nil, errors.Is(err, zk.ErrNoAuth): // it is there, and may not be read
		return otherKind(above, znode.Leases)
	}
	return err
}

// eachStat reports the stat of each of some nodes, by their places. It leaves out nodes that
// are gone, and those of which ZooKeeper 3.9 says nothing to us.
func eachStat(ctx context.Context, s *session.Session, c *transport.Conn, paths []string, report func(i int, of *wire.Stat)) error {
	request := func(i int) *transport.Call {
		return transport.NewCall(wire.OpExists, &wire.PathWatchRequest{Path: paths[i]})
	}
	return s.Each(ctx, c, false, len(paths), request, func(i int, call *transport.Call, err error) error {
		var there wire.StatResponse
		if err == nil {
			err = call.Decode(&there)
		}
		switch {
		case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNoAuth):
			return nil
		case err == nil:
			report(i, &there.Stat)
		}
		return err
	})
}

// PathOf is the path of a node in the queue, in full. In the queue of a semaphore's turns
// it may be a lease that is waited for.
func (q *Queue) PathOf(name string) string {
	if kind, _ := nodename.KindOf(name); kind == znode.Lease {
		return session.Join(q.Holders(), name)
	}
	return session.Join(q.Path, name)
}

// paths are the paths of nodes in the queue, in full.
func (q *Queue) paths(nodes []znode.Entry) []string {
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = session.Join(q.Path, n.Name)
	}
	return all
}

// Check refuses to go on in a queue that belongs to a lock of another kind. The error
// matches ErrInvalidLock.
func (q *Queue) Check(snap *znode.Snapshot) error {
	if other := snap.Other(); other != "" {
		return otherKind(q.Path, other)
	}
	return nil
}

// otherKind refuses a path where another kind of lock was seen.
func otherKind(path, child string) error {
	return fmt.Errorf("%w: %s is used by a lock of another kind, a %s, which has the node %s there: give each lock a path of its own, "+
		"or delete that node if its lock is no longer in use", ErrInvalidLock, path, nodename.RecipeOf(child), child)
}
