package session

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/session/watch"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Barrier is a write that changes nothing. Reads behind it, on the same connection, show
// every write that any server had received before. A sync is not enough: the leader may
// answer it before it has applied writes that others have applied, and the servers do not
// vote on a sync.
func Barrier(path string) *transport.Call {
	check := wire.MultiOp{Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: path, Version: -1}}
	return transport.NewCall(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{check}})
}

// AwaitBarrier waits for it. It does not matter if its node does not exist, or if we may
// not read it.
func AwaitBarrier(ctx context.Context, s *Session, c *transport.Conn, barrier *transport.Call) error {
	err := s.Await(ctx, c, barrier, false)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return nil
	}
	return err
}

// Stat describes a node. Where the server refuses that for want of the right to
// read, which it does from 3.9 on, the right to administer will do as well.
func Stat(ctx context.Context, s *Session, c *transport.Conn, path string) (wire.Stat, error) {
	var there wire.StatResponse
	err := s.Round(ctx, c, wire.OpExists, false, &wire.PathWatchRequest{Path: path}, &there)
	if !errors.Is(err, zk.ErrNoAuth) {
		return there.Stat, err
	}
	var list wire.GetACLResponse
	err = s.Round(ctx, c, wire.OpGetACL, false, &wire.PathRequest{Path: path}, &list)
	return list.Stat, err
}

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
	if err := s.admit(ctx, c, call); err != nil {
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

// Observe calls fn with a node's data, now and after each change, until it is
// stopped or the node or the session is gone.
func Observe(s *Session, session int64, path string, fn func(data []byte)) (stop func()) {
	life, cancel := context.WithCancel(s.life)
	s.Go(func(context.Context) {
		defer cancel()
		_ = RetryUntilDone(life, s, func(ctx context.Context) error {
			for {
				if err := s.observeOnce(ctx, session, path, fn); err != nil {
					return err // whoever needs to know has a tracked node on the node
				}
			}
		})
	})
	return cancel
}

// observeOnce reads a node and waits for its next change.
func (s *Session) observeOnce(ctx context.Context, session int64, path string, fn func([]byte)) error {
	c, err := s.AwaitConnOf(ctx, session)
	if err != nil {
		return err
	}
	changed := make(chan error, 1)
	call, w, err := WatchData(ctx, s, c, path, func(ev Event) { changed <- ev.Err })
	if err != nil {
		return err
	}
	defer StopWatch(s, w)
	if err := s.Await(ctx, c, call, false); err != nil {
		return err
	}
	var resp wire.GetDataResponse
	if err := call.Decode(&resp); err != nil {
		return err
	}
	fn(resp.Data)
	select {
	case err := <-changed:
		return err
	case <-ctx.Done():
		return s.contextEnd(ctx)
	}
}
