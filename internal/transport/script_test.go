package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/wire"
)

// script is a server that does what a test says, one function per connection
// that a client opens; the last one serves all further connections.
type script struct {
	t  testing.TB
	wg sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	serve   []func(*peer)
	at      map[string]func(*peer) // what serves an address; nil for nobody
	opened  int
	conns   []net.Conn
	dialled []time.Time
	addrs   []string
}

func newScript(t testing.TB, serve ...func(*peer)) *script { return &script{t: t, serve: serve} }

var errNobody = errors.New("nobody listens")

// dial is the client's dialer.
func (s *script) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialled, s.addrs = append(s.dialled, time.Now()), append(s.addrs, addr)
	serve := s.at[addr]
	if len(s.serve) > 0 {
		serve = s.serve[min(s.opened, len(s.serve)-1)]
	}
	if serve == nil {
		return nil, errNobody
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	near, far := net.Pipe()
	s.opened++
	s.conns = append(s.conns, far)
	s.wg.Go(func() {
		defer func() { _ = far.Close() }()
		serve(&peer{t: s.t, Conn: far, in: bufio.NewReader(far)})
	})
	return near, nil
}

func (s *script) dials() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.dialled...)
}

// places are the addresses that were dialed, in this order.
func (s *script) places() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.addrs)
}

// serving makes fn serve an address from now on, or nobody for nil.
func (s *script) serving(addr string, fn func(*peer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = make(map[string]func(*peer))
	}
	s.at[addr] = fn
}

// stop ends the serving functions.
func (s *script) stop() {
	s.mu.Lock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// peer is the server's side of one connection.
type peer struct {
	net.Conn
	t  testing.TB
	in *bufio.Reader
}

// frame reads a frame; nil at the end of the connection.
func (p *peer) frame() []byte {
	var size [4]byte
	if _, err := io.ReadFull(p.in, size[:]); err != nil {
		return nil
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(p.in, body); err != nil {
		return nil
	}
	return body
}

func (p *peer) send(records ...wire.Record) { _, _ = p.Write(wire.AppendFrame(nil, records...)) }

// raw sends a frame with any length before it.
func (p *peer) raw(length int32, body ...byte) {
	_, _ = p.Write(append(binary.BigEndian.AppendUint32(nil, uint32(length)), body...))
}

// welcome answers the connect request, which it returns.
func (p *peer) welcome(session int64, timeout time.Duration) *wire.ConnectRequest {
	req := p.asked()
	password := bytes.Repeat([]byte{7}, 16)
	p.send(&wire.ConnectResponse{Timeout: int32(timeout.Milliseconds()), SessionID: session, Password: password, HasReadOnly: true})
	return req
}

// asked reads the connect request.
func (p *peer) asked() *wire.ConnectRequest {
	req := new(wire.ConnectRequest)
	req.Decode(wire.NewDecoder(p.frame()))
	return req
}

// next reads a request; the op is 0 at the end of the connection.
func (p *peer) next() (h wire.RequestHeader, body []byte) {
	frame := p.frame()
	if frame == nil {
		return h, nil
	}
	h.Decode(wire.NewDecoder(frame))
	return h, frame[wire.RequestHeaderLen:]
}

// answer serves requests until the connection ends: each with an empty reply
// of success.
func (p *peer) answer(zxid int64) {
	for {
		h, _ := p.next()
		if h.Op == 0 {
			return
		}
		p.send(&wire.ReplyHeader{Xid: h.Xid, Zxid: zxid})
	}
}

// record is a handler that keeps all events.
type record struct {
	mu     sync.Mutex // guards the fields below
	events []string
	conn   *Conn
	acks   []Ack
	told   chan struct{}
	failed []error
	whose  []string // failures with the servers that they are of
	fired  []wire.WatcherEvent
}

func newRecord() *record { return &record{told: make(chan struct{})} }

func (r *record) add(event string) {
	r.events = append(r.events, event)
	close(r.told)
	r.told = make(chan struct{})
}

func (r *record) Up(c *Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn = c
	r.add("up")
}

func (r *record) Acked(_ *Conn, a Ack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acks = append(r.acks, a)
}

func (r *record) Event(_ *Conn, ev wire.WatcherEvent, _ int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fired = append(r.fired, ev)
	r.add("event")
}

func (r *record) Down(_ *Conn, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, err)
	r.conn = nil
	r.add("down")
}

func (r *record) Failed(server string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed, r.whose = append(r.failed, err), append(r.whose, server+": "+err.Error())
	r.add("failed")
}

func (r *record) Expired(int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add("expired")
}

// await waits until the handler was told event for the nth time.
func (r *record) await(t testing.TB, event string, nth int) {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		r.mu.Lock()
		n := 0
		for _, e := range r.events {
			if e == event {
				n++
			}
		}
		told := r.told
		r.mu.Unlock()
		if n >= nth {
			return
		}
		select {
		case <-told:
		case <-limit.C:
			r.mu.Lock()
			defer r.mu.Unlock()
			require.FailNow(t, "not told in time", "%s, %d times; told %v, failures %v", event, nth, r.events, r.failed)
		}
	}
}

func (r *record) current() *Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn
}

func (r *record) failures() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.failed...)
}

func (r *record) tellings() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.whose)
}

func (r *record) trace() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.events...)
}

// open opens a link to a script, which both end with the test.
func open(t testing.TB, s *script, change ...func(*Config)) (*Transport, *record) {
	t.Helper()
	cfg := Config{
		Holding: func() time.Duration { return 0 },
		Servers: []string{"server:2181"}, SessionTimeout: 9 * time.Second, ConnectTimeout: 3 * time.Second,
		Dial: s.dial, MaxReply: 1 << 20, MaxRequest: 1 << 20, Logger: zap.NewNop(),
	}
	for _, fn := range change {
		fn(&cfg)
	}
	r := newRecord()
	l := New(cfg, r)
	require.NoError(t, l.Open())
	return l, r
}

// shut closes a link without waiting until the server was told.
func shut(t testing.TB, l *Transport, s *script) {
	t.Helper()
	if err := l.Close(time.Nanosecond); !errors.Is(err, ErrNotTold) {
		require.NoError(t, err)
	}
	s.stop()
}

func ask(c *Conn) *Call {
	call := NewCall(wire.OpSync, &wire.PathRequest{Path: "/"})
	if c.Send(call) != nil {
		return nil
	}
	return call
}

const session1 = 0x1234
