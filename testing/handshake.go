package zktest

import (
	"bytes"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
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
	v, err := c.judge(opConnect, nil, req.SessionID)
	if err != nil {
		return err
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.m.e.mu.Unlock()
	c.m.e.requests[opConnect]++
	c.readOnlyByte = req.HasReadOnly
	c.mute = v.cut
	if v.fail {
		c.turnAwayLocked()
		return errOver
	}
	if req.LastZxidSeen > c.m.applied {
		// The client has seen a later state than this server has; another may do.
		return errOver
	}
	timeout := c.m.e.negotiate(req.Timeout)
	if req.SessionID == 0 {
		c.m.e.openSessionLocked(c, timeout)
	} else if !c.resumeLocked(req.SessionID, req.Password, timeout) {
		c.turnAwayLocked()
		return errOver
	}
	if v.cut {
		return errOver
	}
	return nil
}

// resumeLocked takes up a session. An older connection of the session is
// closed, even if the password turns out to be wrong, as in ZooKeeper.
func (c *conn) resumeLocked(id int64, password []byte, timeout time.Duration) bool {
	e := c.m.e
	s := e.sessions.byID[id]
	if s != nil && s.conn != nil {
		s.conn.finishLocked()
	}
	if s == nil || !bytes.Equal(password, e.password(id)) {
		return false
	}
	s.conn, c.session = c, s
	s.timeout = timeout
	e.touchLocked(s)
	c.welcomeLocked()
	e.wakeWaitersLocked()
	return true
}

// welcomeLocked tells the client about its session.
func (c *conn) welcomeLocked() {
	if c.mute {
		return
	}
	c.sendLocked(&wire.ConnectResponse{
		Timeout:     int32(c.session.timeout / time.Millisecond),
		SessionID:   c.session.id,
		Password:    c.m.e.password(c.session.id),
		HasReadOnly: c.readOnlyByte,
	})
}

// turnAwayLocked tells the client that its session is over.
func (c *conn) turnAwayLocked() {
	c.sendLocked(&wire.ConnectResponse{Password: make([]byte, 16), HasReadOnly: c.readOnlyByte})
}
