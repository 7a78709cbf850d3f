package zktest

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// TB is the part of testing.TB that zktest uses, so that programs need not link
// package testing.
type TB interface {
	Helper()
	Name() string
	Cleanup(fn func())
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// ErrNoSession reports a session that the server does not know.
var ErrNoSession = errors.New("no such session")

// ErrClosed reports a call on a server that was closed.
var ErrClosed = errors.New("server is closed")

// Server is one standalone server, or a member of a cluster. Its methods may be
// called from any goroutine.
type Server struct {
	e       *ensemble
	members []*member // those it stands for: one, or all of a cluster
	tb      TB        // nil for a server made with New
	chroots atomic.Int64
}

// Start runs a server until the test ends. If the server cannot start, the test
// fails. The test also fails if a verb hits nothing, such as expiring a session
// that is not there, or if a rule meets no request.
func Start(t TB, opts ...Option) *Server {
	t.Helper()
	s, err := New(opts...)
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	s.begin(t)
	return s
}

// begin ties the server to a test.
func (s *Server) begin(t TB) {
	t.Helper()
	s.tb = t
	s.e.watch(t.Name())
	t.Cleanup(func() {
		t.Helper()
		for _, idle := range s.idleRules() {
			t.Errorf("zktest: %s", idle)
		}
		s.logOpen()
		if t.Failed() && s.e.cfg.transcript {
			var b strings.Builder
			_ = s.WriteTranscript(&b)
			t.Logf("what was said to the server:\n%s", b.String())
		}
		if err := s.Close(); err != nil {
			t.Errorf("zktest: close: %v", err)
		}
	})
}

// logOpen names the sessions whose clients were not closed at the end of a bubble, since the
// failure that follows, a deadlock, does not say whose goroutines are left.
func (s *Server) logOpen() {
	connected := func(open Session) bool { return open.Remote != "" }
	if !inBubble() || !slices.ContainsFunc(s.Sessions(), connected) {
		return
	}
	<-time.After(time.Second) // the end of a connection may be on its way
	for _, open := range s.Sessions() {
		if connected(open) {
			s.tb.Logf("zktest: session %#x is connected at the end of the test: if a deadlock follows, its client was not closed", open.ID)
		}
	}
}

// New is Start for programs and TestMain. The caller has to Close the server.
func New(opts ...Option) (*Server, error) {
	s, err := newServer(1, opts)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// newServer runs n members.
func newServer(n int, opts []Option) (*Server, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	e := newEnsemble(cfg, n)
	s := &Server{e: e, members: e.members}
	for _, m := range e.members {
		if err := m.open(); err != nil {
			return nil, errors.Join(fmt.Errorf("zktest: %w", err), s.Close())
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.members {
		m.data = e.newTree() // now that the ports are known
	}
	e.electLocked()
	e.setTimersLocked()
	return s, nil
}

// Close disconnects all clients, frees the ports and waits for the server's
// goroutines, except those that run a function given to Call or Match. It may
// be called more than once.
func (s *Server) Close() error {
	err := s.close()
	s.e.mu.Lock()
	playing := s.e.playing
	s.e.mu.Unlock()
	for _, p := range playing {
		<-p.ended
	}
	return err
}

func (s *Server) close() error {
	s.e.running <- struct{}{}
	defer func() { <-s.e.running }()
	s.e.mu.Lock()
	if s.e.closed {
		s.e.mu.Unlock()
		return nil
	}
	s.e.closed = true
	close(s.e.closing)
	for _, p := range s.e.playing {
		p.end()
	}
	s.e.stopTimersLocked()
	s.e.endWaitersLocked()
	s.e.mu.Unlock()
	var errs []error
	for _, m := range s.e.members {
		errs = append(errs, m.shut())
	}
	s.e.waitTimers()
	return errors.Join(errs...)
}

// ConnectString is the address that a client needs, such as "127.0.0.1:40123";
// for a cluster, those of all members with commas between. In memory it has
// that form too, since some clients look names up. Nobody listens there: only
// DialContext knows the address.
func (s *Server) ConnectString() string {
	addrs := make([]string, len(s.members))
	for i, m := range s.members {
		addrs[i] = m.endpoint.addr
	}
	return strings.Join(addrs, ",")
}

// Chroot returns ConnectString with an empty chroot of this test's own, on a
// server that tests share.
func (s *Server) Chroot(t TB) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, t.Name())
	path := fmt.Sprintf("/%s-%d", name, s.chroots.Add(1))
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	out, err := s.e.ownLocked(wire.OpCreate, tree.Caller{IDs: []tree.ID{tree.SuperID}}, &wire.CreateRequest{
		Path: path, ACL: []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}},
	})
	switch {
	case err != nil:
		t.Fatalf("zktest: create %s: %v", path, err)
	case out.Result.Op == wire.OpError:
		t.Fatalf("zktest: create %s: %v", path, out.Result.Code)
	}
	return s.ConnectString() + path
}

// DialContext opens a client's connection, over TCP or in memory. In memory
// the only addresses are those of ConnectString. It panics if only one of the two, server or
// caller, is in a bubble of testing/synctest, since they would have different clocks.
func (s *Server) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return s.Dialer("")(ctx, network, addr)
}

// Dialer is DialContext for the client of that name. In memory, the latencies
// that LatencyBy draws for a client depend on the seed, its name and how many
// connections it has opened. They do not depend on other clients, so a
// simulation with many of them repeats.
func (s *Server) Dialer(client string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		switch there, here := ofBubble(s.e.begun), inBubble(); {
		case here && !there:
			panic("zktest: the client is in a synctest bubble, and its server is outside: start the server within synctest.Test, with InMemory")
		case there && !here:
			panic("zktest: the server is in a synctest bubble, and its client is outside: connect within synctest.Test")
		case s.e.cfg.memory:
			return s.e.dial(ctx, client, addr)
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}

func newEnsemble(cfg config, n int) *ensemble {
	e := &ensemble{
		cfg:      cfg,
		running:  make(chan struct{}, 1),
		closing:  make(chan struct{}),
		begun:    time.Now(),
		origin:   time.Now(),
		host:     memoryHost(),
		sessions: newSessions(),
		requests: make(map[string]int),
		dials:    make(map[string]int),
		waiters:  make(map[*waiter]struct{}),
	}
	e.latency.Store(int64(cfg.latency))
	if binary.BigEndian.PutUint64(e.secret[:], cfg.seed); cfg.seed == 0 {
		_, _ = rand.Read(e.secret[:]) // never fails
	}
	for i := range n {
		e.members = append(e.members, newMember(e, i))
		e.cut = append(e.cut, make([]bool, n))
	}
	for _, m := range e.members {
		m.data = e.newTree()
	}
	e.head = e.members[n-1]
	return e
}

// newTree returns the data of a new member.
func (e *ensemble) newTree() *tree.Tree {
	t := tree.New()
	t.Limit, t.Reconfig, t.NoTTL, t.Release = e.cfg.limits.Data, e.cfg.reconfig, e.cfg.noTTL, e.cfg.release
	t.SASL, t.X509, t.Containers = e.cfg.saslUsers != nil, e.cfg.tls != nil, e.cfg.keeper != nil
	if len(e.members) > 1 {
		t.SetConfig(e.membership())
	}
	return t
}

// secure wraps an accepted connection as configured.
func (e *ensemble) secure(raw net.Conn) net.Conn {
	if e.cfg.tls == nil {
		return raw
	}
	return tls.Server(raw, e.cfg.tls)
}
