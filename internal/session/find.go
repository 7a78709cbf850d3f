package session

import (
	"context"
	"errors"
	"strings"

	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Find lists the protected nodes under parent whose names match, also those made by requests
// that a server had read before the connection was lost. If the list is longer than we accept
// and the nodes are ephemeral, it asks for those of c's session instead, if the servers know
// that.
//
// Source: ZooKeeper's FinalRequestProcessor, getEphemerals.
func Find(ctx context.Context, s *Session, c *transport.Conn, parent string, ephemeral bool, match func(name []byte) bool) ([]string, error) {
	found, err := s.find(ctx, c, parent, match)
	if !ephemeral || !errors.Is(err, ErrReplyTooLarge) || s.Lacks(wire.OpGetEphemerals) {
		return found, err
	}
	own := transport.NewCall(wire.OpGetEphemerals, &wire.PathRequest{Path: Join(parent, nodename.Mark)})
	if err := s.Send(ctx, c, own); err != nil {
		return nil, err
	}
	if asked := s.Await(ctx, c, own, false); asked != nil {
		if errors.Is(asked, ErrUnsupported) {
			return nil, err
		}
		return nil, asked
	}
	var resp wire.GetEphemeralsResponse
	if err := own.Decode(&resp); err != nil {
		return nil, err
	}
	for _, path := range resp.Paths {
		// The prefix may also be that of nodes further down.
		if name, below := strings.CutPrefix(path, Join(parent, "")); below && !strings.Contains(name, "/") && match([]byte(name)) {
			found = append(found, name)
		}
	}
	return found, nil
}

func (s *Session) find(ctx context.Context, c *transport.Conn, parent string, match func(name []byte) bool) ([]string, error) {
	barrier, list := Barrier(parent), NewList(parent)
	if err := s.Send(ctx, c, barrier, list); err != nil {
		return nil, err
	}
	if err := AwaitBarrier(ctx, s, c, barrier); err != nil {
		return nil, err
	}
	if err := s.Await(ctx, c, list, false); err != nil {
		return nil, err
	}
	children, err := Names(list)
	if err != nil {
		return nil, err
	}
	defer list.Free()
	var found []string
	for _, name := range children.All() {
		if match(name) {
			found = append(found, string(name))
		}
	}
	return found, nil
}
