package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Conn waits for a connection, for writes one to a server with a majority. It
// returns early if the credentials were refused.
func (s *Session) Conn(ctx context.Context, write bool) (*transport.Conn, error) {
	for {
		s.mu.Lock()
		c, failure, changed, closed := s.conn, s.failure, s.changed, s.closed
		s.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case c != nil && (!write || !c.ReadOnly()):
			return c, nil
		case errors.Is(failure, zk.ErrAuthFailed):
			return nil, failure
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, s.contextEnd(ctx)
		}
	}
}

// ConnIn waits for a connection of one session. It returns ErrSessionOver as
// soon as that session has ended.
func (s *Session) ConnIn(ctx context.Context, session int64) (*transport.Conn, error) {
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
			return nil, s.contextEnd(ctx)
		}
	}
}

// NotConnected is ErrNotConnected with the reason, if there is one, or ErrClosed. The
// text says for how long, after the words "not connected".
func (s *Session) NotConnected(howLong string) error {
	if s.life.Err() != nil {
		return ErrClosed
	}
	s.mu.Lock()
	c, failure := s.conn, s.failure
	s.mu.Unlock()
	if c == nil && failure != nil {
		return fmt.Errorf("%w%s: %w", ErrNotConnected, howLong, failure)
	}
	return fmt.Errorf("%w%s", ErrNotConnected, howLong)
}

// Writable is whether a server with a majority is connected.
func (s *Session) Writable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn != nil && !s.conn.ReadOnly()
}

// Connected is the connection, nil without one.
func (s *Session) Connected() *transport.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

// Current returns the connection if it is up and belongs to the session given.
func (s *Session) Current(session int64) (*transport.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, ErrClosed
	case s.id != session:
		return nil, ErrSessionOver
	case s.conn == nil:
		return nil, ErrNotConnected
	}
	return s.conn, nil
}

// admit waits for slots in the window and refuses requests for which servers would cut
// the connection. The last call gives the slots of all back.
func (s *Session) admit(ctx context.Context, calls ...*transport.Call) error {
	for _, call := range calls {
		if call.Size() > s.cfg.Transport.MaxRequest {
			return fmt.Errorf("%w: %d bytes, %d are allowed", ErrTooLarge, call.Size(), s.cfg.Transport.MaxRequest)
		}
	}
	ok, err := s.window.enter(ctx, s.life.Done(), len(calls))
	switch {
	case ok:
		calls[len(calls)-1].Occupy(s.window, len(calls))
		return nil
	case err != nil:
		return s.contextEnd(ctx)
	}
	return ErrClosed
}

// SendAtOnce queues calls to leave c back to back. They take slots, and wait for none.
// After an error none will leave.
func (s *Session) SendAtOnce(c *transport.Conn, calls ...*transport.Call) error {
	last := calls[len(calls)-1]
	s.window.take(len(calls))
	last.Occupy(s.window, len(calls))
	if err := c.Send(calls...); err != nil {
		last.Discard()
		return lostError(err, false)
	}
	return nil
}

// Send queues calls to leave c back to back. After an error none will. For more
// than a few there are SendAll and Each.
func (s *Session) Send(ctx context.Context, c *transport.Conn, calls ...*transport.Call) error {
	s.random.Stagger(calls[0].Frame())
	if err := s.admit(ctx, calls...); err != nil {
		return err
	}
	if err := c.Send(calls...); err != nil {
		calls[len(calls)-1].Discard()
		return lostError(err, false)
	}
	return nil
}

// Settle waits until the last of several calls that were sent together has ended, and so
// all have, or until ctx or the session has ended. Await then says how each went. To wait
// for them one by one would wake the goroutine for each.
func (s *Session) Settle(ctx context.Context, last *transport.Call) {
	select {
	case <-last.Done():
	case <-ctx.Done():
	case <-s.life.Done():
	}
}

// Await waits until the call has ended. If ctx or the session ends first, a call that was
// not sent is taken back. One that was sent goes on by itself. The error of such a write
// matches ErrOutcomeUnknown as well.
func (s *Session) Await(ctx context.Context, c *transport.Conn, call *transport.Call, write bool) error {
	var err error
	select {
	case <-call.Done():
		return s.Ended(call, write)
	case <-ctx.Done():
		err = s.contextEnd(ctx)
	case <-s.life.Done():
		err = ErrClosed
	}
	if c.Cancel(call) || !write {
		return err
	}
	select {
	case <-call.Done(): // in the meantime
		return s.Ended(call, write)
	default:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
}

// Ended says how a call that has ended went.
func (s *Session) Ended(call *transport.Call, write bool) error {
	if call.Replied() {
		op, path := call.Refused()
		err := s.Refusal(op, path, call.Code())
		if err == nil && call.Err() != nil {
			err = fmt.Errorf("%w: %w", ErrReplyTooLarge, call.Err())
		}
		return err
	}
	if s.life.Err() != nil {
		return fmt.Errorf("%w: %w", ErrClosed, lostError(call.Err(), write))
	}
	return lostError(call.Err(), write)
}

// Round sends one request and waits for its reply, which it decodes into resp.
func (s *Session) Round(ctx context.Context, c *transport.Conn, op wire.Op, write bool, req, resp wire.Record) error {
	call := transport.NewCall(op, req)
	if err := s.Send(ctx, c, call); err != nil {
		return err
	}
	if err := s.Await(ctx, c, call, write); err != nil {
		return err
	}
	return call.Decode(resp)
}
