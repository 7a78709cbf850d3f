package session

import (
	"context"
	"errors"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// NewList asks for the children of a node.
func NewList(path string) *transport.Call {
	return transport.NewCall(wire.OpGetChildren, &wire.PathWatchRequest{Path: path})
}

// Names are the children that NewList, or a request for a Stat as well, has asked for. They
// share the call's memory. The call has ended well.
func Names(list *transport.Call) (names wire.Names, err error) {
	err = list.Decode(&names)
	return names, err
}

// Lists are the children of several nodes, asked for together. One request asks
// for all of them, or several requests where one would be too large. With apart each
// node has a request of its own.
type Lists struct {
	Calls   []*transport.Call
	counts  []int              // how many nodes each request is for; nil with one for each
	paths   []string           // of the requests for several
	answers []wire.MultiResult // to these, as far as they were decoded
	decoded int                // of the requests
}

// NewLists makes the requests. With apart there is one for each node.
func NewLists(s *Session, paths []string, apart bool) *Lists {
	l := &Lists{paths: paths}
	if apart || len(paths) < 2 {
		for _, path := range paths {
			l.Calls = append(l.Calls, NewList(path))
		}
		return l
	}
	ops := make([]ReadOp, len(paths))
	for i, path := range paths {
		ops[i] = ReadOp{path, true}
	}
	for len(ops) > 0 {
		n := fitting(s, ops)
		l.Calls, l.counts = append(l.Calls, newReads(ops[:n])), append(l.counts, n)
		ops = ops[n:]
	}
	return l
}

// ErrApart says that lists must be asked for with one request each, as the one reply is
// too large.
var ErrApart = errors.New("not to be read together")

// Listed waits for the list of a node, by its place among those asked for. One
// that is missing, or that may not be read, does not harm the others. After
// ErrApart there is none.
func Listed(ctx context.Context, s *Session, c *transport.Conn, l *Lists, i int) (none wire.Names, err error) {
	if l.counts == nil {
		if err := s.Await(ctx, c, l.Calls[i], false); err != nil {
			return none, err
		}
		return Names(l.Calls[i])
	}
	for i >= len(l.answers) {
		call := l.Calls[l.decoded]
		if err := s.Await(ctx, c, call, false); errors.Is(err, ErrReplyTooLarge) {
			return none, ErrApart
		} else if err != nil {
			return none, err
		}
		answers, err := Results(call, l.counts[l.decoded])
		if err != nil {
			return none, err
		}
		l.answers = append(l.answers, answers...)
		l.decoded++
	}
	if a := l.answers[i]; a.Op == wire.OpError {
		return none, s.Refusal(wire.OpGetChildren, l.paths[i], a.Code)
	}
	return l.answers[i].Children, nil
}
