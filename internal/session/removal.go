package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/wire"
)

// ErrLate reports that the servers have not answered within the limit.
var ErrLate = errors.New("not answered in time")

// Removal is the deletion of an ephemeral node of ours, which goes on until the
// node is gone or its session is over.
type Removal struct {
	session  *Session
	answered chan struct{}
	patience patience

	mu   sync.Mutex // guards the fields below
	told bool       // answered is closed
	err  error
	over bool // nothing more will be done
	last error
	then func(error)
}

// Wait waits until the servers have confirmed or refused or there is nobody to
// ask any more, for limit at most. It returns nil if the servers confirmed,
// ErrNoNode if the node had been gone before, ErrSessionOver if it went or will
// go with the session, ErrClosed if the session is being closed, a refusal, or
// ErrLate; after the last two it is tried again in the background. It is called
// once.
func (r *Removal) Wait(limit time.Duration) error {
	r.session.expect(r, limit)
	select {
	case <-r.answered:
	case <-r.session.life.Done():
		r.waitClosing(limit)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// waitClosing is Wait while the session is being closed, when the minder has
// ended. An answer on its way still comes.
func (r *Removal) waitClosing(limit time.Duration) {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-r.answered:
	case <-t.C:
		r.tell(ErrLate)
		<-r.answered
	}
}

// GiveUp ends Wait as its limit does.
func (r *Removal) GiveUp() { r.tell(ErrLate) }

// Then calls fn when it is over: with nil or ErrNoNode if the node is gone, else
// ErrSessionOver or ErrClosed. It must not block.
func (r *Removal) Then(fn func(error)) {
	r.mu.Lock()
	over, err := r.over, r.last
	r.then = fn
	r.mu.Unlock()
	if over {
		fn(err)
	}
}

// tell answers, once.
func (r *Removal) tell(err error) {
	r.mu.Lock()
	first := !r.told
	if first {
		r.told, r.err = true, err
	}
	r.mu.Unlock()
	if first {
		r.session.forget(r)
		close(r.answered)
	}
}

func (r *Removal) isTold() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

func (r *Removal) end(err error) {
	r.mu.Lock()
	r.over, r.last = true, err
	then := r.then
	r.mu.Unlock()
	if then != nil {
		then(err)
	}
	r.tell(err)
}

// Remove deletes a node that was created in the session given: at once, and in
// the background if that fails. It does not block.
func (s *Session) Remove(session int64, path string) *Removal {
	r := &Removal{session: s, answered: make(chan struct{})}
	s.remove(r, session, path)
	return r
}

func (s *Session) remove(r *Removal, session int64, path string) {
	c, err := s.Current(session)
	if err == nil {
		call := link.NewCall(wire.OpDelete, &wire.PathVersionRequest{Path: path, Version: -1})
		call.OnReply = func(call *link.Call) { s.removed(r, session, path, s.ended(call, true)) }
		if err = s.sendAtOnce(c, call); err == nil {
			return
		}
		err = lostError(err, false)
	}
	s.removed(r, session, path, err)
}

// RemoveAll is Remove for several nodes, in one transaction, or in as few as hold
// them. If one is refused, because a node of it is gone, say, its nodes are deleted
// each for itself.
func (s *Session) RemoveAll(session int64, paths []string) []*Removal {
	all := make([]*Removal, 0, len(paths))
	for len(paths) > 0 {
		room, n := s.room(), 0
		for n < len(paths) && (room.take(paths[n]) || n == 0) {
			n++
		}
		all = append(all, s.removeTogether(session, paths[:n])...)
		paths = paths[n:]
	}
	return all
}

func (s *Session) removeTogether(session int64, paths []string) []*Removal {
	if len(paths) == 1 {
		return []*Removal{s.Remove(session, paths[0])}
	}
	all := make([]*Removal, len(paths))
	req := &wire.MultiRequest{}
	for i, path := range paths {
		all[i] = &Removal{session: s, answered: make(chan struct{})}
		req.Ops = append(req.Ops, wire.MultiOp{Op: wire.OpDelete, Request: &wire.PathVersionRequest{Path: path, Version: -1}})
	}
	each := func() {
		for i, path := range paths {
			s.remove(all[i], session, path)
		}
	}
	c, err := s.Current(session)
	if err != nil {
		each()
		return all
	}
	call := link.NewCall(wire.OpMulti, req)
	call.OnReply = func(call *link.Call) {
		var resp wire.MultiResponse
		if s.ended(call, true) != nil || call.Decode(&resp) != nil || len(resp.Results) != len(paths) || resp.Results[0].Op == wire.OpError {
			each()
			return
		}
		for _, r := range all {
			r.end(nil)
		}
	}
	if s.sendAtOnce(c, call) != nil {
		each()
	}
	return all
}

// removed takes in how the first attempt went.
func (s *Session) removed(r *Removal, session int64, path string, err error) {
	switch {
	case err == nil, errors.Is(err, zk.ErrNoNode), errors.Is(err, ErrSessionOver), errors.Is(err, ErrClosed):
		r.end(err)
		return
	case !Passing(err):
		s.refused(r, path, err)
	}
	started := s.Go(func(ctx context.Context) {
		r.end(s.insist(ctx, func(err error) { s.refused(r, path, err) }, func(ctx context.Context) error {
			c, err := s.ConnIn(ctx, session)
			if err != nil {
				return err
			}
			return s.Round(ctx, c, wire.OpDelete, true, &wire.PathVersionRequest{Path: path, Version: -1}, wire.Empty{})
		}))
	})
	if !started {
		r.end(ErrClosed)
	}
}

func (s *Session) refused(r *Removal, path string, err error) {
	r.tell(err)
	s.Report(fmt.Errorf("delete %s: %w", path, err))
}

// RemoveDoubtful sees to it that a protected ephemeral node goes whose creation
// has no known outcome. The call is waited for, then the node looked for.
func (s *Session) RemoveDoubtful(session int64, call *link.Call, parent, protection string) {
	s.Go(func(ctx context.Context) {
		select {
		case <-call.Done():
		case <-ctx.Done():
			return // the session is being closed
		}
		var lost *link.LostError
		if refused := call.Replied() && call.Code() != wire.CodeOK; refused || errors.As(call.Err(), &lost) && !lost.Sent {
			return
		}
		s.sweep(ctx, session, parent, protection)
	})
}

// Sweep deletes in the background what stands under parent with a protection.
func (s *Session) Sweep(session int64, parent, protection string) {
	s.Go(func(ctx context.Context) { s.sweep(ctx, session, parent, protection) })
}

func (s *Session) sweep(ctx context.Context, session int64, parent, protection string) {
	refused := func(err error) { s.Report(fmt.Errorf("clean up %s: %w", Below(parent, protection), err)) }
	_ = s.insist(ctx, refused, func(ctx context.Context) error {
		c, err := s.ConnIn(ctx, session)
		if err != nil {
			return err
		}
		names, err := s.Find(ctx, c, parent, protection)
		for _, name := range names {
			req := &wire.PathVersionRequest{Path: Below(parent, name), Version: -1}
			if err := s.Round(ctx, c, wire.OpDelete, true, req, wire.Empty{}); err != nil && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
		}
		return err
	})
}
