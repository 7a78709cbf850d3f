package session

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/transport"
)

// AwaitConn waits for a connection, for writes one to a server with a majority. It
// returns early if the credentials were refused.
func (s *Session) AwaitConn(ctx context.Context, write bool) (*transport.Conn, error) {
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

// AwaitConnOf waits for a connection of one session, 0 for any. It returns ErrSessionOver as
// soon as that session has ended.
func (s *Session) AwaitConnOf(ctx context.Context, session int64) (*transport.Conn, error) {
	for {
		s.mu.Lock()
		c, id, changed, closed := s.conn, s.id, s.changed, s.closed
		s.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case session != 0 && id != session:
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

// Writable is whether a server with a majority is connected.
func (s *Session) Writable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn != nil && !s.conn.ReadOnly()
}

// ConnOf returns the connection if it is up and belongs to the session given, 0 for any.
func (s *Session) ConnOf(session int64) (*transport.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, ErrClosed
	case session != 0 && s.id != session:
		return nil, ErrSessionOver
	case s.conn == nil:
		return nil, ErrNotConnected
	}
	return s.conn, nil
}
