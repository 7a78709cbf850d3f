package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/internal/session/watch"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/transport/batch"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Requests go to the connection that AwaitConn waits for, in connection.go.

// admit waits for slots in the window and refuses requests for which servers would cut
// the connection. The last call gives the slots of all back.
func (s *Session) admit(ctx context.Context, c *transport.Conn, calls ...*transport.Call) error {
	s.random.Stagger(calls[0].Frame())
	for _, call := range calls {
		if err := tooLarge(call, s.cfg.Transport.MaxRequest); err != nil {
			return err
		}
	}
	err := s.vet(ctx, c, calls...)
	if err != nil || s.window.free(calls...) {
		return err
	}
	granted := make(chan struct{})
	slots := s.window.ask(func() { close(granted) }, calls...)
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
		err = s.contextEnd(ctx)
	case <-s.life.Done():
		err = ErrClosed
	}
	s.window.giveUp(slots)
	calls[len(calls)-1].Discard() // the turn, and slots that were granted meanwhile
	return err
}

// queued is the error with which calls are not sent, whose last one is given.
func queued(last *transport.Call, err error) error {
	if err == nil {
		return nil
	}
	last.Discard()
	return lostError(err, false)
}

// SendInTurn sends a call without blocking: if others wait for slots, it leaves in its turn.
// After an error it will not leave. If it cannot be sent in its turn, it ends with a
// *transport.LostError. With deletes, the path of the one node that it deletes, it may leave
// together with those of others, see package batch.
func SendInTurn(s *Session, c *transport.Conn, call *transport.Call, deletes string) error {
	if err := s.free(call); err != nil {
		return err
	}
	if s.window.free(call) {
		return queued(call, sendOrJoin(c, call, deletes))
	}
	s.window.ask(func() {
		var lost *transport.LostError
		if errors.As(sendOrJoin(c, call, deletes), &lost) {
			call.Abandon(lost.Cause)
		}
	}, call)
	return nil
}

func sendOrJoin(c *transport.Conn, call *transport.Call, deletes string) error {
	if deletes == "" {
		return c.Send(call)
	}
	return batch.Delete(c, watch.Above(deletes), call)
}

// Send queues calls to leave c back to back. After an error none will. For more
// than a few there are SendAll and Each.
func (s *Session) Send(ctx context.Context, c *transport.Conn, calls ...*transport.Call) error {
	if err := s.admit(ctx, c, calls...); err != nil {
		return err
	}
	return queued(calls[len(calls)-1], c.Send(calls...))
}

// CreateJointly sends a creation of a node below parent, and the list of the parent's
// children behind it. With makeParent the parent may be made in the same transaction. Each call
// ends for itself. After an error none was sent.
func CreateJointly(ctx context.Context, core Core, c *transport.Conn, parent string, makeParent bool, create, list *transport.Call) error {
	s := core.Session()
	if create.Size() > batch.MostSize || s.free(create, list) != nil {
		return s.Send(ctx, c, create, list)
	}
	if err := s.admit(ctx, c, create, list); err != nil {
		return err
	}
	var makes func() wire.MultiOp
	if makeParent {
		makes = func() wire.MultiOp { return core.Parent(parent) }
	}
	return queued(list, batch.Create(c, parent, makes, create, list))
}

// AwaitLast waits until the last of several calls that were sent together has ended, and so
// all have, or until ctx or the session has ended. Await then says how each went. To wait
// for them one by one would wake the goroutine for each.
func (s *Session) AwaitLast(ctx context.Context, last *transport.Call) {
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
	switch {
	case call.Err() == nil && call.Code() == wire.CodeOK:
		return nil
	case call.Replied():
		op, path := call.Refused()
		err := s.Refusal(op, path, call.Code())
		if err == nil && call.Err() != nil {
			err = Unreadable(write, fmt.Errorf("%w: %w", ErrReplyTooLarge, call.Err()))
		}
		return err
	case s.life.Err() != nil:
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
	return Unreadable(write, call.Decode(resp))
}

// Unreadable is what to say of a reply that has come and cannot be read, nil for nil. What
// has become of a write is not known then: what it says of a transaction stands in the
// results.
func Unreadable(write bool, err error) error {
	if write && err != nil {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}
