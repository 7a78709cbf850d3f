package zktest

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// test is the test of a server made with Start. A verb that can miss calls its Helper, so
// that a failure names the line of the test.
func (s *Server) test() TB {
	if s.tb == nil {
		return noTest{}
	}
	return s.tb
}

// missed returns err, and fails the test of a server made with Start.
func (s *Server) missed(err error) error {
	s.test().Helper()
	s.test().Errorf("zktest: %v", err)
	return err
}

// noTest stands for the test of a server that has none.
type noTest struct{ TB }

func (noTest) Helper()               {}
func (noTest) Errorf(string, ...any) {}

// Stop ends the server as a crash would: it resets connections and closes the
// port. It keeps data and sessions. Sessions do not age while no member leads.
// Stopping twice is fine.
func (s *Server) Stop() error {
	s.e.running <- struct{}{}
	defer func() { <-s.e.running }()
	return s.stop()
}

func (s *Server) stop() error {
	s.e.mu.Lock()
	if s.e.closed {
		s.e.mu.Unlock()
		return ErrClosed
	}
	s.e.mu.Unlock()
	var errs []error
	for _, m := range s.members {
		errs = append(errs, m.shut())
	}
	return errors.Join(errs...)
}

// Restart starts the server again, on the same port, with its data and its
// sessions. Each session gets its full timeout. Watches are gone, and clients set
// them again, as after any lost connection. A server that runs is stopped first.
// Members of a cluster serve once they have found or elected a leader. If another
// process has taken the port, Restart waits for it for a second, and then returns
// an error for which errors.Is(err, syscall.EADDRINUSE) is true.
func (s *Server) Restart() error {
	s.e.running <- struct{}{}
	defer func() { <-s.e.running }()
	if err := s.stop(); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	if len(s.e.members) == 1 {
		s.e.electLocked() // there is nobody to wait for
	}
	s.e.seekLocked()
	return nil
}

// Reset restarts the server, or all members of a cluster, as new ones on the
// same ports: without data and sessions. Rules and limits stay.
func (s *Server) Reset() error {
	e := s.e
	e.running <- struct{}{}
	defer func() { <-e.running }()
	all := &Server{e: e, members: e.members}
	if err := all.stop(); err != nil {
		return err
	}
	e.mu.Lock()
	e.zxid, e.last, e.epoch = 0, 0, 0
	clear(e.sessions.byID)
	clear(e.requests)
	e.log = nil
	for _, m := range e.members {
		m.data, m.applied = e.newTree(), 0
	}
	e.mu.Unlock()
	if err := all.open(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.electLocked()
	return nil
}

func (s *Server) open() error {
	for _, m := range s.members {
		if err := m.openAgain(); err != nil {
			return fmt.Errorf("zktest: %w", err)
		}
	}
	return nil
}

// portWait is how long a server waits for its port, which another process may have taken
// for a short connection of its own while the server was stopped.
const portWait = time.Second

func (m *member) openAgain() error {
	for until := time.Now().Add(portWait); ; <-time.After(10 * time.Millisecond) {
		if err := m.open(); !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(until) {
			return err
		}
	}
}

// ExpireSession ends a session as its timeout would, and returns when its
// ephemeral nodes are gone. It returns ErrNoSession if there is none.
func (s *Server) ExpireSession(id int64) error {
	s.test().Helper()
	s.e.mu.Lock()
	err := ErrNoSession
	if s.e.sessions.byID[id] != nil {
		_, err = s.e.ownLocked(wire.OpCloseSession, tree.Caller{Session: id}, nil)
	}
	s.e.mu.Unlock()
	if err != nil {
		return s.missed(fmt.Errorf("expire session %#x: %w", id, err))
	}
	return nil
}

// Disconnect cuts a session's connection; the session lives on. It returns
// ErrNoSession if there is none, and does nothing to a session that has no
// connection.
func (s *Server) Disconnect(id int64) error {
	s.test().Helper()
	s.e.mu.Lock()
	session := s.e.sessions.byID[id]
	var conns []*conn
	if session != nil && session.conn != nil {
		conns = append(conns, session.conn)
		session.conn.cutLocked()
	}
	s.e.mu.Unlock()
	resetAll(conns)
	if session == nil {
		return s.missed(fmt.Errorf("disconnect session %#x: %w", id, ErrNoSession))
	}
	return nil
}

// DisconnectAll cuts every connection; the sessions live on.
func (s *Server) DisconnectAll() {
	s.e.mu.Lock()
	var conns []*conn
	for _, m := range s.members {
		conns = append(conns, m.cutAllLocked()...)
	}
	s.e.mu.Unlock()
	resetAll(conns)
}

// Refuse turns new connections away until Accept.
func (s *Server) Refuse() { s.setRefuses(true) }

// Accept ends what Refuse began.
func (s *Server) Accept() { s.setRefuses(false) }

func (s *Server) setRefuses(refuses bool) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	for _, m := range s.members {
		m.refuses = refuses
	}
}

// Freeze makes the server stop answering, until Thaw. Connections stay open, and
// new ones are still accepted. Sessions age and expire. After Freeze has returned,
// the server applies no requests until Thaw. Connections keep what clients send
// meanwhile.
func (s *Server) Freeze() {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	for _, m := range s.members {
		if m.thaw == nil && !m.down {
			m.thaw = make(chan struct{})
		}
	}
}

// Thaw ends what Freeze began.
func (s *Server) Thaw() {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	for _, m := range s.members {
		m.thawLocked()
	}
	for _, m := range s.members {
		switch {
		case !m.late:
		case s.e.cfg.latePing > 0:
			m.overdue.set(s.e.cfg.latePing, m.askLate)
		default: // it pings as soon as it can, before it goes on with requests
			m.late = false
			m.askLocked(time.Now(), time.Duration(s.e.cfg.syncLimit)*s.e.cfg.tick)
		}
	}
	s.e.changedLocked()
}

// changedLocked lets the members act on a change, as far as they can know of
// it.
func (e *ensemble) changedLocked() {
	for _, m := range e.members {
		e.noticeLocked(m)
	}
	e.flowLocked()
	e.seekLocked()
	e.wakeWaitersLocked()
}

func (m *member) thawLocked() {
	if m.thaw != nil {
		close(m.thaw)
		m.thaw = nil
	}
}

// SetLatency changes Latency for bytes that are sent from now on. It has no
// effect over TCP.
func (s *Server) SetLatency(d time.Duration) { s.e.latency.Store(int64(d)) }

// SetSequence presets the counter of a parent: its next sequential child gets
// the number next.
func (s *Server) SetSequence(parent string, next int32) error {
	s.test().Helper()
	s.e.mu.Lock()
	out, err := s.e.ownLocked(tree.OpSetSequence, tree.Caller{}, &tree.SetSequenceRequest{Path: parent, Next: next})
	s.e.mu.Unlock()
	if err == nil && out.Result.Op == wire.OpError {
		err = errors.New(out.Result.Code.String())
	}
	if err != nil {
		return s.missed(fmt.Errorf("set sequence of %s: %w", parent, err))
	}
	return nil
}
