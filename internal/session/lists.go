package session

import (
	"context"
	"errors"
	"fmt"

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
	first   []int              // of each request for several nodes, the place of the first; nil with one for each
	paths   []string           // of the requests for several
	answers []wire.MultiResult // to these, as far as they were decoded
	decoded int                // of the requests
}

// NewLists makes the requests. With apart there is one for each node.
func NewLists(s *Session, paths []string, apart bool) *Lists {
	if apart || len(paths) < 2 {
		l := &Lists{Calls: make([]*transport.Call, len(paths))}
		for i, path := range paths {
			l.Calls[i] = NewList(path)
		}
		return l
	}
	l := &Lists{paths: paths}
	for from := 0; from < len(paths); {
		req := &wire.MultiRequest{}
		room := MostInTransaction(s) - transactionSize
		n := from
		for ; n < len(paths); n++ {
			if room -= readSize + len(paths[n]); room < 0 && n > from {
				break
			}
			req.Ops = append(req.Ops, wire.MultiOp{Op: wire.OpGetChildren, Request: &wire.PathWatchRequest{Path: paths[n]}})
		}
		l.Calls, l.first = append(l.Calls, transport.NewCall(wire.OpMultiRead, req)), append(l.first, from)
		from = n
	}
	return l
}

// readSize is what a list, or a read of data, takes in a request for several, without its
// path.
const readSize = 9 + 4 + 1

// ErrApart says that lists must be asked for with one request each, as the one reply is
// too large.
var ErrApart = errors.New("not to be read together")

// Listed waits for the list of a node, by its place among those asked for. One
// that is missing, or that may not be read, does not harm the others. After
// ErrApart there is none.
func Listed(ctx context.Context, s *Session, c *transport.Conn, l *Lists, i int) (none wire.Names, err error) {
	if l.first == nil {
		if err := s.Await(ctx, c, l.Calls[i], false); err != nil {
			return none, err
		}
		return Names(l.Calls[i])
	}
	for l.decoded < len(l.first) && l.first[l.decoded] <= i {
		if err := s.decodeLists(ctx, c, l); err != nil {
			return none, err
		}
	}
	if i >= len(l.answers) {
		return none, fmt.Errorf("%w: %d lists instead of more", transport.ErrProtocol, len(l.answers))
	}
	if a := l.answers[i]; a.Op == wire.OpError {
		return none, s.Refusal(wire.OpGetChildren, l.paths[i], a.Code)
	}
	return l.answers[i].Children, nil
}

// decodeLists takes in the answer to the next request for several lists.
func (s *Session) decodeLists(ctx context.Context, c *transport.Conn, l *Lists) error {
	call := l.Calls[l.decoded]
	err := s.Await(ctx, c, call, false)
	if errors.Is(err, ErrReplyTooLarge) {
		return ErrApart
	}
	var resp wire.MultiResponse
	if err == nil {
		err = call.Decode(&resp)
	}
	if err == nil && len(l.answers) != l.first[l.decoded] {
		err = fmt.Errorf("%w: %d lists instead of %d", transport.ErrProtocol, len(l.answers), l.first[l.decoded])
	}
	if err != nil {
		return err
	}
	l.answers = append(l.answers, resp.Results...)
	l.decoded++
	return nil
}
