package session

import (
	"context"
	"errors"

	"github.com/paddock-zk/paddock/internal/session/watch"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Event is what happened to a watched node.
type Event = watch.Event

// Watch is one subscription to the next event of a node.
type Watch = watch.Watch

// WatchData reads a node with a watch. A node that is not there is not watched.
func WatchData(ctx context.Context, s *Session, c *transport.Conn, path string, fn func(Event)) (*transport.Call, *Watch, error) {
	return s.setWatch(ctx, c, wire.OpGetData, watch.Data, path, fn)
}

// WatchExists asks whether a node exists and sets a watch, also if the node does not
// exist.
func WatchExists(ctx context.Context, s *Session, c *transport.Conn, path string, fn func(Event)) (*transport.Call, *Watch, error) {
	return s.setWatch(ctx, c, wire.OpExists, watch.Exists, path, fn)
}

// WatchChildren lists a node's children with a watch.
func WatchChildren(ctx context.Context, s *Session, c *transport.Conn, path string, fn func(Event)) (*transport.Call, *Watch, error) {
	return s.setWatch(ctx, c, wire.OpGetChildren2, watch.Children, path, fn)
}

func (s *Session) setWatch(ctx context.Context, c *transport.Conn, op wire.Op, kind watch.Kind, path string, fn func(Event)) (*transport.Call, *Watch, error) {
	call := transport.NewCall(op, &wire.PathWatchRequest{Path: path, Watch: true})
	if err := s.admit(ctx, call); err != nil {
		return nil, nil, err
	}
	s.random.Stagger(call.Frame())
	sub, err := s.watches.Set(c, call, kind, path, fn)
	if err != nil {
		call.Discard()
		if !errors.Is(err, ErrClosed) {
			err = lostError(err, false)
		}
		return nil, nil, err
	}
	return call, sub, nil
}

// StopWatch gives a watch up and removes it from the server if nobody else
// waits for it. Its callback may be running, or about to.
func StopWatch(s *Session, w *Watch) { s.watches.Stop(w) }
