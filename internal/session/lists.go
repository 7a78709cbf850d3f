package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/wire"
)

// NewList asks for the children of a node.
func NewList(path string) *link.Call {
	return link.NewCall(wire.OpGetChildren, &wire.PathWatchRequest{Path: path})
}

// List waits for the children that NewList, or a request for a Stat as well, asked
// for. They share the call's memory.
func (s *Session) List(ctx context.Context, c *link.Conn, list *link.Call) (names wire.Names, err error) {
	if err := s.Await(ctx, c, list, false); err != nil {
		return wire.Names{}, err
	}
	err = list.Decode(&names)
	return names, err
}

// Lists are the children of several nodes, asked for together: in one request,
// which a server answers with one reply, or with one request for each node.
//
// Servers before 3.6 do not know the former, and end a connection on which it
// comes. So it is not tried again by a client whose first one had no answer, or
// that answer.
//
// Source: ZooKeeper's FinalRequestProcessor, multiRead; of 3.5,
// UnimplementedRequestProcessor.
type Lists struct {
	Calls   []*link.Call
	answers []wire.MultiResult // to the one request, once decoded
	one     bool
	paths   []string // of the one request
}

// What is known of how servers read together.
const (
	readsUnknown int32 = iota
	readsTogether
	readsApart
)

// NewLists makes the requests. With apart there is one for each node.
func (s *Session) NewLists(paths []string, apart bool) *Lists {
	if apart || len(paths) < 2 || s.reads.Load() == readsApart {
		l := &Lists{Calls: make([]*link.Call, len(paths))}
		for i, path := range paths {
			l.Calls[i] = NewList(path)
		}
		return l
	}
	req := &wire.MultiRequest{Ops: make([]wire.MultiOp, len(paths))}
	for i, path := range paths {
		req.Ops[i] = wire.MultiOp{Op: wire.OpGetChildren, Request: &wire.PathWatchRequest{Path: path}}
	}
	call := link.NewCall(wire.OpMultiRead, req)
	call.OnReply = s.learnReads
	return &Lists{Calls: []*link.Call{call}, one: true, paths: paths}
}

// learnReads takes in how a server has taken the one request.
func (s *Session) learnReads(call *link.Call) {
	switch {
	case call.Replied() && call.Code() == wire.CodeUnimplemented:
		s.reads.Store(readsApart)
	case call.Replied():
		s.reads.CompareAndSwap(readsUnknown, readsTogether)
	case !call.SentAt().IsZero():
		s.reads.CompareAndSwap(readsUnknown, readsApart)
	}
}

// ErrApart says that lists must be asked for with one request each: the server
// cannot do otherwise, or the one reply would be too large.
var ErrApart = errors.New("not to be read together")

// Listed waits for the list of a node, by its place among those asked for. One
// that is missing, or that may not be read, does not harm the others. After
// ErrApart there is none.
func (s *Session) Listed(ctx context.Context, c *link.Conn, l *Lists, i int) (none wire.Names, err error) {
	if !l.one {
		return s.List(ctx, c, l.Calls[i])
	}
	if l.answers == nil {
		err := s.Await(ctx, c, l.Calls[0], false)
		var code *CodeError
		if errors.Is(err, ErrReplyTooLarge) || errors.As(err, &code) && code.Code == wire.CodeUnimplemented {
			return none, ErrApart
		}
		if err != nil {
			return none, err
		}
		var resp wire.MultiResponse
		if err := l.Calls[0].Decode(&resp); err != nil {
			return none, err
		}
		l.answers = resp.Results
	}
	if i >= len(l.answers) {
		return none, fmt.Errorf("%w: %d lists instead of more", link.ErrProtocol, len(l.answers))
	}
	if a := l.answers[i]; a.Op == wire.OpError {
		return none, s.Refusal(wire.OpGetChildren, l.paths[i], a.Code)
	}
	return l.answers[i].Children, nil
}
