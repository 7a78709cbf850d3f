package zktest

import (
	"bytes"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// handshake opens a session, or takes one up again.
//
// Source: ZooKeeper ZooKeeperServer.processConnectRequest, reopenSession.
func (c *conn) handshake(frame []byte) error {
	var req wire.ConnectRequest
	d := wire.NewDecoder(frame)
	req.Decode(d)
	if d.Err() != nil {
		return d.Err()
	}
	c.claim(req.SessionID)
	v, err := c.judge(opConnect, nil, req.SessionID)
	if err != nil {
		return err
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.m.e.mu.Unlock()
	c.m.e.requests[opConnect]++
	c.receivedLocked(4+len(frame), "SESS")
	c.sayLocked("> connect", &req)
	keeper := c.m.e.cfg.keeper != nil
	c.readOnlyByte = req.HasReadOnly && !keeper
	c.addCertificateLocked()
	c.mute = v.cut || v.drop
	if v.fail {
		c.turnAwayLocked()
		return errOver
	}
	if !c.m.servesLocked() {
		if keeper {
			c.rejectLocked()
		}
		return errOver
	}
	if req.LastZxidSeen > c.m.applied && !keeper {
		// The client has seen a later state than this server has; another may do.
		return errOver
	}
	timeout := c.m.e.negotiate(req.Timeout)
	switch {
	case c.m.role == roleReadOnly:
		return c.readOnlyLocked(&req, timeout)
	case req.SessionID == 0, keeper: // which takes up none again
		c.m.e.openSessionLocked(c, timeout)
	case !c.resumeLocked(req.SessionID, req.Password, timeout):
		c.turnAwayLocked()
		return errOver
	}
	if v.cut {
		return errOver
	}
	return c.settle(0)
}

// claim notes which session the client asks for.
func (c *conn) claim(id int64) {
	c.m.e.mu.Lock()
	defer c.m.e.mu.Unlock()
	c.claimed = id
}

// readOnlyLocked opens a session on a member without a leader. Nobody else
// knows of it, and it ends with its connection. Sessions that others know
// cannot come here.
//
// Source: ZooKeeper ZooKeeperServer.processConnectRequest with local sessions.
func (c *conn) readOnlyLocked(req *wire.ConnectRequest, timeout time.Duration) error {
	if !req.ReadOnly || c.m.e.sessions.byID[req.SessionID] != nil {
		return errOver
	}
	if req.SessionID != 0 {
		c.turnAwayLocked()
		return errOver
	}
	c.attachLocked(c.m.e.newSessionLocked(c, timeout))
	c.welcomeLocked(true)
	return nil
}

// resumeLocked asks the leader to take up a session. An older connection of
// the session is closed, even if the password turns out to be wrong, as in ZooKeeper.
func (c *conn) resumeLocked(id int64, password []byte, timeout time.Duration) bool {
	if old := c.m.attached[id]; old != nil {
		old.finishLocked()
	}
	if !bytes.Equal(password, c.m.e.password(id)) {
		return false
	}
	c.proposeLocked(proposal{
		to: reply{conn: c}, who: tree.Caller{Session: id}, op: opRenew, session: &session{timeout: timeout},
	})
	return true
}

// attachLocked makes the connection the one that serves a session here.
func (c *conn) attachLocked(s *session) {
	if c.isOverLocked() {
		return
	}
	c.session = s
	c.m.attached[s.id] = c
}

// welcomeLocked tells the client about its session.
func (c *conn) welcomeLocked(readOnly bool) {
	if c.mute {
		return
	}
	c.sendLocked(&wire.ConnectResponse{
		Timeout:     int32(c.session.timeout / time.Millisecond),
		SessionID:   c.session.id,
		Password:    c.m.e.password(c.session.id),
		ReadOnly:    readOnly,
		HasReadOnly: c.readOnlyByte,
	})
}

// turnAwayLocked tells the client that its session is over.
func (c *conn) turnAwayLocked() {
	c.sendLocked(&wire.ConnectResponse{
		Password: make([]byte, 16), ReadOnly: c.m.role == roleReadOnly, HasReadOnly: c.readOnlyByte,
	})
}
