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
	call, err := AskStat(ctx, s, c, path)
	if err != nil {
		return wire.Stat{}, err
	}
	return AwaitStat(ctx, s, c, path, call)
}

// AskStat sends what AwaitStat waits for.
func AskStat(ctx context.Context, s *Session, c *transport.Conn, path string) (*transport.Call, error) {
	call := transport.NewCall(wire.OpExists, &wire.PathWatchRequest{Path: path})
	return call, s.Send(ctx, c, call)
}

// AwaitStat is the other half of Stat. If ctx ends first, it may be called again.
func AwaitStat(ctx context.Context, s *Session, c *transport.Conn, path string, call *transport.Call) (wire.Stat, error) {
	var there wire.StatResponse
	err := s.Await(ctx, c, call, false)
	if err == nil {
		err = call.Decode(&there)
	}
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

// Observe calls fn with a node's data, now and after each change. It reads on the connections
// that conn gives, and returns once ctx has ended, or with a failure that repeating cannot cure.
func Observe(ctx context.Context, s *Session, conn func(context.Context) (*transport.Conn, error), path string, fn func(data []byte)) error {
	for {
		var set *Watch
		var changed chan struct{}
		var resp wire.GetDataResponse
		if err := RetryUntilDone(ctx, s, func(ctx context.Context) error {
			c, err := conn(ctx)
			if err != nil {
				return err
			}
			told := make(chan struct{}, 1) // not changed, which a former attempt may have
			call, w, err := WatchData(ctx, s, c, path, func(Event) { told <- struct{}{} })
			if err != nil {
				return err
			}
			if err = s.Await(ctx, c, call, false); err == nil {
				err = call.Decode(&resp)
			}
			if set, changed = w, told; err != nil {
				StopWatch(s, w)
			}
			return err
		}); err != nil {
			return err
		}
		fn(resp.Data)
		select {
		case <-changed:
		case <-ctx.Done():
			StopWatch(s, set)
			return s.contextEnd(ctx)
		}
	}
}

// ObserveOwn is Observe for a node of one session, in the background until stopped.
func ObserveOwn(s *Session, session int64, path string, fn func(data []byte)) (stop func()) {
	observing, cancel := context.WithCancel(s.life)
	conn := func(ctx context.Context) (*transport.Conn, error) { return s.AwaitConnOf(ctx, session) }
	s.Go(func(context.Context) {
		defer cancel()
		_ = Observe(observing, s, conn, path, fn) // whoever needs to know has a tracked node on the node
	})
	return cancel
}
