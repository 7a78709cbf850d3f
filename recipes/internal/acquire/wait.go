package acquire

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/foreign"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// waitFor returns when something has happened to the node ahead. The watch
// survives a reconnect within the session, so the contender is kept through it.
func (a *Attempt) waitFor(ctx context.Context, c *transport.Conn, k *contender, p *Position) error {
	s := a.session
	woken := make(chan error, 1)
	fn := func(ev session.Event) {
		select {
		case woken <- ev.Err:
		default:
		}
	}
	// A read leaves no watch behind if the node is gone by now, and exists would. But a
	// read needs the right to read.
	call, watch, err := session.WatchData(ctx, s, c, session.Below(k.queue.Path, p.Ahead), fn)
	if err != nil {
		return err
	}
	defer session.StopWatch(s, watch)
	err = s.Await(ctx, c, call, false)
	if errors.Is(err, zk.ErrNoAuth) {
		var folder *session.Watch
		folder, err = a.watchUnreadable(ctx, c, k.queue, p.Ahead, fn)
		if folder != nil {
			defer session.StopWatch(s, folder)
		}
	}
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
		if p.Front.n == 0 {
			p.owner = ownerOfRead(call)
		}
		return foreign.ContextEnd(ctx)
	}
}

// watchUnreadable watches for the end of a node of the queue that we may not
// read. Servers tell nothing of such a node itself, from 3.8.4 on not even to a client
// that watches it. So it watches the parent of the queue; every change in the queue ends
// that watch. The result is ErrNoNode if the node is gone.
func (a *Attempt) watchUnreadable(ctx context.Context, c *transport.Conn, q *Queue, name string, fn func(session.Event)) (*session.Watch, error) {
	call, watch, err := session.WatchChildren(ctx, a.session, c, q.Path, fn)
	if err != nil {
		return nil, err
	}
	var there wire.GetChildren2Response
	err = a.session.Await(ctx, c, call, false)
	if err == nil {
		err = call.Decode(&there)
	}
	if err == nil && !slices.Contains(there.Children, name) {
		err = zk.ErrNoNode
	}
	return watch, err
}

// ofSession turns the reason why a watch has ended into an error of the session, so that
// the attempt goes on.
func ofSession(err error) error {
	if errors.Is(err, zk.ErrSessionExpired) {
		return session.ErrSessionOver
	}
	return err
}
