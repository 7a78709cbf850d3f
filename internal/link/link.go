// Package link keeps one client's connection to an ensemble over
// go-zookeeper/zk, and contains what must not reach anybody else of how
// go-zookeeper behaves.
//
// go-zookeeper keeps the session: it connects, renews the session with its id
// and password, pings, and finds another server when one is silent. Everything
// else goes past it. Its dialer gives it a guard connection of ours (Conn),
// which carries our own requests beside its few, on the same socket, and takes
// their replies and the events out before go-zookeeper sees them. So a request
// belongs to one connection of one session and to no other, several leave in
// one write, contexts need no goroutine each, and watches are ours.
//
// A Handler is told what happens. The read-only servers' search for a better
// one is in readonly.go, the order of servers in hosts.go, the end in farewell.go.
package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/chance"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Auth is one credential.
type Auth struct {
	Scheme string
	// Data is a function because that is the one thing that package fmt never
	// looks into: with a verb that does not fit, such as %s, it prints also what
	// stands behind unexported fields and pointers, without asking their types.
	Data func() []byte
}

// Config says how to connect. All fields are needed, save Auth, TLS, ReadOnly and Now.
type Config struct {
	Servers        []string // host:port
	SessionTimeout time.Duration
	ConnectTimeout time.Duration // for dialing and handshake with one server
	Dial           func(ctx context.Context, network, addr string) (net.Conn, error)
	TLS            *tls.Config
	Auth           []Auth
	ReadOnly       bool // accept a server without majority
	MaxReply       int  // bytes
	MaxRequest     int  // bytes; bounds what the raw connection can send
	Logger         *zap.Logger
	Now            func() time.Time // by which Acks are told; time.Now if nil
	Chance         *chance.Source   // of the order of servers, and of pauses
}

// Ack is the reply to one request, as far as it proves that the session lives.
type Ack struct {
	Sent    time.Time // before the request was written
	Replied time.Time
	Write   bool // the leader and a majority have logged it
}

// Handler is told what happens. The calls never overlap, come in the order of
// what they tell, and must neither block nor end a connection.
type Handler interface {
	// Up says that requests may be sent on c.
	Up(c *Conn)
	// Acked says that a reply has come on c, before its call ends.
	Acked(c *Conn, a Ack)
	// Event says that a watch has fired on c.
	Event(c *Conn, ev wire.WatcherEvent)
	// Down says that c has ended, before the calls on it do.
	Down(c *Conn, err error)
	// Failed says that a server could not be reached or did not let us in.
	Failed(addr string, err error)
	// Expired says that the servers have ended the session.
	Expired(session int64)
}

// Link is the client's one connection after another.
//
// Lock order: mu, then a Conn's. Handlers are called with neither.
type Link struct {
	cfg      Config
	handler  Handler
	hosts    *hosts
	raw      *zk.Conn
	events   <-chan zk.Event
	life     context.Context // ends when the link closes
	stop     context.CancelFunc
	farewell chan struct{} // closed when go-zookeeper has got its last connection
	parting  sync.Once     // closes farewell
	wg       sync.WaitGroup
	rawUsed  atomic.Bool
	lastZxid zxid

	mu        sync.Mutex // guards the fields below
	conn      *Conn      // the one in use, from dial to down
	up        bool
	upAt      time.Time
	session   int64 // 0 without one
	abandoned int64 // a session that must not be continued
	changed   chan struct{}
}

// zxid is the latest state seen.
type zxid struct{ v atomic.Int64 }

func (z *zxid) load() int64 { return z.v.Load() }
func (z *zxid) reset()      { z.v.Store(0) }
func (z *zxid) raise(to int64) {
	for {
		now := z.v.Load()
		if to <= now || z.v.CompareAndSwap(now, to) {
			return
		}
	}
}

// New makes a link that does nothing before Open, so that the handler can know
// it before it is told anything.
func New(cfg Config, h Handler) *Link {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Link{cfg: cfg, handler: h, hosts: newHosts(cfg.Servers, cfg.Chance), farewell: make(chan struct{}), changed: make(chan struct{})}
	l.life, l.stop = context.WithCancel(context.Background())
	return l
}

// Open begins to connect, in the background and for as long as it takes. After
// an error the link is of no use.
func (l *Link) Open() (err error) {
	l.raw, l.events, err = zk.Connect([]string{"placeholder:1"}, l.cfg.SessionTimeout,
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

// libLog passes on what go-zookeeper has to say.
type libLog struct{ l *zap.Logger }

func (l libLog) Printf(format string, args ...any) {
	if e := l.l.Check(zap.DebugLevel, "go-zookeeper"); e != nil {
		e.Write(zap.String("says", fmt.Sprintf(format, args...)))
	}
}

// Raw is go-zookeeper's connection. From the first call on it also gets the
// events of watches.
func (l *Link) Raw() *zk.Conn {
	l.rawUsed.Store(true)
	return l.raw
}

// LastZxid is the latest state that a reply of this session has shown.
func (l *Link) LastZxid() int64 { return l.lastZxid.load() }

// dial is go-zookeeper's dialer.
func (l *Link) dial(_, addr string, _ time.Duration) (net.Conn, error) {
	if !sleep(l.life, l.hosts.begin()) {
		l.parting.Do(func() { close(l.farewell) })
		return newFarewell(), nil
	}
	// Begun before dialing: one limit for both, as a server that is slow in both is slow.
	ctx, cancel := context.WithTimeout(l.life, l.cfg.ConnectTimeout)
	defer cancel()
	nc, err := l.dialServer(ctx, addr)
	if err != nil {
		l.handler.Failed(addr, err)
		return nil, err
	}
	c := newConn(l, nc, addr)
	l.mu.Lock()
	l.conn = c
	l.mu.Unlock()
	l.wg.Go(c.writeLoop)
	if l.life.Err() != nil {
		c.fail(net.ErrClosed)
	}
	return c, nil
}

func (l *Link) dialServer(ctx context.Context, addr string) (net.Conn, error) {
	nc, err := l.cfg.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, inTime(ctx, err)
	}
	nc = newSocket(nc)
	if l.cfg.TLS == nil {
		return nc, nil
	}
	tc := tls.Client(nc, tlsFor(l.cfg.TLS, addr))
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = nc.Close() // the handshake's error is the one that tells
		if endedByServer(err) {
			return nil, fmt.Errorf("TLS: ended by the server, as by one without TLS: %w", err)
		}
		return nil, fmt.Errorf("TLS: %w", inTime(ctx, err))
	}
	return tc, nil
}

// inTime is a failure to connect within ctx. That ctx is ours, so its end is
// told and not to be matched: a caller would take it for the end of its own.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	return errors.New("no answer in time: " + err.Error())
}

// endedByServer is whether an error is what a connection that the server ends
// fails with.
func endedByServer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// tlsFor names the host that the certificate must be for, as it is written in
// the connection string.
func tlsFor(cfg *tls.Config, addr string) *tls.Config {
	cfg = cfg.Clone()
	if cfg.MinVersion == 0 {
		cfg.MinVersion = tls.VersionTLS12
	}
	if host, _, err := net.SplitHostPort(addr); err == nil && cfg.ServerName == "" {
		cfg.ServerName = host
	}
	return cfg
}

func (l *Link) connUp(c *Conn) {
	l.mu.Lock()
	l.up, l.upAt = true, time.Now()
	l.tellLocked()
	l.mu.Unlock()
	l.handler.Up(c)
	if c.readOnly {
		l.wg.Go(func() { l.seekWriter(c) })
	}
}

// connDown is called once for each connection, at its end.
func (l *Link) connDown(c *Conn, wasUp bool, err error) {
	l.mu.Lock()
	l.conn, l.up = nil, false
	upFor := time.Since(l.upAt)
	l.tellLocked()
	l.mu.Unlock()
	switch {
	case wasUp:
		l.hosts.ended(upFor, c.answered)
		l.handler.Down(c, err)
	case !errors.Is(err, errExpired):
		l.handler.Failed(c.addr, err)
	}
}

func (l *Link) sessionBegun(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = id
	l.tellLocked()
}

func (l *Link) sessionGone(id int64) {
	l.mu.Lock()
	l.session, l.abandoned = 0, 0
	l.tellLocked()
	l.mu.Unlock()
	l.handler.Expired(id)
}

func (l *Link) isAbandoned(id int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.abandoned == id
}

// tellLocked wakes those who wait for a change.
func (l *Link) tellLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Abandon gives a session up, if it is the present one. Its connection ends;
// should a server grant it once more, it is closed there. Handler.Expired
// follows when it is known to be gone, and then a new session.
func (l *Link) Abandon(session int64) {
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
var ErrNotTold = errors.New("session not closed")

// Close ends the session, if tell is set and a server can be told within limit,
// and then go-zookeeper and every goroutine of the link. The error, if any,
// wraps ErrNotTold.
func (l *Link) Close(limit time.Duration, tell bool) error {
	var err error
	if tell {
		err = l.endSession(limit)
	}
	l.hosts.stop()
	l.stop()
	l.mu.Lock()
	c := l.conn
	l.mu.Unlock()
	if c != nil {
		c.Kill(net.ErrClosed)
	}
	if !l.join() {
		err = errors.Join(err, ErrStuck)
	}
	return err
}

// ErrStuck reports goroutines that go on after Close, which only a
// Config.Dial that does not end with its context can cause.
var ErrStuck = errors.New("the dialer does not end with its context")

// stuckAfter leaves room for go-zookeeper's own pause of a second.
const stuckAfter = 2 * time.Second

// join waits for go-zookeeper and all goroutines to end.
func (l *Link) join() bool {
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		l.partFromLib()
		l.wg.Wait()
	}()
	t := time.NewTimer(stuckAfter)
	defer t.Stop()
	select {
	case <-joined:
		return true
	case <-t.C:
		return false
	}
}

// partFromLib ends go-zookeeper's loop. Its Close returns at once only if its
// request to close the session finds a connection, so it has to wait for the
// last one; unless somebody has closed it already.
func (l *Link) partFromLib() {
	for waiting := true; waiting; {
		select {
		case <-l.farewell:
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

// endSession closes the session on whichever connection there is.
func (l *Link) endSession(limit time.Duration) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		c, session, changed := l.present()
		if session == 0 {
			return nil
		}
		var answered <-chan struct{}
		call := NewCall(wire.OpCloseSession, wire.Empty{})
		if c != nil && c.Send(call) == nil {
			answered = call.Done()
		}
		select {
		case <-answered:
			if call.Err() == nil {
				return nil
			}
			// After a lost reply the next connection tells: renewed or gone.
			<-changed
		case <-changed:
		case <-late.C:
			return fmt.Errorf("%w within %v", ErrNotTold, limit)
		}
	}
}

// present returns the connection that is up, or nil, and the session.
func (l *Link) present() (c *Conn, session int64, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up {
		c = l.conn
	}
	return c, l.session, l.changed
}

// Servers are those that are connected to, in no order.
func (l *Link) Servers() []string { return l.hosts.all() }

// SetServers makes others the servers to connect to, one at least. The present
// connection stays.
func (l *Link) SetServers(servers []string) { l.hosts.replace(servers) }
