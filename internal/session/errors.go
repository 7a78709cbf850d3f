package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// ErrClosed reports a call on a closed client.
var ErrClosed = errors.New("client is closed")

// ErrNotConnected reports that no server could be asked, and that nothing was
// left behind.
var ErrNotConnected = errors.New("not connected")

// ErrOutcomeUnknown reports a write whose reply was lost, or cannot be read.
var ErrOutcomeUnknown = errors.New("outcome unknown")

// ErrTooLarge reports a request that is larger than servers accept.
var ErrTooLarge = errors.New("request too large")

// ErrReplyTooLarge reports a reply that is larger than we accept. The server has carried
// out the request.
var ErrReplyTooLarge = errors.New("reply larger than Config.MaxReply")

// ErrKeepsVanishing reports a node that others delete as often as it is made.
var ErrKeepsVanishing = errors.New("is deleted as often as it is made")

// ErrNilContext reports a call that was given no context.
var ErrNilContext = errors.New("context is nil")

// UnsettledError is ErrOutcomeUnknown for a transaction whose reply was lost and that
// could not be settled. It does not match a refusal that came after that, since a match
// would mean "not applied".
type UnsettledError struct {
	Why     string
	Refused error // nil for nothing
}

// Error implements error.
func (e *UnsettledError) Error() string {
	text := ErrOutcomeUnknown.Error() + ": " + e.Why
	if e.Refused != nil {
		text += ": " + e.Refused.Error()
	}
	return text
}

// Unwrap gives ErrOutcomeUnknown.
func (e *UnsettledError) Unwrap() error { return ErrOutcomeUnknown }

// ErrUnsupported reports an operation that the server does not know.
var ErrUnsupported = errors.New("operation is not supported by the server")

// CodeError is a server's refusal for which go-zookeeper has no error value.
type CodeError struct{ Code wire.Code }

// Error implements error.
func (e *CodeError) Error() string {
	if e.Code == wire.CodeUnimplemented {
		return fmt.Sprintf("server answered code %d (%v): it is older than ZooKeeper 3.6, or leaves this operation out", int32(e.Code), e.Code)
	}
	return fmt.Sprintf("server answered code %d (%v)", int32(e.Code), e.Code)
}

// Unwrap gives ErrUnsupported for an operation that the server does not know.
func (e *CodeError) Unwrap() error {
	if e.Code == wire.CodeUnimplemented {
		return ErrUnsupported
	}
	return nil
}

var codeErrors = map[wire.Code]error{
	wire.CodeBadArguments:            zk.ErrBadArguments,
	wire.CodeAPIError:                zk.ErrAPIError,
	wire.CodeNoNode:                  zk.ErrNoNode,
	wire.CodeNoAuth:                  zk.ErrNoAuth,
	wire.CodeBadVersion:              zk.ErrBadVersion,
	wire.CodeNoChildrenForEphemerals: zk.ErrNoChildrenForEphemerals,
	wire.CodeNodeExists:              zk.ErrNodeExists,
	wire.CodeNotEmpty:                zk.ErrNotEmpty,
	wire.CodeSessionExpired:          zk.ErrSessionExpired,
	wire.CodeInvalidACL:              zk.ErrInvalidACL,
	wire.CodeAuthFailed:              zk.ErrAuthFailed,
	wire.CodeSessionClosedNeedsSASL:  fmt.Errorf("%w: %w", zk.ErrAuthFailed, transport.ErrNeedsIdentity),
	wire.CodeSessionMoved:            zk.ErrSessionMoved,
	wire.CodeReconfigDisabled:        zk.ErrReconfigDisabled,
}

// Error turns a reply's code into an error, nil for success.
func Error(code wire.Code) error {
	if code == wire.CodeOK {
		return nil
	}
	if err, ok := codeErrors[code]; ok {
		return err
	}
	return &CodeError{Code: code}
}

// tooLarge refuses a request for which servers would cut the connection.
func tooLarge(call *transport.Call, most int) error {
	if call.Size() > most {
		return fmt.Errorf("%w: %d bytes, %d are allowed", ErrTooLarge, call.Size(), most)
	}
	return nil
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
	switch {
	case c == nil && failure != nil:
		return fmt.Errorf("%w%s: %w", ErrNotConnected, howLong, failure)
	case c != nil && c.ReadOnly(): // it is a write that has waited
		return fmt.Errorf("%w%s to a server that takes writes: %s is read-only, as it sees no majority of the servers", ErrNotConnected, howLong, c.Addr())
	}
	server := s.transport.Trying()
	if c != nil { // there was no time for a round trip
		server = c.Addr()
	}
	if server != "" {
		return fmt.Errorf("%w%s: %s has not answered yet", ErrNotConnected, howLong, server)
	}
	return fmt.Errorf("%w%s", ErrNotConnected, howLong)
}

// contextEnd is the end of the context of a request. It is ErrClosed if that is the
// session's own context, which work in the background uses.
func (s *Session) contextEnd(ctx context.Context) error {
	if s.life.Err() != nil {
		return ErrClosed
	}
	return contextend.Of(ctx)
}

// lostError says what the end of a connection means for a request.
func lostError(lost error, write bool) error {
	var l *transport.LostError
	if write && errors.As(lost, &l) && l.Sent {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, lost)
	}
	return fmt.Errorf("%w: %w", ErrNotConnected, lost)
}

// passingCodes are the refusals of a server that has too much to do or has lost
// its leader. Nothing was applied.
var passingCodes = map[wire.Code]bool{
	wire.CodeConnectionLoss:   true,
	wire.CodeOperationTimeout: true,
	wire.CodeRequestTimeout:   true,
	wire.CodeThrottledOp:      true,
	wire.CodeNotReadOnly:      true,
}
