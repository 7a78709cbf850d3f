package zktest

import "fmt"

// Direction is a way that bytes take.
type Direction int

// The directions of a connection.
const (
	FromClient Direction = 1 << iota
	ToClient
	BothWays = FromClient | ToClient
)

// Stall holds back what the connections of a session carry one way or both,
// until Unstall. Connections that the session opens later are held as well.
// Bytes wait, as in a network that loses packets, and neither side sees a
// connection end. Session 0 stands for all sessions. A session ages while its
// requests are held.
func (s *Server) Stall(session int64, d Direction) {
	s.setStall(session, func(old Direction) Direction { return old | d })
}

// Unstall ends what Stall began for that session, or for all sessions.
func (s *Server) Unstall(session int64) {
	s.setStall(session, func(Direction) Direction { return 0 })
}

func (s *Server) setStall(session int64, next func(Direction) Direction) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	for _, m := range s.members {
		if m.stalls == nil {
			m.stalls = make(map[int64]Direction)
		}
		m.stalls[session] = next(m.stalls[session])
		if m.stalls[session] == 0 {
			delete(m.stalls, session)
		}
		if m.restalled != nil {
			close(m.restalled) // all look again
			m.restalled = nil
		}
	}
}

// heldLocked returns nil if bytes may pass. Otherwise it returns a channel that
// is closed when the caller should look again.
func (c *conn) heldLocked(d Direction) <-chan struct{} {
	m := c.m
	if m.thaw != nil {
		return m.thaw
	}
	if len(m.stalls) == 0 || (m.stalls[0]|m.stalls[c.claimedLocked()])&d == 0 {
		return nil
	}
	if m.restalled == nil {
		m.restalled = make(chan struct{})
	}
	return m.restalled
}

// claimedLocked is the session that the client has or asks for; -1 is none.
func (c *conn) claimedLocked() int64 {
	switch {
	case c.session != nil:
		return c.session.id
	case c.claimed != 0:
		return c.claimed
	}
	return -1
}

// String names the direction.
func (d Direction) String() string {
	switch d {
	case FromClient:
		return "from client"
	case ToClient:
		return "to client"
	case BothWays:
		return "both ways"
	}
	return fmt.Sprintf("direction %d", int(d))
}
