//go:build unix

package realzk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// link carries what one member sends to another's quorum and election ports over
// connections that the first one opens. While it is cut, it passes nothing in
// either direction and opens no connection. Open connections stay open, and go on
// where they stopped once the link is mended, as in a network that loses packets.
// What was on its way at the cut may still arrive.
type link struct {
	from, to         int
	gate             *gate
	quorum, election *forwarder
}

// newLink opens the listeners of a link; run starts them.
func newLink(from, to int, ports memberPorts) (*link, error) {
	g := newGate()
	quorum, err := newForwarder(hostPort(ports.quorum), g)
	if err != nil {
		return nil, err
	}
	election, err := newForwarder(hostPort(ports.election), g)
	if err != nil {
		return nil, errors.Join(err, quorum.listener.Close())
	}
	return &link{from, to, g, quorum, election}, nil
}

// endpoints is how the member at the near end addresses the one at the far end.
func (l *link) endpoints() endpoints {
	return endpoints{quorum: l.quorum.listener.Addr().String(), election: l.election.listener.Addr().String()}
}

// run starts both forwarders, which go on until life ends. back is the link in the
// other direction. A member introduces itself at an election port with its own
// address, and the other one may call back there. So the link puts the address of
// back in its place.
func (l *link) run(life context.Context, wg *sync.WaitGroup, back *link) {
	l.election.announce = back.endpoints().election
	wg.Go(func() { l.quorum.serve(life) })
	wg.Go(func() { l.election.serve(life) })
}

// close frees the ports of a link that does not run.
func (l *link) close() error {
	return errors.Join(l.quorum.listener.Close(), l.election.listener.Close())
}

// gate stops and lets go traffic.
type gate struct {
	mu     sync.Mutex
	isOpen bool
	opened chan struct{} // closed while the gate is open
}

func newGate() *gate {
	g := &gate{isOpen: true, opened: make(chan struct{})}
	close(g.opened)
	return g
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case open && !g.isOpen:
		close(g.opened)
	case !open && g.isOpen:
		g.opened = make(chan struct{})
	}
	g.isOpen = open
}

func (g *gate) passable() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isOpen
}

// wait returns true once the gate is open, and false if ctx ends first.
func (g *gate) wait(ctx context.Context) bool {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-opened:
		return true
	case <-ctx.Done():
		return false
	}
}

// forwarder joins each connection to its listener with one to target.
type forwarder struct {
	listener *net.TCPListener
	target   string
	gate     *gate
	announce string // replaces the address in an introduction; "" leaves all as it is
}

func newForwarder(target string, g *gate) (*forwarder, error) {
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(loopback)})
	if err != nil {
		return nil, err
	}
	return &forwarder{listener: ln, target: target, gate: g}, nil
}

// serve forwards until life ends, then closes the listener and all connections
// and waits for its goroutines.
func (f *forwarder) serve(life context.Context) {
	stop := context.AfterFunc(life, func() { _ = f.listener.Close() })
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		near, err := f.listener.AcceptTCP()
		if err != nil {
			return
		}
		wg.Go(func() { f.join(life, near) })
	}
}

// patience is how long a connection waits for the member behind a forwarder to
// listen. Followers hear of their leader before it listens. A follower that finds
// its port closed tries again, and one whose connection is reset goes back to
// voting.
const patience = time.Second

var errCut = errors.New("link is cut")

// join forwards one connection until either end closes it or life ends.
func (f *forwarder) join(life context.Context, near *net.TCPConn) {
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	far, err := f.dial(ctx)
	if err != nil {
		_ = near.SetLinger(0) // a reset is what comes closest to not listening
		_ = near.Close()
		return
	}
	context.AfterFunc(ctx, func() {
		_ = near.Close()
		_ = far.Close()
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		f.pump(ctx, far, near, f.announce)
	})
	wg.Go(func() {
		defer cancel()
		f.pump(ctx, near, far, "")
	})
	wg.Wait()
}

// dial connects to target, for which it waits a little. It fails if the link
// is cut.
func (f *forwarder) dial(ctx context.Context) (far net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = poll(ctx, func() (bool, error) {
		if !f.gate.passable() {
			return false, errCut
		}
		far, err = new(net.Dialer).DialContext(ctx, "tcp4", f.target)
		return err == nil, nil
	})
	return far, err
}

// pump copies from src to dst. It returns when either fails, but not while the
// gate is shut: that the other end has gone is news as well.
func (f *forwarder) pump(ctx context.Context, dst io.Writer, src io.Reader, announce string) {
	if announce != "" {
		head, err := readIntroduction(src, announce)
		if !f.gate.wait(ctx) || err != nil {
			return
		}
		if _, err := dst.Write(head); err != nil {
			return
		}
	}
	buf := make([]byte, 32<<10)
	for {
		n, readErr := src.Read(buf)
		if !f.gate.wait(ctx) {
			return
		}
		if _, err := dst.Write(buf[:n]); err != nil || readErr != nil {
			return
		}
	}
}

// readIntroduction reads what opens a connection to an election port and puts
// the given address into it. The member called back at the address it finds
// there would otherwise go around the link.
//
// Source: QuorumCnxManager.InitialMessage: a version (-65536, or -65535 with
// several addresses, joined by "|"), the server id, a length and the address.
// Older members send only their id, which is not negative.
func readIntroduction(src io.Reader, announce string) ([]byte, error) {
	const version1, version2 = -65536, -65535
	const longest = 1 << 12
	head := make([]byte, 8, 64)
	if _, err := io.ReadFull(src, head); err != nil {
		return nil, err
	}
	if v := int64(binary.BigEndian.Uint64(head)); v != version1 && v != version2 {
		return head, nil
	}
	var rest [12]byte
	if _, err := io.ReadFull(src, rest[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(rest[8:])
	if size > longest {
		return nil, fmt.Errorf("election address of %d bytes", size)
	}
	if _, err := io.CopyN(io.Discard, src, int64(size)); err != nil {
		return nil, err
	}
	head = append(head, rest[:8]...)
	head = binary.BigEndian.AppendUint32(head, uint32(len(announce)))
	return append(head, announce...), nil
}
