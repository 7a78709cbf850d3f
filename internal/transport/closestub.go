package transport

import (
	"encoding/binary"
	"net"
	"os"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// closeStub is the connection that go-zookeeper gets when the transport closes. It
// plays a server that grants the session asked for, takes the request to close
// it, and says that the session is over to everything else.
//
// Our own requests have closed the session by then, or could not. Left alone,
// go-zookeeper's Close waits a second for an answer whenever no server is there.
type closeStub struct {
	mu      sync.Mutex // guards the fields below
	shaken  bool
	answers []byte // what is to be read next
	ready   chan struct{}
	closed  chan struct{}
	over    bool
}

func newCloseStub() *closeStub {
	return &closeStub{ready: make(chan struct{}, 1), closed: make(chan struct{})}
}

// Write takes one frame and prepares its answer.
func (f *closeStub) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.shaken {
		f.shaken = true
		r := &wire.ConnectResponse{Timeout: 60_000, SessionID: 1, Password: make([]byte, 16)}
		f.answers = wire.AppendFrame(f.answers, r)
	} else if len(p) >= 12 {
		xid, op := int32(binary.BigEndian.Uint32(p[4:])), wire.Op(binary.BigEndian.Uint32(p[8:]))
		h := &wire.ReplyHeader{Xid: xid, Code: wire.CodeSessionExpired}
		if op == wire.OpCloseSession || op == wire.OpPing || op == wire.OpAuth {
			h.Code = wire.CodeOK
		}
		f.answers = wire.AppendFrame(f.answers, h)
	}
	select {
	case f.ready <- struct{}{}:
	default:
	}
	return len(p), nil
}

// Read returns answers as they come.
func (f *closeStub) Read(p []byte) (int, error) {
	for {
		f.mu.Lock()
		n := copy(p, f.answers)
		f.answers = f.answers[n:]
		f.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		select {
		case <-f.ready:
		case <-f.closed:
			return 0, net.ErrClosed
		}
	}
}

// Close ends a Read that waits.
func (f *closeStub) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.over = true
		close(f.closed)
	}
	return nil
}

// LocalAddr implements net.Conn, as do the methods below.
func (f *closeStub) LocalAddr() net.Addr { return closeStubAddr{} }

// RemoteAddr implements net.Conn.
func (f *closeStub) RemoteAddr() net.Addr { return closeStubAddr{} }

// SetDeadline implements net.Conn.
func (f *closeStub) SetDeadline(time.Time) error { return os.ErrNoDeadline }

// SetReadDeadline implements net.Conn.
func (f *closeStub) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (f *closeStub) SetWriteDeadline(time.Time) error { return nil }

type closeStubAddr struct{}

func (closeStubAddr) Network() string { return "none" }
func (closeStubAddr) String() string  { return "closing" }
