package transport

import (
	"bytes"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// ErrProtocol reports a server that does not speak the protocol.
var ErrProtocol = errors.New("not ZooKeeper's protocol")

// ErrAuthFailed reports credentials that the server refused.
var ErrAuthFailed = errors.New("credentials refused")

// handshake is what a connection knows before it is up.
type handshake struct {
	patience *patience
	asked    bool  // the connect request has passed
	done     bool  // requests may follow
	session  int64 // the session that was asked for, 0 for a new one
	seen     int64 // the latest state seen, as it was told
	replaced bool  // a new session was granted instead
}

// The sizes of a connect response with a password of up to 220 bytes.
const (
	leastConnectResponse = 20
	mostConnectResponse  = 256
)

// mostGranted is how long a session timeout may be that nobody asked for. It may be longer
// than what was asked, if the servers have a least one. A timeout of weeks, which only a
// broken server grants, is refused: nothing that ends with the session would end.
const mostGranted = time.Hour

// connectRequest completes go-zookeeper's connect request. It puts in the zxid that we have
// seen, since go-zookeeper counts its own replies only. It puts in the timeout that was
// configured, since go-zookeeper asks for what the last server granted. And it can wish for
// a read-only server, which go-zookeeper cannot.
func (c *Conn) connectRequest(body []byte) ([]byte, error) {
	var r wire.ConnectRequest
	d := wire.NewDecoder(body)
	if r.Decode(d); d.Err() != nil {
		return nil, fmt.Errorf("connect request: %w", d.Err())
	}
	if r.SessionID == 0 || c.transport.isAbandoned(r.SessionID) {
		// A session given up is only to be closed, by any server: one that was
		// restored from a copy, say, and is behind all that we have seen.
		c.transport.lastZxid.Store(0)
	}
	if r.SessionID == 0 {
		if err := c.transport.asks(); err != nil {
			return nil, err
		}
	}
	r.LastZxidSeen = c.transport.lastZxid.Load()
	r.Timeout = int32(c.transport.cfg.SessionTimeout.Milliseconds())
	r.ReadOnly, r.HasReadOnly = c.transport.cfg.ReadOnly, true

	c.shake.asked = true
	c.shake.session, c.shake.seen = r.SessionID, r.LastZxidSeen
	c.createdAt = c.transport.cfg.Now()
	return wire.AppendFrame(nil, &r), nil
}

// shakeHands reads the connect response, presents the credentials, and lets
// the connection go up. It returns the response for go-zookeeper, also if what
// followed it went wrong, so that the next connection continues the session
// instead of making another one.
func (c *Conn) shakeHands() ([]byte, error) {
	frame, err := c.readConnectResponse()
	switch {
	case err != nil && endedByServer(err):
		may := "it speaks TLS, does not serve yet, "
		if c.transport.cfg.TLS != nil { // ZooKeeper adds the provider by itself for secureClientPort alone
			may = "it asks clients for certificates and lacks authProvider.x509, does not serve yet, "
		}
		if seen := c.shake.seen; seen > 0 { // it says so in its own log alone
			may += fmt.Sprintf("is behind zxid %#x, which this client has seen, as with lost or restored data, ", seen)
		}
		may += "or has too many connections"
		return nil, fmt.Errorf("handshake: ended by the server before an answer (%s): %w", may, err)
	case refusesCertificate(err): // in TLS 1.3 a client's own handshake is over before the server has looked at its certificate
		return nil, fmt.Errorf("handshake: %s: %w", refusedCertificate(c.transport.shown.Load()), err)
	case err != nil:
		return nil, fmt.Errorf("handshake: %w", err)
	}
	var r wire.ConnectResponse
	d := wire.NewDecoder(frame)
	if r.Decode(d); d.Err() != nil {
		return nil, fmt.Errorf("%w: connect response: %w", ErrProtocol, d.Err())
	}
	c.forgets = len(bytes.Trim(r.Password, "\x00")) == 0
	switch {
	case r.SessionID == refusedSession:
		return nil, errNotActive
	case r.SessionID == 0 || r.Timeout <= 0:
		return c.expired(), nil
	case c.shake.session != 0 && c.shake.session != r.SessionID:
		return c.replaced(), nil
	case c.transport.isAbandoned(r.SessionID):
		c.transport.sessionBegun(r.SessionID) // for Close, if it was made just now
		if err := c.closeSession(); err != nil {
			return nil, fmt.Errorf("closing abandoned session: %w", err)
		}
		return c.expired(), nil
	}

	timeout := time.Duration(r.Timeout) * time.Millisecond
	if asked := c.transport.cfg.SessionTimeout; timeout > max(asked, mostGranted) {
		return nil, fmt.Errorf("%w: session timeout of %v granted, %v asked for", ErrProtocol, timeout, asked)
	}
	c.session, c.timeout = r.SessionID, timeout
	c.readOnly = r.ReadOnly
	// As in every client: two thirds, so that a third is left to find another server.
	c.silence.Store(int64(c.timeout * 2 / 3))
	c.transport.sessionBegun(r.SessionID)
	if err = c.prove(); err == nil {
		err = c.authenticate()
	}
	c.shake.done = true
	if err != nil {
		c.Kill(err)
	} else {
		c.goUp()
	}
	return wire.AppendFrame(nil, &r), nil
}

// refusedCertificate says what a server has against the certificate that it was shown, nil for
// none. Package tls shows none to a server that names other authorities.
func refusedCertificate(shown *x509.Certificate) string {
	if shown == nil {
		return "the server wants a certificate, and Config.TLS or TLSFiles has none of an authority that it trusts"
	}
	const format = time.RFC3339
	return fmt.Sprintf("the server refuses the certificate of Config.TLS or TLSFiles (%s, valid from %s to %s)",
		Subject(shown), shown.NotBefore.Format(format), shown.NotAfter.Format(format))
}

// refusesCertificate is whether the server has ended TLS for the sake of a certificate. Package
// tls has no type for what a server says.
func refusesCertificate(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate")
}

// readConnectResponse reads the first frame of a server, which may be something
// else than ZooKeeper.
func (c *Conn) readConnectResponse() ([]byte, error) {
	n, err := c.readLength()
	if err != nil {
		return nil, err
	}
	if n < leastConnectResponse || n > mostConnectResponse {
		said, _ := c.in.Peek(min(c.in.Buffered(), mostQuoted))
		if text := stranger(append(binary.BigEndian.AppendUint32(nil, uint32(n)), said...)); text != "" {
			return nil, fmt.Errorf("%w: %s", ErrProtocol, text)
		}
	}
	return c.readBody(nil, n, leastConnectResponse, mostConnectResponse)
}

// mostQuoted is how much of a server's answer is quoted.
const mostQuoted = 60

// stranger says who may have answered so, "" if there is nothing to tell it by.
func stranger(said []byte) string {
	const alert, versionMajor = 21, 3
	if said[0] == alert && said[1] == versionMajor {
		return "the server speaks TLS, and Config.TLS is nil"
	}
	line, _, _ := bytes.Cut(said, []byte("\n"))
	line = bytes.TrimSpace(line)
	if len(line) < 4 || bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return fmt.Sprintf("the server answered %q", line)
}

// expired ends the connection and returns what tells go-zookeeper to ask for a
// new session. go-zookeeper does not close the socket then, so it is done here.
func (c *Conn) expired() []byte {
	c.shake.done = true
	c.transport.sessionGone(c.shake.session, c.shake.replaced)
	c.Kill(errExpired)
	return wire.AppendFrame(nil, &wire.ConnectResponse{Password: make([]byte, 16)})
}

var errExpired = errors.New("session expired")

// refusedSession is the session in the answer of a ClickHouse Keeper without a leader.
const refusedSession = -1

var errNotActive = errors.New("handshake: the server is not active: it has no leader")

// replaced is expired for a server that has answered a renewal with a new session, as
// ClickHouse Keeper does. It cannot take up the one that was asked for, whose nodes it may
// keep for a session timeout. The new session is closed here, as nobody has asked for it.
//
// Source: ClickHouse KeeperTCPHandler.runImpl.
func (c *Conn) replaced() []byte {
	_ = c.closeSession() // else it ends by itself
	c.shake.replaced = true
	return c.expired()
}

// authenticate presents the credentials and waits for the answers, so that no
// request is sent without them.
func (c *Conn) authenticate() error {
	for _, a := range c.transport.cfg.Auth {
		c.post(&wire.RequestHeader{Xid: wire.XidAuth, Op: wire.OpAuth}, &wire.AuthRequest{Scheme: a.Scheme, Auth: a.Data()})
	}
	for _, a := range c.transport.cfg.Auth {
		h, err := c.answer(wire.XidAuth)
		if err != nil {
			return fmt.Errorf("%s credentials: %w", a.Scheme, err)
		}
		if h.Code != wire.CodeOK {
			return fmt.Errorf("%w: scheme %q: %v", ErrAuthFailed, a.Scheme, h.Code)
		}
	}
	return nil
}

// closeSession ends the session that this connection has just renewed.
func (c *Conn) closeSession() error {
	if err := c.prove(); err != nil {
		return err
	}
	xid := c.transport.nextXid()
	c.post(&wire.RequestHeader{Xid: xid, Op: wire.OpCloseSession}, wire.Empty{})
	h, err := c.answer(xid)
	switch {
	case err != nil && c.forgets && endedAt(err):
		return nil // see endedWithoutAnswer
	case err == nil && h.Code == wire.CodeSessionClosedNeedsSASL:
		err = ErrNeedsIdentity
	case err == nil && !isClosed(h.Code):
		err = fmt.Errorf("the server refused: %v", h.Code)
	}
	return err
}

// post queues a frame whose answer the handshake reads itself.
func (c *Conn) post(records ...wire.Record) {
	c.mu.Lock()
	c.out = append(c.out, outgoing{frame: wire.AppendFrame(nil, records...)})
	c.mu.Unlock()
	c.Wake()
}

// answer reads frames until the one with xid. What comes before it belongs to
// nobody, as nothing else was asked.
func (c *Conn) answer(xid int32) (wire.ReplyHeader, error) {
	h, _, err := c.answerBody(xid)
	return h, err
}

// answerBody is answer with what follows the header.
func (c *Conn) answerBody(xid int32) (h wire.ReplyHeader, body []byte, err error) {
	for {
		frame, err := c.readFrame(wire.ReplyHeaderLen, c.transport.cfg.MaxReply)
		if err != nil {
			return wire.ReplyHeader{}, nil, err
		}
		h.Decode(wire.NewDecoder(frame))
		if h.Xid == xid {
			return h, frame[wire.ReplyHeaderLen:], nil
		}
	}
}

func (c *Conn) goUp() {
	c.mu.Lock()
	c.up = c.err == nil && c.unwritten == nil
	up, unwritten := c.up, c.unwritten
	c.mu.Unlock()
	switch {
	case up:
		c.transport.connUp(c)
	case unwritten != nil: // else it has ended meanwhile
		c.Kill(unwritten)
	}
}
