// Package faultnet stands between a ZooKeeper client and its servers, and makes what lies
// between them fail. It is for tests whose cases are the same on the in-process server
// and on a real one.
//
// A Net is one client's network. It is given to the client as the function that
// dials. It reads the frames that pass, so it can lose the reply to a certain
// request.
package faultnet

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework/sasl"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Dial opens a connection.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Net is one client's network.
type Net struct {
	dial  Dial
	tls   *tls.Config    // nil for none
	prove sasl.Mechanism // nil for none
	wg    sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	flows    map[*flow]struct{}
	sessions map[int64]session
	rules    []*Rule
	counts   map[wire.Op]int
	refusing bool
	thawed   chan struct{} // closed while not frozen
	closed   bool
	unasked  bool          // no session is asked for again
	way      time.Duration // each way
	write    time.Duration // what a request that writes takes besides
}

// session is what it takes to speak for one.
type session struct {
	password []byte
	addr     string
}

// ErrCut is what a connection ends with that a fault has cut.
var ErrCut = errors.New("cut by faultnet")

// New is a network over dial, which defaults to that of a net.Dialer.
func New(dial Dial) *Net {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	thawed := make(chan struct{})
	close(thawed)
	return &Net{dial: dial, flows: make(map[*flow]struct{}), sessions: make(map[int64]session), counts: make(map[wire.Op]int), thawed: thawed}
}

// Secure is for servers that speak TLS, or that know users of SASL; either may be nil. It
// comes before the first connection. The network looks into what goes through TLS: it is the
// server of its client, and a client of the servers. So cfg is for both, and names the server.
// With the mechanism it proves itself before it ends a session in Expire.
func (n *Net) Secure(cfg *tls.Config, mechanism sasl.Mechanism) { n.tls, n.prove = cfg, mechanism }

// open connects to a server.
func (n *Net) open(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := n.dial(ctx, network, addr)
	if err != nil || n.tls == nil {
		return conn, err
	}
	secure := tls.Client(conn, n.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// flow is one connection: a pipe to the client and a connection to the server.
type flow struct {
	net               *Net
	addr              string
	client            net.Conn
	pipe              net.Conn // below client; who ends a connection says no good-bye
	server            net.Conn
	requests, replies hose

	mu     sync.Mutex     // guards the fields below
	doomed map[int32]bool // requests whose reply shall be lost
	first  bool           // the connect request has not passed
}

// DialContext opens a connection through the network.
func (n *Net) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	n.mu.Lock()
	refused := n.refusing || n.closed
	n.mu.Unlock()
	if refused {
		return nil, fmt.Errorf("dial %s: refused by faultnet", addr)
	}
	server, err := n.open(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	near, pipe := net.Pipe()
	far := pipe
	if n.tls != nil {
		far = tls.Server(pipe, n.tls)
	}
	f := &flow{net: n, addr: addr, client: far, pipe: pipe, server: server, doomed: make(map[int32]bool), first: true}
	f.requests.wake, f.replies.wake = make(chan struct{}, 1), make(chan struct{}, 1)
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		f.cut()
		return nil, net.ErrClosed
	}
	n.flows[f] = struct{}{}
	n.wg.Go(f.up)
	n.wg.Go(f.down)
	n.mu.Unlock()
	return near, nil
}

func (f *flow) cut() {
	_ = f.pipe.Close()
	_ = f.server.Close()
	f.net.mu.Lock()
	delete(f.net.flows, f)
	f.net.mu.Unlock()
}

// up carries requests.
func (f *flow) up() {
	connecting := true
	f.carry(f.client, &f.requests, func(frame frame) bool {
		writes := connecting || writes(opOf(frame.bytes))
		connecting = false
		f.net.arrive(frame.read, writes)
		return f.request(frame.bytes)
	})
}

// down carries replies and events.
func (f *flow) down() {
	connecting := true
	f.carry(f.server, &f.replies, func(frame frame) bool {
		f.net.arrive(frame.read, false)
		if connecting {
			f.connected(frame.bytes[4:])
			connecting = false
		} else if f.lost(frame.bytes[4:]) {
			return false
		}
		_, err := f.client.Write(frame.bytes)
		return err == nil
	})
}

// carry delivers frames from one end until deliver refuses or the end is
// closed. It reads on while the network is frozen, as into a socket's buffer,
// and the end of a connection is held back like everything else.
func (f *flow) carry(from net.Conn, h *hose, deliver func(frame) bool) {
	defer f.cut()
	f.net.wg.Go(func() { h.fill(from) })
	for {
		<-h.wake
		<-f.net.gate()
		frames, ended := h.take()
		for _, frame := range frames {
			if !deliver(frame) {
				return
			}
		}
		if ended {
			return
		}
	}
}

// arrive waits until what was read then has arrived.
func (n *Net) arrive(read time.Time, writes bool) {
	n.mu.Lock()
	takes := n.way
	if writes {
		takes += n.write
	}
	n.mu.Unlock()
	if left := takes - time.Since(read); left > 0 {
		<-time.After(left)
	}
}

// writes reports whether a majority logs such a request.
func writes(op wire.Op) bool {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpDelete, wire.OpSetData, wire.OpSetACL, wire.OpMulti, wire.OpCloseSession:
		return true
	}
	return false
}

// frame is one request, reply or event, and when it was read.
type frame struct {
	bytes []byte
	read  time.Time
}

// opOf is what a request asks for.
func opOf(request []byte) wire.Op {
	var h wire.RequestHeader
	h.Decode(wire.NewDecoder(request[4:]))
	return h.Op
}

// hose is what was read and not yet delivered.
type hose struct {
	wake chan struct{}

	mu     sync.Mutex // guards the fields below
	frames []frame
	ended  bool
}

func (h *hose) fill(from net.Conn) {
	in := bufio.NewReader(from)
	for {
		bytes, err := readFrame(in)
		h.mu.Lock()
		if err == nil {
			h.frames = append(h.frames, frame{bytes, time.Now()})
		}
		h.ended = err != nil
		h.mu.Unlock()
		select {
		case h.wake <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (h *hose) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.frames)
}

func (h *hose) take() (frames []frame, ended bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	frames, h.frames = h.frames, nil
	return frames, h.ended
}

// request passes one request on, unless a rule says otherwise.
func (f *flow) request(frame []byte) bool {
	f.mu.Lock()
	first := f.first
	f.first = false
	f.mu.Unlock()
	if first {
		f.net.hideSession(frame)
	} else {
		var h wire.RequestHeader
		h.Decode(wire.NewDecoder(frame[4:]))
		what, do := f.net.judge(h.Op, frame[12:])
		if do != nil {
			do()
		}
		switch what {
		case before:
			return false
		case after:
			f.mu.Lock()
			f.doomed[h.Xid] = true
			f.mu.Unlock()
		}
	}
	_, err := f.server.Write(frame)
	return err == nil
}

// HideSessions makes the servers look like ClickHouse Keeper: they answer each renewal of
// a session with a new one.
func (n *Net) HideSessions() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unasked = true
}

// hideSession makes a connect request one for a new session.
func (n *Net) hideSession(request []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unasked {
		const session, password = 4 + 16, 4 + 28 // behind the length, version, zxid and timeout
		clear(request[session : session+8])
		clear(request[password:min(password+16, len(request))])
	}
}

func (f *flow) connected(body []byte) {
	var r wire.ConnectResponse
	r.Decode(wire.NewDecoder(body))
	f.net.mu.Lock()
	defer f.net.mu.Unlock()
	f.net.sessions[r.SessionID] = session{password: append([]byte(nil), r.Password...), addr: f.addr}
}

// lost is whether a reply is one that a rule takes away.
func (f *flow) lost(body []byte) bool {
	var h wire.ReplyHeader
	h.Decode(wire.NewDecoder(body))
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.doomed[h.Xid]
}

func readFrame(in io.Reader) ([]byte, error) {
	frame := make([]byte, 4)
	if _, err := io.ReadFull(in, frame); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(frame)
	if n > 16<<20 {
		return nil, fmt.Errorf("frame of %d bytes", n)
	}
	frame = append(frame, make([]byte, n)...)
	_, err := io.ReadFull(in, frame[4:])
	return frame, err
}

// gate is open while the network is not frozen.
func (n *Net) gate() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.thawed
}

type verdict int

const (
	pass verdict = iota
	before
	after
)

// Rule is a fault that waits for its request.
type Rule struct {
	net  *Net
	op   wire.Op
	with wire.Op // a transaction must have such an operation; 0 for any
	nth  int
	what verdict
	do   func() // before the request passes, nil for nothing
	// Fired is closed when it has happened.
	Fired chan struct{}
}

// CutBefore cuts the connection in place of the nth request of this kind from
// now on, which does not reach the server. Op 0 stands for every request but
// pings.
func (n *Net) CutBefore(op wire.Op, nth int) *Rule {
	return n.add(&Rule{op: op, nth: nth, what: before})
}

// LoseReply cuts the connection in place of the reply to the nth request of
// this kind from now on.
func (n *Net) LoseReply(op wire.Op, nth int) *Rule {
	return n.add(&Rule{op: op, nth: nth, what: after})
}

// CutBeforeTransaction is CutBefore for the next transaction with such an operation.
// Renewals of the session lease are transactions, too, and have none but checks.
func (n *Net) CutBeforeTransaction(with wire.Op) *Rule {
	return n.add(&Rule{op: wire.OpMulti, with: with, nth: 1, what: before})
}

// LoseReplyOfTransaction is LoseReply for the next transaction with such an operation.
func (n *Net) LoseReplyOfTransaction(with wire.Op) *Rule {
	return n.add(&Rule{op: wire.OpMulti, with: with, nth: 1, what: after})
}

// BeforeTransaction calls do before the next transaction with such an operation goes on to
// the server.
func (n *Net) BeforeTransaction(with wire.Op, do func()) *Rule {
	return n.add(&Rule{op: wire.OpMulti, with: with, nth: 1, do: do})
}

func (n *Net) add(r *Rule) *Rule {
	r.net, r.Fired = n, make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rules = append(n.rules, r)
	return r
}

// Remove takes a rule back.
func (r *Rule) Remove() {
	r.net.mu.Lock()
	defer r.net.mu.Unlock()
	r.nth = -1
}

// judge says what becomes of a request, and what is done first.
func (n *Net) judge(op wire.Op, body []byte) (what verdict, do func()) {
	var parts wire.MultiRequest
	if op == wire.OpMultiRead || op == wire.OpMulti {
		parts.Decode(wire.NewDecoder(body))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[op]++
	if op == wire.OpMultiRead {
		for _, part := range parts.Ops {
			n.counts[part.Op]++
		}
	}
	if op == wire.OpPing {
		return pass, nil
	}
	for _, r := range n.rules {
		if r.nth <= 0 || r.op != 0 && r.op != op {
			continue
		}
		if r.with != 0 && !slices.ContainsFunc(parts.Ops, func(part wire.MultiOp) bool { return part.Op == r.with }) {
			continue
		}
		if r.nth--; r.nth == 0 {
			close(r.Fired)
			return r.what, r.do
		}
	}
	return pass, nil
}

// Requests counts what has been sent, by kind, and what has been read together
// by the kinds of its parts as well.
func (n *Net) Requests() map[wire.Op]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	counts := make(map[wire.Op]int, len(n.counts))
	for op, c := range n.counts {
		counts[op] = c
	}
	return counts
}

// CutAll cuts every connection.
func (n *Net) CutAll() {
	n.mu.Lock()
	flows := make([]*flow, 0, len(n.flows))
	for f := range n.flows {
		flows = append(flows, f)
	}
	n.mu.Unlock()
	for _, f := range flows {
		f.cut()
	}
}

// Held counts the requests that have been sent and wait for Thaw.
func (n *Net) Held() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	held := 0
	for f := range n.flows {
		held += f.requests.len()
	}
	return held
}

// Refuse lets no new connection through, until Accept.
func (n *Net) Refuse() { n.setRefusing(true) }

// Accept ends Refuse.
func (n *Net) Accept() { n.setRefusing(false) }

func (n *Net) setRefusing(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refusing = on
}

// Delay makes every request and every reply take half of trip on its way, and what
// a majority logs so much longer. Requests stay in order, as on a server: what comes
// behind a write waits for it. Writes that are on their way together are served
// together.
func (n *Net) Delay(trip, write time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.way, n.write = trip/2, write
}

// Freeze holds everything that is sent, both ways, while connections stay up.
func (n *Net) Freeze() {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.thawed:
		n.thawed = make(chan struct{})
	default:
	}
}

// Thaw delivers what was held.
func (n *Net) Thaw() {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.thawed:
	default:
		close(n.thawed)
	}
}

// Expire ends a session that was opened through this network: with its id and
// password, on a connection of its own, which takes it over and closes it. Its
// nodes are gone afterwards.
func (n *Net) Expire(ctx context.Context, id int64) error {
	n.mu.Lock()
	s, ok := n.sessions[id]
	n.mu.Unlock()
	if !ok {
		return fmt.Errorf("session %#x was not seen", id)
	}
	c, err := n.open(ctx, "tcp", s.addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	connect := &wire.ConnectRequest{Timeout: 10_000, SessionID: id, Password: s.password, HasReadOnly: true}
	if _, err := c.Write(wire.AppendFrame(nil, connect)); err != nil {
		return err
	}
	if _, err := readFrame(c); err != nil {
		return err
	}
	if n.prove != nil {
		if err := prove(ctx, n.prove, c, s.addr); err != nil {
			return err
		}
	}
	closing := &wire.RequestHeader{Xid: 1, Op: wire.OpCloseSession}
	if _, err := c.Write(wire.AppendFrame(nil, closing)); err != nil {
		return err
	}
	_, err = readFrame(c)
	return err
}

// prove is the exchange of SASL.
func prove(ctx context.Context, mechanism sasl.Mechanism, c net.Conn, addr string) error {
	host, _, _ := net.SplitHostPort(addr)
	exchange, err := mechanism.Begin(ctx, sasl.Server{Host: host, Addr: addr})
	if err != nil {
		return err
	}
	var r wire.SASLResponse
	for {
		answer, done, err := exchange.Step(r.Token)
		if err != nil || answer == nil {
			return err
		}
		if _, err := c.Write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: 1, Op: wire.OpSASL}, &wire.SASLRequest{Token: answer})); err != nil {
			return err
		}
		reply, err := readFrame(c)
		if err != nil || done {
			return err
		}
		d := wire.NewDecoder(reply[4+wire.ReplyHeaderLen:])
		if r.Decode(d); d.Err() != nil {
			return d.Err()
		}
	}
}

// Close cuts everything and waits for the goroutines.
func (n *Net) Close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.Thaw()
	n.CutAll()
	n.wg.Wait()
}
