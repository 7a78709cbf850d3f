package locks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// Participant is one place in a queue: a node. Goroutines of one client that wait in one
// local queue are one participant, see LocalHandovers. If the client may not read the
// node, it knows nothing of its Data, Session, Token and Since.
type Participant struct {
	Path    string // of its node, as the client knows paths
	Data    []byte // what its lock was given with NodeData; nil if we may not read it
	Holds   bool   // it owns the lock or a lease; the others wait
	Write   bool   // on a read/write lock: the write side
	Session int64
	Token   int64     // the czxid, as FencingToken
	Since   time.Time // by the server's clock
}

// String is the participant and what it has, without the data.
func (p Participant) String() string {
	does := "waits"
	if p.Holds {
		does = "holds"
	}
	return fmt.Sprintf("%s of session %#x %s", p.Path, uint64(p.Session), does)
}

// Participants lists the nodes in the queue, in order, holders first, in two
// round trips. A queue that does not exist is empty. A path of another kind of lock is
// ErrInvalidLock, and a chroot that does not exist framework.ErrNoNode.
func (m *InterProcessMutex) Participants(ctx context.Context) ([]Participant, error) {
	if m.isZero() {
		return nil, opError("participants", monitor.Mutex, m.fault())
	}
	if err := usable(ctx, m.err); err != nil {
		return nil, opError("participants", m.queue.Lock, err)
	}
	return reading(ctx, m.queue.Core, m.queue.Lock, m.queue.participants)
}

// First is the path of the node that stands first in the queue, and so has the lock, as the
// client knows paths. It is "" if nobody has it. Errors are those of Participants.
//
// Cost: one round trip.
func (m *InterProcessMutex) First(ctx context.Context) (path string, err error) {
	if m.isZero() {
		return "", opError("first", monitor.Mutex, m.fault())
	}
	if err := usable(ctx, m.err); err != nil {
		return "", opError("first", m.queue.Lock, err)
	}
	err = m.queue.Core.Read(ctx, "first", m.queue.Lock, func(ctx context.Context, c *transport.Conn) error {
		snap, err := m.queue.Look(ctx, c)
		if err != nil {
			return err
		}
		defer snap.Free()
		path = ""
		if snap.Len() > 0 {
			path = m.queue.Core.Relative(session.Join(m.queue.Path, snap.Name(0)))
		}
		return nil
	})
	return path, err
}

// reading lists the queue, with retries by the client's policy.
func reading(ctx context.Context, core session.Core, path string,
	list func(context.Context, *transport.Conn) ([]Participant, error)) ([]Participant, error) {
	var all []Participant
	err := core.Read(ctx, "participants", path, func(ctx context.Context, c *transport.Conn) (err error) {
		all, err = list(ctx, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (q *queue) participants(ctx context.Context, c *transport.Conn) ([]Participant, error) {
	snap, err := q.Look(ctx, c)
	if err != nil {
		return nil, err
	}
	waits := func(i int) bool {
		rule := znode.Exclusive
		if snap.Kind(i) == znode.Read {
			rule = znode.Readers
		}
		_, waits := rule(snap, i)
		return waits
	}
	return q.describe(ctx, c, snap.Entries(0, snap.Len()), waits)
}

// describe reads every node of a queue. It leaves out nodes that have gone meanwhile.
func (q *queue) describe(ctx context.Context, c *transport.Conn, nodes []znode.Entry, waits func(int) bool) ([]Participant, error) {
	request := func(i int) *transport.Call {
		return transport.NewCall(wire.OpGetData, &wire.PathWatchRequest{Path: session.Join(q.Path, nodes[i].Name)})
	}
	var all []Participant
	err := q.Core.Session().Each(ctx, c, false, len(nodes), request, func(i int, call *transport.Call, err error) error {
		one := nodes[i]
		p := Participant{Path: q.Core.Relative(session.Join(q.Path, one.Name)), Holds: !waits(i), Write: one.Kind == znode.Write}
		var read wire.GetDataResponse
		if err == nil {
			err = call.Decode(&read)
		}
		switch {
		case errors.Is(err, framework.ErrNoNode):
			return nil
		case err == nil:
			p.Data, p.Session, p.Token, p.Since = read.Data, read.Stat.EphemeralOwner, read.Stat.Czxid, time.UnixMilli(read.Stat.Ctime)
		case !errors.Is(err, framework.ErrNoAuth):
			return err
		}
		all = append(all, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
