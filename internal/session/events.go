package session

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/session/lease"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/listeners"
)

// hexID is a session's id as servers and their tools write it.
func hexID(id int64) string { return fmt.Sprintf("%#x", uint64(id)) }

// events is the session as the transport's handler.
type events struct{ *Session }

// Up begins a connection: of the session that there was, or of a new one.
func (s events) Up(c *transport.Conn) {
	s.mu.Lock()
	if s.closed || s.givenUp == c.SessionID() { // that came before the transport knew
		s.mu.Unlock()
		return
	}
	old, fresh := s.id, s.id != c.SessionID()
	s.mu.Unlock()
	if fresh && old != 0 {
		s.lose(zk.ErrSessionExpired)
	}

	// Before anybody can use the connection: what is set up again comes first.
	s.watches.Begin(c, s.transport.LastZxid())

	s.mu.Lock()
	if !fresh && (s.id != c.SessionID() || s.overdueLocked(s.clock.Now())) {
		// It was lost in the meantime, or is now. The connection must not be used.
		s.mu.Unlock()
		s.lose(ErrNotConnected)
		return
	}
	s.conn, s.id, s.failure = c, c.SessionID(), nil
	s.checks, s.warned = lease.Backoff{}, false
	out := s.outage
	s.outage = outage{}
	if fresh {
		s.overdue = false
	}
	s.explainLocked(ErrNodeDeleted) // those of this session, which lives
	terms := lease.Terms{Rule: s.cfg.Lease, Timeout: c.Timeout(), Tick: s.cfg.ServerTick}
	now := s.clock.Now()
	s.lease.Begin(terms, c.CreatedAt(), now, fresh)
	s.window.begin(terms.Timeout, now)
	s.setStateLocked(s.upStateLocked(c))
	s.wakeWaitersLocked()
	s.wakeLocked()
	s.mu.Unlock()
	s.window.wake()
	level, fields := zap.InfoLevel, []zap.Field{
		zap.String("server", c.Addr()), zap.String("session", hexID(c.SessionID())),
		zap.Duration("timeout", c.Timeout()), zap.Bool("read_only", c.ReadOnly()), zap.Bool("new_session", fresh),
	}
	if !out.toldAt.IsZero() { // whoever was told of the outage is told of its end
		level, fields = zap.WarnLevel, append(fields, zap.Duration("not_connected_for", s.clock.Now().Sub(out.since)))
	}
	s.log.Log(level, "connected", fields...)
	if c.Timeout() < lease.LeastTimeout {
		s.log.Warn("session timeout is too short for locks, which are refused",
			zap.Duration("granted", c.Timeout()), zap.Duration("least", lease.LeastTimeout))
	}
}

// Acked extends the session lease, unless it had ended.
func (s events) Acked(c *transport.Conn, a transport.Ack) {
	s.window.answered(a)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c || s.overdueLocked(a.Replied) {
		return
	}
	if a.Write && len(s.gone.waiting) > 0 {
		s.explainLocked(ErrNodeDeleted)
	}
	// A server without a majority times no session, so no tracked node may rely on its
	// answer.
	if c.ReadOnly() && s.tracked.len() > 0 {
		return
	}
	if s.lease.Replied(reply(a)) && s.useLocked() != lease.Unused {
		s.wakeLocked() // the next renewal can be planned
	}
}

// reply is what an Ack says of the session lease.
func reply(a transport.Ack) lease.Reply {
	r := lease.Reply{Sent: a.Sent, Received: a.Replied}
	switch {
	case a.Write:
		r.Evidence = lease.Confirmation
	case a.Led:
		r.Evidence = lease.Voucher
	}
	return r
}

// Event passes an event to the watches.
func (s events) Event(_ *transport.Conn, ev wire.WatcherEvent, zxid int64) { s.watches.Fire(ev, zxid) }

// Down makes everything uncertain.
func (s events) Down(c *transport.Conn, err error) {
	s.watches.Down(err, s.transport.LastZxid())
	s.mu.Lock()
	if s.conn != c {
		s.mu.Unlock()
		return
	}
	refused := errors.Is(err, transport.ErrAuthFailed)
	failure := err
	if refused {
		failure = fmt.Errorf("%w: %s: %w", zk.ErrAuthFailed, c.Addr(), err)
	}
	s.conn, s.failure, s.lastFailure, s.outage.since = nil, failure, failure, s.clock.Now()
	var changes []change
	if !s.closed && s.id != 0 {
		changes = s.makeUncertainLocked()
		s.setStateLocked(listeners.Suspended)
	}
	s.wakeWaitersLocked()
	s.wakeLocked()
	closed := s.closed
	s.mu.Unlock()
	notifyOwners(changes)
	if closed {
		return
	}
	s.log.Info("connection lost", zap.String("server", c.Addr()), zap.Error(err))
	if refused {
		s.errors.Publish(failure)
	}
}

// Failed remembers why there is no connection.
func (s events) Failed(server string, err error) {
	now := s.clock.Now()
	s.mu.Lock()
	s.failure = fmt.Errorf("%s: %w", server, err)
	refused := errors.Is(err, transport.ErrAuthFailed)
	if refused {
		s.failure = fmt.Errorf("%w: %w", zk.ErrAuthFailed, s.failure)
		s.wakeWaitersLocked()
	}
	s.lastFailure = s.failure
	failure, closed := s.failure, s.closed
	lasts, warn := s.outage.failed(now, refused)
	tries := s.outage.tries
	s.mu.Unlock()
	if closed {
		return
	}
	if warn {
		s.log.Warn("not connected", zap.Error(failure), zap.Duration("for", lasts), zap.Int("attempts", tries))
	} else {
		s.log.Debug("no connection", zap.Error(failure))
	}
	if refused {
		s.errors.Publish(failure)
	}
}

// Expired ends the session.
func (s events) Expired(session int64) {
	s.mu.Lock()
	ours := session != 0 && s.id == session
	s.mu.Unlock()
	if ours {
		s.lose(zk.ErrSessionExpired)
	}
	s.mu.Lock()
	if s.givenUp == session {
		s.givenUp = 0 // no connection comes for it any more, and other servers may give its id to the next one
	}
	s.mu.Unlock()
}
