package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Participant is one place in a queue: a node. Goroutines of one client that wait
// in line for a mutex are one participant, see LocalHandovers. Of a node that we
// may not read, servers from ZooKeeper 3.9 on tell no Session, Token and Since.
type Participant struct {
	Path    string // of its node, as the client knows paths
	Data    []byte // what its lock was given with NodeData; nil if we may not read it
	Holds   bool   // it owns the lock or a lease; the others wait
	Write   bool   // on a read/write lock: the write side
	Session int64
	Token   int64     // the czxid, as FencingToken
	Since   time.Time // by the server's clock
}

// String is who it is and what it has, without the data.
func (p Participant) String() string {
	does := "waits"
	if p.Holds {
		does = "holds"
	}
	return fmt.Sprintf("%s of session %#x %s", p.Path, uint64(p.Session), does)
}

// Participants lists the nodes in the queue, in order, holders first, in two
// round trips. A queue that does not exist is empty.
func (m *InterProcessMutex) Participants(ctx context.Context) ([]Participant, error) {
	if m.isZero() {
		return nil, opError("participants", "", ErrInvalidLock)
	}
	if err := usable(ctx, m.err); err != nil {
		return nil, opError("participants", m.path, err)
	}
	return reading(ctx, m.scope, m.path, m.participants)
}

// reading lists by the client's retry policy.
func reading(ctx context.Context, scope *session.Scope, path string,
	list func(context.Context, *link.Conn) ([]Participant, error)) ([]Participant, error) {
	var all []Participant
	err := scope.Read(ctx, "participants", path, func(ctx context.Context, c *link.Conn) (err error) {
		all, err = list(ctx, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (q *queue) participants(ctx context.Context, c *link.Conn) ([]Participant, error) {
	line, err := q.line(ctx, c)
	if err != nil {
		return nil, err
	}
	waits := func(i int) bool {
		ahead := aheadExclusive
		if line.mark(i) == readName {
			ahead = aheadRead
		}
		_, waits := ahead(line, i)
		return waits
	}
	return q.describe(ctx, c, line.span(0, line.len()), waits)
}

// line lists the queue in order.
func (q *queue) line(ctx context.Context, c *link.Conn) (*lineup, error) {
	var names wire.Names
	err := q.scope.Session.Round(ctx, c, wire.OpGetChildren, false, &wire.PathWatchRequest{Path: q.path}, &names)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, err
	}
	return lineUp(names, q.marks)
}

// describe reads every node of a queue, all requests at once. Those that have
// gone meanwhile are left out.
func (q *queue) describe(ctx context.Context, c *link.Conn, line []contender, waits func(int) bool) ([]Participant, error) {
	if len(line) == 0 {
		return nil, nil
	}
	calls := make([]*link.Call, 0, 2*len(line))
	for _, one := range line {
		req := &wire.PathWatchRequest{Path: session.Below(q.path, one.name)}
		calls = append(calls, link.NewCall(wire.OpExists, req), link.NewCall(wire.OpGetData, req))
	}
	if err := q.scope.Session.Send(ctx, c, calls...); err != nil {
		return nil, err
	}
	var all []Participant
	for i, one := range line {
		p, err := q.describeOne(ctx, c, calls[2*i], calls[2*i+1])
		switch {
		case errors.Is(err, framework.ErrNoNode):
			continue
		case err != nil:
			return nil, err
		}
		p.Path = q.scope.Relative(session.Below(q.path, one.name))
		p.Holds, p.Write = !waits(i), one.mark == writeName
		all = append(all, p)
	}
	return all, nil
}

// describeOne takes the stat from exists, which needs no right before ZooKeeper
// 3.9. Later servers say no more than that the node is there.
func (q *queue) describeOne(ctx context.Context, c *link.Conn, exists, get *link.Call) (Participant, error) {
	s := q.scope.Session
	var there wire.StatResponse
	switch err := s.Await(ctx, c, exists, false); {
	case errors.Is(err, framework.ErrNoAuth):
		return Participant{}, nil
	case err != nil:
		return Participant{}, err
	}
	if err := exists.Decode(&there); err != nil {
		return Participant{}, err
	}
	p := Participant{Session: there.Stat.EphemeralOwner, Token: there.Stat.Czxid, Since: time.UnixMilli(there.Stat.Ctime)}
	var data wire.GetDataResponse
	err := s.Await(ctx, c, get, false)
	switch {
	case err == nil:
		err = get.Decode(&data)
		p.Data = data.Data
	case errors.Is(err, framework.ErrNoAuth):
		err = nil
	}
	return p, err
}
