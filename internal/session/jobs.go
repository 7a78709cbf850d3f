package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Go runs work in the background. Its context ends when the session is closed,
// which waits for it. Go reports false if that has happened already.
func (s *Session) Go(work func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.jobs.Go(func() { work(s.life) })
	return true
}

const (
	firstAgain = 50 * time.Millisecond
	mostAgain  = 5 * time.Second
)

// Persist repeats work until it succeeds, ctx ends, or the failure is one that
// repeating cannot cure, which is returned. The pauses double up to 5 seconds.
func (s *Session) Persist(ctx context.Context, work func(ctx context.Context) error) error {
	for pause := firstAgain; ; pause = min(2*pause, mostAgain) {
		err := work(ctx)
		if err == nil || ctx.Err() != nil || !Passing(err) {
			return err
		}
		t := time.NewTimer(pause/2 + rand.N(pause/2+1))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ContextError(ctx)
		}
	}
}

// Passing is whether a failure may pass: that of a connection or of a server
// that is overwhelmed.
func Passing(err error) bool {
	var code *CodeError
	switch {
	case errors.Is(err, ErrClosed):
		return false
	case errors.Is(err, ErrNotConnected), errors.Is(err, ErrOutcomeUnknown), errors.Is(err, zk.ErrSessionMoved):
		return true
	case errors.As(err, &code):
		return passingCodes[code.Code]
	}
	return false
}

// ConnIn waits for a connection of one session. It returns ErrSessionOver as
// soon as that session has ended.
func (s *Session) ConnIn(ctx context.Context, session int64) (*link.Conn, error) {
	for {
		s.mu.Lock()
		c, id, changed, closed := s.conn, s.id, s.changed, s.closed
		s.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case id != session:
			return nil, ErrSessionOver
		case c != nil && !c.ReadOnly():
			return c, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ContextError(ctx)
		}
	}
}

// Removal is the deletion of an ephemeral node of ours, which goes on until it
// is done or the session is over.
type Removal struct {
	done chan struct{}

	mu   sync.Mutex // guards the fields below
	over bool
	err  error
	then func(error)
}

// Done is closed when the outcome is known.
func (r *Removal) Done() <-chan struct{} { return r.done }

// Err is the outcome: nil if the servers confirmed, ErrNoNode if the node had
// been gone before, ErrSessionOver if it went or will go with the session,
// ErrClosed if the session is being closed, or a refusal.
func (r *Removal) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Then calls fn with the outcome, once it is known. It must not block.
func (r *Removal) Then(fn func(error)) {
	r.mu.Lock()
	over, err := r.over, r.err
	r.then = fn
	r.mu.Unlock()
	if over {
		fn(err)
	}
}

func (r *Removal) end(err error) {
	r.mu.Lock()
	r.over, r.err = true, err
	then := r.then
	r.mu.Unlock()
	if then != nil {
		then(err)
	}
	close(r.done)
}

// Remove deletes a node that was created in the session given: at once, and in
// the background if that fails in a way that may pass. It does not block.
func (s *Session) Remove(session int64, path string) *Removal {
	r := &Removal{done: make(chan struct{})}
	c, err := s.Current(session)
	if err == nil {
		call := link.NewCall(wire.OpDelete, &wire.PathVersionRequest{Path: path, Version: -1})
		call.OnReply = func(call *link.Call) {
			if err := s.ended(call, true); err == nil || !Passing(err) {
				s.endRemoval(r, path, err)
				return
			}
			s.removeLater(r, session, path)
		}
		err = c.Send(call)
		if err == nil {
			return r
		}
		err = lostError(err, false)
	}
	if Passing(err) {
		s.removeLater(r, session, path)
	} else {
		s.endRemoval(r, path, err)
	}
	return r
}

func (s *Session) removeLater(r *Removal, session int64, path string) {
	started := s.Go(func(ctx context.Context) {
		err := s.Persist(ctx, func(ctx context.Context) error {
			c, err := s.ConnIn(ctx, session)
			if err != nil {
				return err
			}
			return s.Round(ctx, c, wire.OpDelete, true, &wire.PathVersionRequest{Path: path, Version: -1}, wire.Empty{})
		})
		if errors.Is(err, zk.ErrNoNode) {
			err = nil // the first attempt had deleted it, only its reply was lost
		}
		s.endRemoval(r, path, err)
	})
	if !started {
		s.endRemoval(r, path, ErrClosed)
	}
}

// endRemoval tells the error listeners of a node that stays.
func (s *Session) endRemoval(r *Removal, path string, err error) {
	switch {
	case err == nil, errors.Is(err, zk.ErrNoNode), errors.Is(err, ErrSessionOver), errors.Is(err, ErrClosed):
	default:
		err = fmt.Errorf("delete %s: %w", path, err)
		s.Report(err)
	}
	r.end(err)
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
		if refused := call.Err() == nil && call.Code() != wire.CodeOK; refused || errors.As(call.Err(), &lost) && !lost.Sent {
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
	err := s.Persist(ctx, func(ctx context.Context) error {
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
	switch {
	case err == nil, errors.Is(err, zk.ErrNoNode), errors.Is(err, ErrSessionOver), ctx.Err() != nil:
	default:
		s.Report(fmt.Errorf("clean up %s: %w", Below(parent, protection), err))
	}
}

// Below is the path of a node under a parent.
func Below(parent, node string) string {
	if parent == "/" {
		return "/" + node
	}
	return parent + "/" + node
}
