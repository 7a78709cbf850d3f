package acquire

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// waitFor returns when something has happened to a node ahead. The watch
// survives a reconnect within the session, so the contender is kept through it.
func (a *Attempt) waitFor(ctx context.Context, c *transport.Conn, k *contender, name string, p *Position) error {
	woken := make(chan error, 1)
	fn := func(ev session.Event) {
		select {
		case woken <- ev.Err:
		default:
		}
	}
	watch, read, err := watchNode(ctx, c, k.queue, name, fn)
	if err != nil {
		return err
	}
	defer watch.stop()
	err = watch.await(ctx, c, read, fn)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err != nil:
		return err
	}
	select {
	case err := <-woken:
		return ofSession(err)
	case <-ctx.Done():
		if name == p.Only() {
			p.sessionID = sessionOfRead(read)
		}
		return contextend.Of(ctx)
	}
}

// nodeWatch is a watch for the next change of a node in a queue.
type nodeWatch struct {
	queue  *Queue
	name   string // of the node
	node   *session.Watch
	parent *session.Watch // where the node may not be read, else nil
}

// watchNode sends a read that sets a watch.
//
// A read leaves no watch behind if the node is gone by now, and exists would. But a read
// needs the right to read.
func watchNode(ctx context.Context, c *transport.Conn, q *Queue, name string, fn func(session.Event)) (w nodeWatch, read *transport.Call, err error) {
	read, set, err := session.WatchData(ctx, q.Core.Session(), c, session.Join(q.Path, name), fn)
	if err != nil {
		return nodeWatch{}, nil, err
	}
	return nodeWatch{queue: q, name: name, node: set}, read, nil
}

// await waits until the read has set the watch. The error is zk.ErrNoNode if the node is
// gone.
//
// Servers tell nothing of a node that we may not read, from 3.8.4 on not even to a client
// that watches it. So await watches the parent instead; every change in the queue ends
// that watch.
func (w *nodeWatch) await(ctx context.Context, c *transport.Conn, read *transport.Call, fn func(session.Event)) error {
	s := w.queue.Core.Session()
	err := s.Await(ctx, c, read, false)
	if !errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	var list *transport.Call
	list, w.parent, err = session.WatchChildren(ctx, s, c, w.queue.Path, fn)
	if err != nil {
		return err
	}
	var there wire.GetChildren2Response
	if err := s.Await(ctx, c, list, false); err != nil {
		return err
	}
	if err := list.Decode(&there); err != nil {
		return err
	}
	if !slices.Contains(there.Children, w.name) {
		return zk.ErrNoNode
	}
	return nil
}

// stop ends the watch; that of the zero value is none.
func (w *nodeWatch) stop() {
	for _, set := range []*session.Watch{w.node, w.parent} {
		if set != nil {
			session.StopWatch(w.queue.Core.Session(), set)
		}
	}
	*w = nodeWatch{}
}

// ofSession turns the reason why a watch has ended into an error of the session, so that
// the attempt goes on.
func ofSession(err error) error {
	if errors.Is(err, zk.ErrSessionExpired) {
		return session.ErrSessionOver
	}
	return err
}
