// Package transport keeps one client's connection to an ensemble over go-zookeeper/zk.
// This package hides what is special about go-zookeeper.
//
// go-zookeeper keeps the session: it connects, renews the session with its id and password,
// pings, and finds another server when one is silent. Everything else goes past it. Its
// dialer gives it a connection of ours (Conn). Conn carries our own requests beside
// go-zookeeper's few, on the same socket. It takes their replies and the events out before
// go-zookeeper sees them. So a request belongs to one connection of one session and to no
// other, several leave in one write, contexts need no goroutine each, and watches are ours.
//
// A Handler is told what happens. The read-only servers' search for a better
// one is in readonly.go, the way back to a preferred one in home.go, the order of servers
// in hosts.go, the end in closestub.go.
package transport

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/transport/random"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Auth is one credential.
type Auth struct {
	Scheme string
	// Data is a function, as package fmt never looks into one. With a verb that does not
	// fit, such as %s, fmt prints also what stands behind unexported fields and pointers,
	// without asking their types.
	Data func() []byte
}

// identity is who an access list would name, or the scheme alone if the credential is
// not of a known form: it is for errors, and must not show a password.
func (a Auth) identity() string {
	if a.Scheme == "digest" {
		if user, _, ok := bytes.Cut(a.Data(), []byte(":")); ok {
			return fmt.Sprintf("digest:%s", user)
		}
	}
	return a.Scheme
}

// Identities are whose credentials the configuration has, for errors. The servers may
// know more: an address, and who a certificate is for, see Transport.Shown.
func (cfg Config) Identities() []string {
	var all []string
	if cfg.SASL != nil {
		all = append(all, cfg.SASL.identity())
	}
	for _, a := range cfg.Auth {
		all = append(all, a.identity())
	}
	return all
}

// Config says how to connect. All fields are needed, save LostAfter, LookupHost, Prefer, Auth, SASL, TLS, FreshTLS,
// ReadOnly, Now and Source.
type Config struct {
	Servers        []string // host:port
	SessionTimeout time.Duration
	ConnectTimeout time.Duration // for dialing and handshake with one server
	LostAfter      time.Duration // how long the handler keeps a session without a connection, if less than its timeout
	Dial           func(ctx context.Context, network, addr string) (net.Conn, error)
	LookupHost     func(ctx context.Context, host string) ([]string, error) // nil to dial names as they are
	Prefer         []string                                                 // patterns of hosts, see home.go
	Holding        func() time.Duration                                     // what is left until the session loses what it holds, 0 without that
	TLS            *tls.Config
	FreshTLS       func(*tls.Config) // completes that of a new connection; nil if it is complete
	SASL           *SASL             // nil for none
	Auth           []Auth
	ReadOnly       bool // accept a server without majority
	MaxReply       int  // bytes
	MaxRequest     int  // bytes; bounds what the raw connection can send
	Logger         *zap.Logger
	Now            func() time.Time   // by which Acks are told; time.Now if nil
	Random         *random.Source     // of the order of servers, and of pauses
	Source         func(*Conn) Source // of a new connection; nil for none
}

// Ack is the reply to one request, as far as it proves that the session lives.
type Ack struct {
	Sent    time.Time // before the request was written
	Replied time.Time
	Led     bool // the leader has answered it
	Write   bool // besides, a majority has logged it
	Op      wire.Op
	Size    int // bytes of the reply
}

// Handler is told what happens. The calls never overlap, come in the order of
// what they tell, and must neither block nor end a connection.
type Handler interface {
	// Up says that requests may be sent on c.
	Up(c *Conn)
	// Acked says that a reply has come on c, before its call ends.
	Acked(c *Conn, a Ack)
	// Event says that a watch has fired on c, by which transaction if the server says it,
	// else 0.
	Event(c *Conn, ev wire.WatcherEvent, zxid int64)
	// Down says that c has ended, before the calls on it do.
	Down(c *Conn, err error)
	// Failed says that a server could not be reached or did not let us in. It is
	// named as Conn.Addr does.
	Failed(server string, err error)
	// Expired says that the servers have ended the session, or have replaced it by another.
	Expired(session int64)
}

// Transport is the client's one connection after another.
//
// Lock order: mu, then a Conn's. Handlers are called with neither.
type Transport struct {
	Suspects *Suspects

	cfg      Config
	handler  Handler
	hosts    *hosts
	raw      *zk.Conn
	events   <-chan zk.Event
	life     context.Context // ends when the transport closes
	stop     context.CancelFunc
	parted   chan struct{} // closed when go-zookeeper has got its last connection
	parting  sync.Once     // closes parted
	wg       sync.WaitGroup
	lastZxid zxid
	xids     atomic.Int32                     // how many were given out
	shown    atomic.Pointer[x509.Certificate] // of the latest connection
	trying   atomic.Pointer[target]           // the latest one
	slow     atomic.Int32                     // attempts, since the last connection, that a server had begun to answer and not ended in time
	unproven atomic.Int32                     // connections that have ended at the first request of SASL since a server answered one

	mu        sync.Mutex // guards the fields below
	conn      *Conn      // the one in use, from dial to down
	up        bool
	upAt      time.Time
	session   int64 // 0 without one
	used      bool  // a connection of session was up and not refused every request, so that it may have nodes
	asking    bool  // conn has asked for a new session and has not ended its handshake
	abandoned int64 // a session that must not be continued
	closing   bool  // no session is to be continued, and none begun
	left      bool  // the servers have replaced the session that was to be closed, and may keep its nodes
	changed   chan struct{}
}

// zxid is the latest state seen, for the next connect request: go-zookeeper would only
// count the replies to its own requests.
type zxid struct{ atomic.Int64 }

func (z *zxid) raise(to int64) {
	for {
		now := z.Load()
		if to <= now || z.CompareAndSwap(now, to) {
			return
		}
	}
}

// New makes a transport that does nothing before Open. So the handler can know the
// transport before it hears anything.
func New(cfg Config, h Handler) *Transport {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Transport{Suspects: newSuspects(cfg.Logger), cfg: cfg, handler: h, hosts: newHosts(cfg), parted: make(chan struct{}), changed: make(chan struct{})}
	if cfg.LookupHost != nil {
		l.hosts.lookUp = l.lookUp
	}
	l.life, l.stop = context.WithCancel(context.Background())
	return l
}

// Open begins to connect, in the background and for as long as it takes. After
// an error the transport is of no use.
func (l *Transport) Open() (err error) {
	l.raw, l.events, err = zk.Connect([]string{placeholder}, l.cfg.SessionTimeout,
		zk.WithHostProvider(l.hosts),
		zk.WithDialer(l.dial),
		zk.WithLogger(libLog{l.cfg.Logger}),
		zk.WithLogInfo(false),
		zk.WithMaxBufferSize(l.cfg.MaxReply),
		zk.WithMaxConnBufferSize(l.cfg.MaxRequest+4<<10),
	)
	if err != nil {
		l.stop()
	}
	return err
}

// libLog passes on what go-zookeeper has to say, save what the handler is told.
type libLog struct{ l *zap.Logger }

// told are the beginnings of what go-zookeeper says when a connection fails.
var told = []string{"failed to connect to ", "authentication failed: ", "send loop terminated: ", "recv loop terminated: "}

func (l libLog) Printf(format string, args ...any) {
	if slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(format, s) }) {
		return
	}
	if e := l.l.Check(zap.DebugLevel, "go-zookeeper"); e != nil {
		e.Write(zap.String("says", fmt.Sprintf(format, args...)))
	}
}

// Raw is go-zookeeper's connection. From the first call on it also gets the
// events of watches.
func (l *Transport) Raw() *zk.Conn {
	l.hosts.rawUsed.Store(true)
	return l.raw
}

// LastZxid is the latest state that a reply of this session has shown.
func (l *Transport) LastZxid() int64 { return l.lastZxid.Load() }

// errChosen makes go-zookeeper ask for the address that was chosen.
var errChosen = errors.New("an address was chosen")

// dial is go-zookeeper's dialer.
func (l *Transport) dial(_, _ string, _ time.Duration) (net.Conn, error) {
	t, ok := l.hosts.take()
	switch {
	case l.isOver():
	case ok:
		return l.connect(t)
	case l.hosts.choose(l.life, l.handler.Failed):
		return nil, errChosen
	}
	l.parting.Do(func() { close(l.parted) })
	return l.closeStub(), nil
}

// connect makes a connection to a server.
func (l *Transport) connect(t target) (net.Conn, error) {
	step, err := l.beginSASL(t)
	l.trying.Store(&t)
	// One limit for dialing and handshake, as a server that is slow in both is slow.
	p := newPatience(l.cfg.ConnectTimeout, l.slow.Load())
	var nc net.Conn
	if err == nil {
		nc, err = l.open(l.life, t, p)
	}
	if err != nil {
		l.failed(t, p, err)
		l.handler.Failed(t.String(), err)
		return nil, err
	}
	if tc, ok := nc.(*tlsConn); ok && (tc.shown != nil || !tc.ConnectionState().DidResume) {
		l.shown.Store(tc.shown) // a server asks for none again in a session of TLS that is resumed
	}
	c := newConn(l, nc, t, p)
	c.step = step
	l.mu.Lock()
	l.conn = c
	l.mu.Unlock()
	l.wg.Go(c.writeLoop)
	if l.life.Err() != nil {
		c.Kill(net.ErrClosed)
	}
	return c, nil
}

// open dials a server. The dialer and what TLS calls are the user's: they end with their contexts.
func (l *Transport) open(ctx context.Context, t target, p *patience) (net.Conn, error) {
	dialing, cancel := context.WithDeadline(ctx, p.ends)
	defer cancel()
	nc, err := l.cfg.Dial(dialing, "tcp", t.addr)
	switch {
	case err != nil:
		return nil, networkError{inTime(dialing, err)}
	case nc == nil, nc == net.Conn((*net.TCPConn)(nil)):
		return nil, errors.New("Config.DialContext returned neither a connection nor an error")
	}
	if l.cfg.TLS == nil {
		return nc, nil
	}
	cfg := tlsFor(l.cfg.TLS, t.server)
	if l.cfg.FreshTLS != nil {
		l.cfg.FreshTLS(cfg)
	}
	tc := &tlsConn{under: nc}
	cfg.GetClientCertificate = tc.noting(cfg)
	shaking, end := context.WithCancelCause(ctx)
	defer end(nil)
	late := time.AfterFunc(time.Until(p.ends), func() { end(context.DeadlineExceeded) })
	defer late.Stop()
	from := &listened{nc, func() { p.heard(); late.Reset(time.Until(p.ends)) }}
	tc.Conn = tls.Client(from, cfg)
	err = tc.HandshakeContext(shaking)
	if from.heard = nil; err == nil {
		return tc, nil
	}
	_ = nc.Close() // the handshake's error is the one that tells
	if endedByServer(err) {
		return nil, fmt.Errorf("TLS: ended by the server, as by one without TLS: %w", networkError{err})
	}
	if refusesCertificate(err) {
		return nil, fmt.Errorf("TLS: %s: %w", refusedCertificate(tc.shown), networkError{err})
	}
	return nil, fmt.Errorf("TLS: %w", networkError{inTime(shaking, cmp.Or(context.Cause(shaking), err))})
}

// tlsConn closes soon, also where the other side takes no last words.
type tlsConn struct {
	*tls.Conn
	under net.Conn
	shown *x509.Certificate // what the server has asked for and was shown; nil for none
}

// noting chooses the certificate as package tls would, and notes it.
func (c *tlsConn) noting(cfg *tls.Config) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	choose, all := cfg.GetClientCertificate, cfg.Certificates
	return func(asked *tls.CertificateRequestInfo) (cert *tls.Certificate, err error) {
		cert = new(tls.Certificate)
		if choose != nil {
			cert, err = choose(asked)
		} else if i := slices.IndexFunc(all, func(one tls.Certificate) bool { return asked.SupportsCertificate(&one) == nil }); i >= 0 {
			cert = &all[i]
		}
		if err == nil && cert != nil && len(cert.Certificate) > 0 {
			c.shown, _ = x509.ParseCertificate(cert.Certificate[0]) // one that cannot be read has no name
		}
		return cert, err
	}
}

// Shown is the identity of the certificate that the server of the latest connection was
// shown, as an access list of the scheme x509 names it. It is empty without one.
func (l *Transport) Shown() []string {
	if cert := l.shown.Load(); cert != nil {
		return []string{"x509:" + Subject(cert)}
	}
	return nil
}

// Subject is whom a certificate is for, as an access list of the scheme x509 names it. It
// is empty if that cannot be read.
func Subject(cert *x509.Certificate) string {
	var subject pkix.RDNSequence // cert.Subject has forgotten the order
	_, _ = asn1.Unmarshal(cert.RawSubject, &subject)
	return subject.String()
}

// mostClosing is how long the last words may take. Package tls gives them 5 s.
const mostClosing = 100 * time.Millisecond

// Close implements net.Conn.
func (c *tlsConn) Close() error {
	late := time.AfterFunc(mostClosing, func() { _ = c.under.Close() })
	defer late.Stop()
	return c.Conn.Close()
}

// networkError is what the dialer, the look-up of names or a connection failed with. These
// are the user's, so that may be any error, also one that means something here: one of
// another client's, say. The same is true of a mechanism of SASL. It matches error numbers and types of the standard library alone,
// and so is never taken for an answer of a server.
type networkError struct{ err error }

// Error implements error.
func (e networkError) Error() string { return e.err.Error() }

// Is lets errors.Is find a syscall.Errno, silence and the end of a stream.
func (e networkError) Is(target error) bool {
	_, number := target.(syscall.Errno)
	known := number || target == errNoAnswer || target == io.EOF || target == io.ErrUnexpectedEOF || target == io.ErrClosedPipe
	return known && errors.Is(e.err, target)
}

// As lets errors.As find types of the standard library, whose paths have no dot.
func (e networkError) As(target any) bool {
	typ := reflect.TypeOf(target).Elem()
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	return !strings.Contains(typ.PkgPath(), ".") && errors.As(e.err, target)
}

var errNoAnswer = errors.New("no answer in time")

// inTime is a failure to connect within ctx. That ctx is ours, so its end is
// told and not to be matched: a caller would take it for the end of its own.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %v", errNoAnswer, err) //nolint:errorlint // see above
}

// isSilence is whether a connection ended because a server kept us waiting.
func isSilence(err error) bool {
	var timeout net.Error
	return errors.Is(err, errNoAnswer) || errors.As(err, &timeout) && timeout.Timeout()
}

// endedByServer is whether an error is what a connection that the server ends
// fails with.
func endedByServer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// endedAt is whether an error is what a connection that the server ends at a request fails
// with: endedByServer, or that of a write.
func endedAt(err error) bool {
	return endedByServer(err) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}

// tlsFor names the host that the certificate must be for, as it is written in
// the connection string.
func tlsFor(cfg *tls.Config, server string) *tls.Config {
	cfg = cfg.Clone()
	if cfg.MinVersion == 0 {
		cfg.MinVersion = tls.VersionTLS12
	}
	if host, _, err := net.SplitHostPort(server); err == nil && cfg.ServerName == "" {
		cfg.ServerName, _, _ = strings.Cut(host, "%") // a zone is no part of what a certificate is for
	}
	return cfg
}

func (l *Transport) connUp(c *Conn) {
	l.mu.Lock()
	c.unused = !l.used
	l.up, l.upAt, l.used = true, time.Now(), true
	l.tellLocked()
	l.mu.Unlock()
	l.slow.Store(0)
	l.hosts.up(c.target, c.timeout)
	l.handler.Up(c)
	switch {
	case c.readOnly:
		l.wg.Go(func() { l.seekWriter(c) })
	case len(l.cfg.Prefer) > 0 && !c.forgets && !l.hosts.near(c.target): // a Keeper would not take the session up again
		l.wg.Go(func() { l.seekHome(c) })
	}
}

// connDown is called once for each connection, at its end. A request of ours may be the
// reason.
func (l *Transport) connDown(c *Conn, wasUp, ours bool, err error) {
	l.mu.Lock()
	l.conn, l.up, l.asking = nil, false, false
	if c.unused && errors.Is(err, ErrNeedsIdentity) {
		l.used = false
	}
	if !l.used && errors.Is(err, errNotProven) {
		l.session = 0 // no server would let us end it
	}
	upFor := time.Since(l.upAt)
	l.tellLocked()
	l.mu.Unlock()
	switch {
	case wasUp:
		l.hosts.ended(c.target, upFor, endedAt(err) && !ours, err)
		l.handler.Down(c, err)
	case errors.Is(err, errExpired):
		if c.shake.session != 0 {
			l.hosts.again(c.target) // it is well, and will give us a new session
		}
	default:
		l.failed(c.target, c.shake.patience, err)
		l.handler.Failed(c.Addr(), err)
	}
}

// failed notes how an attempt ended before it led to a connection.
func (l *Transport) failed(t target, p *patience, err error) {
	l.hosts.failed(t, err)
	if p.begun.Load() && isSilence(err) {
		l.slow.Add(1)
	}
}

func (l *Transport) sessionBegun(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session, l.asking, l.used = id, false, l.used && l.session == id
	l.tellLocked()
}

// asks is called before a connection asks for a new session. It refuses that while the
// transport closes.
func (l *Transport) asks() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return net.ErrClosed
	}
	l.asking = true
	return nil
}

// sessionClosed says that the servers have closed a session.
func (l *Transport) sessionClosed(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == id {
		l.session = 0
		l.tellLocked()
	}
}

func (l *Transport) sessionGone(id int64, replaced bool) {
	l.mu.Lock()
	l.session, l.abandoned = 0, 0
	l.left = l.left || l.closing && replaced && l.used
	l.tellLocked()
	l.mu.Unlock()
	l.handler.Expired(id)
}

// isAbandoned is whether a session is to be closed when a server grants it.
func (l *Transport) isAbandoned(id int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.abandoned == id || l.closing
}

// isOver is whether the transport is closing and has no session any more.
func (l *Transport) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closing && l.session == 0
}

// tellLocked wakes those who wait for a change.
func (l *Transport) tellLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Abandon gives a session up, if it is the present one. Its connection ends;
// should a server grant it once more, it is closed there. Handler.Expired
// follows when it is known to be gone, and then a new session.
func (l *Transport) Abandon(session int64) {
	l.mu.Lock()
	if l.session != session {
		l.mu.Unlock()
		return
	}
	l.abandoned = session
	c := l.conn
	l.mu.Unlock()
	if c != nil {
		c.Kill(errAbandoned)
	}
}

var errAbandoned = errors.New("session given up")

// ErrNotTold reports a session that could not be closed, so that the servers
// keep its ephemeral nodes until it times out.
var ErrNotTold = errors.New("session not closed: the servers keep its ephemeral nodes for up to a session timeout")

// Close ends the session, if a server can be told within limit, and then
// go-zookeeper and every goroutine of the transport. It returns nil if there is no
// session any more, be it one that was abandoned. An error matches ErrNotTold: a
// session may be left. For a session of which no connection was up, it waits for mostAsking
// at most, since that session has no nodes. If the proof is refused, it does not wait.
func (l *Transport) Close(limit time.Duration) error {
	err := l.endSession(limit)
	l.hosts.stop()
	l.stop()
	l.mu.Lock()
	c := l.conn
	l.mu.Unlock()
	if c != nil {
		c.Kill(net.ErrClosed)
	}
	l.partFromLib()
	l.wg.Wait()
	return err
}

// partFromLib ends go-zookeeper's loop. Its Close returns at once only if its request to
// close the session finds a connection. So Close waits for the last connection, unless it
// was closed already.
func (l *Transport) partFromLib() {
	for waiting := true; waiting; {
		select {
		case <-l.parted:
			waiting = false
		case _, looping := <-l.events:
			if !looping {
				return
			}
		}
	}
	l.raw.Close()
	for range l.events { // closed when its loop has ended
	}
}

// endSession closes the session on the connection there is, or lets the next one close it
// instead of going up. That one needs no credentials of Config.Auth, which may be what keeps
// it from going up.
func (l *Transport) endSession(limit time.Duration) error {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	l.hosts.hasten()
	late := time.NewTimer(limit)
	defer late.Stop()
	ends, asked := time.Now().Add(limit), time.Now().Add(min(limit, mostAsking))
	var refusal error
	for {
		if refusal != nil && !time.Now().Before(ends) {
			return errNotTold(limit, refusal)
		}
		c, session, left, changed := l.present()
		switch {
		case left:
			return fmt.Errorf("the servers do not take the session up again: %w", ErrNotTold)
		case session == noSession:
			return nil
		case session == newSession:
			// The handshake closes what it is granted.
			if waitUntil(l.life, asked, changed); !time.Now().Before(asked) {
				return nil
			}
			continue
		}
		call := NewCall(wire.OpCloseSession, wire.Empty{})
		over := changed
		sent := c != nil && c.Send(call) == nil
		if sent {
			over = call.Done() // which follows the end of the connection
		}
		select {
		case <-over:
		case <-late.C:
			return errNotTold(limit, refusal)
		}
		switch {
		case !sent:
		case call.Replied() && isClosed(call.Code()), c.forgets && endedWithoutAnswer(call):
			l.sessionClosed(session)
			return nil
		case call.Replied(): // refused, and maybe only for now
			refusal = fmt.Errorf("the server refused: %v", call.Code())
			waitUntil(l.life, time.Now().Add(refusedPause), changed)
		default: // after a lost reply the next connection tells: renewed or gone
		}
	}
}

// mostAsking is how long the end of a session may take that nobody has used: pauses after a
// refusal last up to 400 ms.
const mostAsking = 500 * time.Millisecond

// refusedPause is the pause after a server has refused to end the session.
const refusedPause = 100 * time.Millisecond

// isClosed is whether an answer says that the session is over.
func isClosed(code wire.Code) bool { return code == wire.CodeOK || code == wire.CodeSessionExpired }

// endedWithoutAnswer is whether a server has ended the connection at a request, or after it.
// A ClickHouse Keeper ends a session so. It can also have failed at that moment, which nobody
// can tell apart: then the session ends after its timeout.
//
// Source: ClickHouse KeeperTCPHandler.runImpl.
func endedWithoutAnswer(call *Call) bool {
	var lost *LostError
	return errors.As(call.Err(), &lost) && lost.Sent && endedAt(lost.Cause)
}

// errNotTold is ErrNotTold with what is known of the reason.
func errNotTold(limit time.Duration, refusal error) error {
	if refusal != nil {
		return fmt.Errorf("%w: %w", refusal, ErrNotTold)
	}
	return fmt.Errorf("no answer within %v: %w", limit, ErrNotTold)
}

// What present says where there is no session that could be closed.
const (
	noSession  = 0
	newSession = -1 // a server may be making one, or has made one that nobody has used
)

// present returns the connection that is up, or nil, the session, and whether another one
// was left on the servers.
func (l *Transport) present() (c *Conn, session int64, left bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up {
		c = l.conn
	}
	if session = l.session; l.asking || session != noSession && !l.used {
		session = newSession
	}
	return c, session, l.left, l.changed
}

// Trying is the server that was tried last, as Conn.Addr names it. It is empty before the first.
func (l *Transport) Trying() string {
	t := l.trying.Load()
	if t == nil {
		return ""
	}
	return t.String()
}

// Servers are those that are connected to, in no order.
func (l *Transport) Servers() []string { return l.hosts.all() }

// SetServers makes others the servers to connect to, one at least. The present
// connection stays.
func (l *Transport) SetServers(servers []string) { l.hosts.replace(servers) }
