package zktest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paddock-zk/paddock/testing/internal/memnet"
)

// endpoint is where a member is reached.
type endpoint struct {
	addr      string       // what to listen on; once open, where we are reached
	listener  net.Listener // nil in memory and while stopped
	accepting sync.WaitGroup
}

// open begins to accept connections.
func (m *member) open() error {
	if !m.e.cfg.memory {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", m.endpoint.addr)
		if err != nil {
			return err
		}
		m.endpoint.listener = l
		if addr := l.Addr().String(); addr != m.endpoint.addr {
			m.endpoint.addr = addr // the first time only, before others can ask
		}
	}
	m.e.mu.Lock()
	m.down, m.since = false, time.Now()
	m.e.mu.Unlock()
	if l := m.endpoint.listener; l != nil {
		m.endpoint.accepting.Go(func() { m.acceptAll(l) })
	}
	return nil
}

// acceptAll is the accepting goroutine.
func (m *member) acceptAll(l net.Listener) {
	for {
		raw, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file descriptors, most likely
			<-time.After(10 * time.Millisecond)
			continue
		}
		if !m.accept(raw) {
			_ = raw.(*net.TCPConn).SetLinger(0)
			_ = raw.Close()
		}
	}
}

// accept serves a connection, or returns false to turn it away.
func (m *member) accept(raw net.Conn) bool {
	nc := m.e.secure(raw)
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	if m.e.closed || m.down || m.refuses || !m.roomLocked(raw) {
		return false
	}
	m.acceptLocked(raw, nc)
	return true
}

// memoryHosts counts the names given out.
var memoryHosts atomic.Uint32

// memoryHost returns a name that no other server in memory has: an address,
// which needs no look-up, on loopback, where nobody listens on such low ports.
func memoryHost() string {
	n := memoryHosts.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", n>>16&0xff, n>>8&0xff, n&0xff)
}

// dial opens a connection in memory.
func (e *ensemble) dial(ctx context.Context, client, addr string) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "mem", Addr: memnet.Addr(addr), Err: err}
	}
	var m *member
	for _, known := range e.members {
		if known.endpoint.addr == addr {
			m = known
		}
	}
	if m == nil {
		return fail(fmt.Errorf("no server at %s in memory", addr))
	}
	there, back := e.ways(client)
	if err := wait(ctx, there()+back()); err != nil {
		return fail(err)
	}
	port := 50000 + e.dialed.Add(1)
	from, to := memnet.Addr(fmt.Sprintf("127.0.0.1:%d", port)), memnet.Addr(addr)
	near, far := memnet.Pipe(from, to, there, back)
	if !m.accept(far) {
		return fail(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	return near, nil
}

// ways returns the latencies of a new connection of a client, there and back.
// Each is asked for by one goroutine at a time.
func (e *ensemble) ways(client string) (there, back func() time.Duration) {
	e.mu.Lock()
	e.dials[client]++
	n := e.dials[client]
	e.mu.Unlock()
	name := fnv.New64a()
	_, _ = fmt.Fprintf(name, "%s/%d", client, n)
	way := func(stream uint64) func() time.Duration {
		source := rand.NewPCG(0, 0)
		r := rand.New(source)
		return func() time.Duration {
			d := time.Duration(e.latency.Load())
			if e.cfg.latencyBy != nil {
				// Not one draw after the other: whether what is sent at one
				// instant takes one write or two is the scheduler's choice.
				source.Seed(e.cfg.seed^name.Sum64(), uint64(time.Since(e.begun))<<1^stream)
				d += e.cfg.latencyBy(r)
			}
			return d
		}
	}
	return way(1), way(2)
}

// wait lets d pass.
func wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d == 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shut undoes open: it closes the listener and cuts all connections, and waits
// for their goroutines, save those that run a function of the test's.
func (m *member) shut() error {
	m.e.mu.Lock()
	conns := m.cutAllLocked()
	m.thawLocked()
	m.lookLocked() // the others hear that its connections end
	m.down = true
	m.e.mu.Unlock()

	var err error
	if m.endpoint.listener != nil {
		err = m.endpoint.listener.Close()
		m.endpoint.listener = nil
	}
	resetAll(conns)
	m.endpoint.accepting.Wait()
	for _, c := range conns {
		c.join()
	}
	return err
}

// cutAllLocked cuts all connections, in the order in which they came. The
// caller resets them when it has let go of the lock.
func (m *member) cutAllLocked() []*conn {
	conns := m.sortedConnsLocked()
	for _, c := range conns {
		c.cutLocked()
	}
	return conns
}

// join waits until the connection's goroutines have ended or run a function of
// the test's, which may be waiting for us.
func (c *conn) join() {
	c.m.e.mu.Lock()
	calling := c.calling // stays false: no call begins once the connection is over
	c.m.e.mu.Unlock()
	if !calling {
		<-c.ended
	}
}
