package transport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/paddock-zk/paddock/internal/wire"
)

// ErrNeedsIdentity reports a server that requires SASL, or another scheme that
// enforce.auth.schemes names, and has answered a request with its refusal.
var ErrNeedsIdentity = fmt.Errorf("%w: the server requires SASL of every client: set Config.SASL, or another identity that its enforce.auth.schemes names", errNotProven)

// errNotProven is ErrAuthFailed for a proof by SASL, also one that was not tried.
var errNotProven = fmt.Errorf("%w", ErrAuthFailed)

// SASL is how the client proves itself on each connection.
type SASL struct {
	Mechanism string
	User      func() string // "" if it is not known
	// Begin is called before dialing. It ends with its context.
	Begin func(ctx context.Context, host, addr string) (Step, error)
}

// Step takes what a server has said, first nothing, and returns what to answer, nil for
// nothing, and whether that was all.
type Step func(challenge []byte) (answer []byte, done bool, err error)

const (
	// mostSteps is more than any mechanism takes.
	mostSteps = 10
	// mostUnproven is how many connections in a row may end at the first request of SASL, on
	// any server, before that is a refusal. A server that dies does so once.
	mostUnproven = 3
)

// identity is who an access list would name.
func (s *SASL) identity() string {
	if user := s.User(); user != "" {
		return "sasl:" + user
	}
	return "sasl"
}

// refused is a refusal of the proof. What a mechanism failed with is the user's, as what a
// dialer failed with.
func (s *SASL) refused(format string, args ...any) error {
	who := s.Mechanism
	if user := s.User(); user != "" {
		who += fmt.Sprintf(" as %q", user)
	}
	return fmt.Errorf("%w: %s: %w", errNotProven, who, fmt.Errorf(format, args...))
}

// beginSASL asks the mechanism before a server is dialed: a ticket may take its time, for
// which no session should pay.
func (l *Transport) beginSASL(t target) (Step, error) {
	s := l.cfg.SASL
	if s == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(l.life, l.cfg.ConnectTimeout)
	defer cancel()
	host, _, err := net.SplitHostPort(t.server)
	if err != nil {
		host = t.server
	}
	step, err := s.Begin(ctx, host, t.addr)
	var network net.Error
	var file *fs.PathError // whose error number is a net.Error, too
	switch {
	case err == nil:
		return step, nil
	case ctx.Err() != nil, errors.As(err, &network) && !errors.As(err, &file):
		return nil, fmt.Errorf("SASL: %w", networkError{inTime(ctx, err)})
	}
	return nil, s.refused("%w", networkError{err})
}

// prove is the exchange of SASL, before anything else is said in the session. A session
// that is only to be closed needs it, too. A server without SASL answers the first token
// with none. The mechanisms that ZooKeeper has take two at least, so that tells it. A
// ClickHouse Keeper ends the connection at the first token, as a server that dies does.
func (c *Conn) prove() error {
	step, s := c.step, c.transport.cfg.SASL
	if step == nil {
		return nil
	}
	c.step = nil // it is for this connection, once
	var challenge []byte
	for n := range mostSteps {
		answer, done, err := step(challenge)
		switch {
		case err != nil:
			return s.refused("%w", networkError{err})
		case done && answer == nil:
			return nil
		case answer == nil:
			return s.refused("step %d has no answer, and is not the last", n+1)
		}
		xid := c.transport.nextXid()
		c.post(&wire.RequestHeader{Xid: xid, Op: wire.OpSASL}, &wire.SASLRequest{Token: answer})
		h, body, err := c.answerBody(xid)
		switch {
		case err == nil:
			c.transport.unproven.Store(0)
		case n > 0 || !endedByServer(err):
			return fmt.Errorf("SASL: %w", err)
		case c.transport.unproven.Add(1) < mostUnproven:
			return fmt.Errorf("SASL: ended by the server at the first request, as by one without SASL such as ClickHouse Keeper: %w", err)
		default:
			return s.refused("the servers seem to have no SASL, as ClickHouse Keeper: %d connections in a row or more have ended at its first request: %w", mostUnproven, err)
		}
		var r wire.SASLResponse
		d := wire.NewDecoder(body)
		switch r.Decode(d); {
		case h.Code != wire.CodeOK:
			return s.refused("the server refuses it (%v): unknown user, wrong password or ticket, or a user that the server's JAAS configuration lacks", h.Code)
		case d.Err() != nil:
			return fmt.Errorf("%w: SASL: %w", ErrProtocol, d.Err())
		case r.Token == nil && n == 0:
			return s.refused("the server has no SASL: it needs authProvider.sasl and a section Server in its JAAS configuration. Without Config.SASL this client would be nobody there")
		case done:
			return nil
		}
		challenge = r.Token
	}
	return s.refused("no end after %d steps", mostSteps)
}
