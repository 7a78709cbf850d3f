//go:build linux && (amd64 || arm64) && !paddock_noraw

package rawsocket

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// socket is a TCP connection most of whose system calls the Go scheduler is not
// told of.
//
// The scheduler prepares for each call that may block. It wakes its monitor if the process
// was at rest, as a client is that waits for a reply. That wakes a thread twice in each
// round trip. But these calls do not block: the poller has waited before. Waiting is still
// the poller's, so that deadlines and Close are as ever.
//
// A monitor that nobody wakes sleeps until the next timer of the process, and
// before that stops nobody who computes without a pause while others are ready.
// So the scheduler is told of a call unless a timer is due soon: see monitorTick.
//
// As with package net, any number of goroutines may read and write.
type socket struct {
	net.Conn
	raw syscall.RawConn
}

// New makes a connection of package net one of whose system calls the scheduler is not
// told. Another connection may do more than to pass on bytes, and is returned as it is.
func New(nc net.Conn) net.Conn {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nc
	}
	return &socket{Conn: nc, raw: raw}
}

// monitorTick is a timer that the monitor does not sleep past. A call sets it, and it is
// set again for as long as there are calls.
type monitorTick struct {
	timer *time.Timer
	state atomic.Int32
}

// monitor is for all sockets, as the monitor is for the whole process.
var monitor = newMonitorTick()

// The states of a monitorTick.
const (
	tickUnset  int32 = iota
	tickSet          // without a call since
	tickWanted       // when it is due it will be set again
)

// tickAfter is for how long the scheduler lets a goroutine compute while others
// are ready.
const tickAfter = 10 * time.Millisecond

// newMonitorTick makes one that is never due before the first call, however long this
// takes.
func newMonitorTick() *monitorTick {
	r := new(monitorTick)
	r.timer = time.AfterFunc(math.MaxInt64, r.due)
	r.timer.Stop()
	return r
}

// isSet sets the timer for a call, and reports whether it was set before.
func (r *monitorTick) isSet() bool {
	if r.state.Load() == tickWanted || r.state.CompareAndSwap(tickSet, tickWanted) {
		return true
	}
	if r.state.CompareAndSwap(tickUnset, tickWanted) {
		r.timer.Reset(tickAfter)
	}
	return false
}

func (r *monitorTick) due() {
	if !r.state.CompareAndSwap(tickSet, tickUnset) {
		r.state.Store(tickSet)
		r.timer.Reset(tickAfter)
	}
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) { return s.transfer("read", &receiving, s.raw.Read, p) }

// Write implements net.Conn.
func (s *socket) Write(p []byte) (int, error) { return s.transfer("write", &sending, s.raw.Write, p) }

// transfer is one reading or writing.
type transfer struct {
	p    []byte // what is left of the memory
	n    int
	err  error
	step func(fd uintptr) (done bool)
}

// Transfers are used again, as each would take two allocations.
var (
	receiving = sync.Pool{New: func() any { t := new(transfer); t.step = t.receive; return t }}
	sending   = sync.Pool{New: func() any { t := new(transfer); t.step = t.send; return t }}
)

// transfer goes on until its steps are done, or the deadline or Close ends it.
func (s *socket) transfer(op string, kind *sync.Pool, steps func(func(fd uintptr) bool) error, p []byte) (int, error) {
	t := kind.Get().(*transfer) //nolint:forcetypeassert // the pools have nothing else
	t.p, t.n, t.err = p, 0, nil
	err := steps(t.step)
	if err == nil {
		err = t.err
	}
	n := t.n
	t.p = nil
	kind.Put(t)
	return n, s.opError(op, err)
}

// opError is an error as package net gives it.
func (s *socket) opError(op string, err error) error {
	var raw *net.OpError
	var errno syscall.Errno
	switch {
	case errors.As(err, &raw): // it says "raw-read"
		raw.Op = op
	case errors.As(err, &errno):
		return &net.OpError{Op: op, Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: os.NewSyscallError(op, errno)}
	}
	return err
}

func (t *transfer) receive(fd uintptr) (done bool) {
	if len(t.p) == 0 {
		return true
	}
	var again bool
	t.n, again, t.err = move(syscall.SYS_RECVFROM, fd, t.p, syscall.MSG_DONTWAIT)
	if t.n == 0 && t.err == nil && !again {
		t.err = io.EOF
	}
	return !again
}

func (t *transfer) send(fd uintptr) (done bool) {
	for len(t.p) > 0 {
		n, again, err := move(syscall.SYS_SENDTO, fd, t.p, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
		if again || err != nil {
			t.err = err
			return !again
		}
		t.n, t.p = t.n+n, t.p[n:]
	}
	return true
}

// move makes one system call. again says that it would have had to wait.
func move(call, fd uintptr, p []byte, flags uintptr) (n int, again bool, err error) {
	unheard := monitor.isSet()
	for {
		var r uintptr
		var errno syscall.Errno
		if unheard {
			r, _, errno = syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
		} else {
			r, _, errno = syscall.Syscall6(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
		}
		switch errno {
		case 0:
			return int(r), false, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true, nil
		default:
			return 0, false, errno
		}
	}
}
