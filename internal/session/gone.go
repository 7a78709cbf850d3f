package session

import (
	"errors"
	"sync/atomic"

	"github.com/paddock-zk/paddock/internal/transport"
)

// ErrNodeDeleted reports a node of ours that was deleted while its session lived.
var ErrNodeDeleted = errors.New("node deleted")

// GoneError is why a node of ours is gone. The client may learn the reason only later. A
// server that ends a session deletes its nodes first, and tells of each node before it
// tells of the session. Until the client knows whether the session lives, the error
// matches neither ErrNodeDeleted nor zk.ErrSessionExpired. It learns that within a round
// trip, or when it finds a server again. If it gives up the session before that, or is
// closed, it never does.
type GoneError struct {
	reason atomic.Pointer[error]
	then   []func() // to be called once it is known; the session's mu guards it
}

// Error implements error.
func (e *GoneError) Error() string {
	if reason := e.Unwrap(); reason != nil {
		return reason.Error()
	}
	return "node gone: deleted, or its session has expired"
}

// Unwrap gives the reason, nil while it is not known.
func (e *GoneError) Unwrap() error {
	if reason := e.reason.Load(); reason != nil {
		return *reason
	}
	return nil
}

// gone has the nodes of the present session that are gone for a reason not known yet. The
// session's mu guards it.
type gone struct {
	waiting []*GoneError
	asking  bool // a request that will tell is on its way
}

// add returns an error that is settled with the others.
func (g *gone) add() *GoneError {
	e := new(GoneError)
	g.waiting = append(g.waiting, e)
	return e
}

// explain says why all of them are gone. The caller passes what it returns to Aside.
func (g *gone) explain(reason error) (then []func()) {
	for _, e := range g.waiting {
		e.reason.Store(&reason)
		then = append(then, e.then...)
	}
	*g = gone{}
	return then
}

// explainLocked tells why nodes are gone, also those who wait for it.
func (s *Session) explainLocked(reason error) {
	for _, fn := range s.gone.explain(reason) {
		s.Aside(fn)
	}
}

// WhenExplained calls fn in another goroutine once it is known why a node of ours is gone,
// if that ever comes to light.
func (s *Session) WhenExplained(e *GoneError, fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Unwrap() == nil {
		e.then = append(e.then, fn)
	} else {
		s.Aside(fn)
	}
}

// inquire finds out why nodes are gone, by a write that changes nothing. A server
// tells in the order of what it has applied, and the leader takes in no write of a
// session that it has ended. So the session lives if a committed write is answered
// after the news that a node is gone: see events.Acked. If the connection ends
// first, the next one tells. If the servers refuse, the next write does.
func (s *Session) inquire() {
	s.mu.Lock()
	c := s.conn
	ask := c != nil && !c.ReadOnly() && len(s.gone.waiting) > 0 && !s.gone.asking
	s.gone.asking = s.gone.asking || ask
	s.mu.Unlock()
	if !ask {
		return
	}
	call := Barrier("/")
	call.OnReply = func(*transport.Call) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conn == c {
			s.gone.asking = false
		}
	}
	_ = c.Send(call) // if the connection is gone, the next one tells
}
