package session

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"

	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Find lists what stands under parent with a protection, made by a request that
// a server had read before the connection was lost.
func Find(ctx context.Context, s *Session, c *transport.Conn, parent, protection string) ([]string, error) {
	return s.find(ctx, c, parent, has(protection))
}

func has(protection string) func(name []byte) bool {
	return func(name []byte) bool { return bytes.HasPrefix(name, []byte(protection)) }
}

// FindOwn is Find for ephemeral nodes of c's session whose names match. If the list is
// longer than we accept, it asks servers from 3.6 on for the session's own nodes instead.
//
// Source: ZooKeeper's FinalRequestProcessor, getEphemerals.
func FindOwn(ctx context.Context, s *Session, c *transport.Conn, parent string, match func(name []byte) bool) ([]string, error) {
	found, err := s.find(ctx, c, parent, match)
	if !errors.Is(err, ErrReplyTooLarge) || !s.ephemerals.known() {
		return found, err
	}
	own := transport.NewCall(wire.OpGetEphemerals, &wire.PathRequest{Path: Join(parent, nodename.Mark)})
	own.OnReply = func(call *transport.Call) { s.ephemerals.learn(c, call) }
	if err := s.Send(ctx, c, own); err != nil {
		return nil, err
	}
	if asked := s.Await(ctx, c, own, false); asked != nil {
		var code *CodeError
		if errors.As(asked, &code) && code.Code == wire.CodeUnimplemented {
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

// ephemerals notes whether the servers know the request for a session's own nodes. Servers
// before 3.6 end the connection. Once one has answered, a lost connection says nothing.
type ephemerals struct {
	lost   atomic.Int32                   // connections that ended with such a request on its way
	lostOn atomic.Pointer[transport.Conn] // the last of them
}

// mostEphemeralsLost is how many such connections show that the servers do not know it.
const mostEphemeralsLost = 2

func (e *ephemerals) known() bool { return e.lost.Load() < mostEphemeralsLost }

// learn takes in how a server has taken that request.
func (e *ephemerals) learn(c *transport.Conn, call *transport.Call) {
	switch {
	case call.Replied() && call.Code() == wire.CodeUnimplemented:
		e.lost.Store(mostEphemeralsLost)
	case call.Replied():
		e.lost.Store(math.MinInt32)
	case !call.SentAt().IsZero() && e.lostOn.Swap(c) != c:
		e.lost.Add(1)
	}
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
