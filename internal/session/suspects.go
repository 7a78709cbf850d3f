package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// ErrEndsConnection reports a request at which the servers end the connection each time.
var ErrEndsConnection = errors.New("the servers end the connection at this request")

// endsConnectionError says at which.
type endsConnectionError struct {
	op   wire.Op
	size int
}

// Error implements error.
func (e *endsConnectionError) Error() string {
	return fmt.Sprintf("%v: they do not know %v, or do not take %d bytes", ErrEndsConnection, e.op, e.size)
}

// Is matches ErrEndsConnection, and ErrUnsupported if the size cannot be the reason.
func (e *endsConnectionError) Is(target error) bool {
	return target == ErrEndsConnection || target == ErrUnsupported && transport.SurelyTaken(wire.OpExists, e.size)
}

// Lacks is whether the servers have been found not to know an operation.
func (s *Session) Lacks(op wire.Op) bool { return s.transport.Suspects.Lacks(op) }

// vet refuses calls at which the servers end the connection each time. If that is only
// suspected of one, it waits for the turn to send them by themselves, which the last call
// gives back when it ends. Then it waits for an answer on the connection, which shows that
// this works.
func (s *Session) vet(ctx context.Context, c *transport.Conn, calls ...*transport.Call) (err error) {
	suspects := s.transport.Suspects
	verdict, of := suspects.Judge(calls...)
	if verdict == transport.Alone {
		select {
		case suspects.Turn() <- struct{}{}:
		case <-ctx.Done():
			return s.contextEnd(ctx)
		case <-s.life.Done():
			return ErrClosed
		}
		// The one before may have told.
		if verdict, of = suspects.Judge(calls...); verdict == transport.Alone {
			if err = s.probe(ctx, c); err == nil {
				transport.SendAlone(suspects.Turn(), calls...)
				return nil
			}
		}
		<-suspects.Turn()
	}
	if verdict == transport.Guilty {
		return &endsConnectionError{of.Op(), of.Size()}
	}
	return err
}

// probe waits for the answer to a request that any server answers. It is a write that changes
// nothing: while the quorum comes and goes, servers answer reads and end the connection at every
// write, whatever its size.
func (s *Session) probe(ctx context.Context, c *transport.Conn) error {
	check := wire.MultiOp{Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/", Version: -1}}
	call := transport.NewCall(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{check}})
	if err := c.Send(call); err != nil {
		return lostError(err, false)
	}
	select {
	case <-call.Done():
		if call.Err() != nil {
			return lostError(call.Err(), false)
		}
		return nil
	case <-ctx.Done():
		return s.contextEnd(ctx)
	case <-s.life.Done():
		return ErrClosed
	}
}

// free is whether calls may be sent that nobody waits for. The largest of them may be
// under suspicion if it keeps to the limit of those for which several will do.
func (s *Session) free(calls ...*transport.Call) error {
	suspects := s.transport.Suspects
	verdict, of := suspects.Judge(calls...)
	if verdict == transport.Guilty || verdict == transport.Alone && suspects.Limit(of.Op(), of.Size()) < of.Size() {
		return fmt.Errorf("%w: %v may end the connection", ErrNotConnected, of.Op())
	}
	return nil
}
