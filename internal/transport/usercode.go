package transport

import (
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/foreign"
)

// PanicError reports a function of the user's that panicked or ended its
// goroutine: the dialer, a method of its connection, the look-up of names, or
// what TLS calls.
type PanicError struct {
	Func  string // such as "Config.DialContext"
	Value any    // what it panicked with; nil if it called runtime.Goexit
	Stack []byte // of the goroutine, at the panic
}

// Error implements error.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return e.Func + " ended its goroutine, as runtime.Goexit does"
	}
	return fmt.Sprintf("%s panicked: %v", e.Func, e.Value)
}

// callUser calls a function of the user's. If that does not return, *err says
// so: after a panic to the caller, after runtime.Goexit to deferred functions.
func callUser(name string, err *error, fn func()) {
	returned := false
	defer func() {
		if !returned {
			*err = &PanicError{Func: name, Value: recover(), Stack: debug.Stack()}
		}
	}()
	fn()
	returned = true
}

// usersError is an error of a function of the user's, which matches no error that
// means something here. A panic in the function stays a *PanicError.
func usersError(err error) error {
	var panicked *PanicError
	if errors.As(err, &panicked) {
		return panicked
	}
	return foreign.Wrap(err)
}

// wrappedConn is a connection of the user's dialer, or one of TLS, which calls
// functions of the user's. A panic in one of its methods is an error, and its
// Close does not block for long.
//
// runtime.Goexit ends the goroutine all the same. So Read and Write are called
// only by goroutines that may end: see Conn.Read, Conn.writeLoop and Link.apart.
type wrappedConn struct {
	net.Conn
	transport *Transport
	closing   atomic.Bool
}

func (l *Transport) wrap(nc net.Conn) net.Conn { return &wrappedConn{Conn: nc, transport: l} }

// mostClosing is how long Close waits for a connection that does not close.
const mostClosing = 100 * time.Millisecond

var errStillClosing = errors.New("the connection does not close")

// orPanic is deferred by the methods of a wrappedConn.
func orPanic(method string, err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Func: method + " of the connection", Value: v, Stack: debug.Stack()}
	}
}

// Read implements net.Conn.
func (s *wrappedConn) Read(p []byte) (n int, err error) {
	defer orPanic("Read", &err)
	return s.Conn.Read(p)
}

// Write implements net.Conn.
func (s *wrappedConn) Write(p []byte) (n int, err error) {
	defer orPanic("Write", &err)
	return s.Conn.Write(p)
}

// LocalAddr implements net.Conn. It is nil after a panic.
func (s *wrappedConn) LocalAddr() net.Addr {
	var addr net.Addr
	var err error
	callUser("LocalAddr of the connection", &err, func() { addr = s.Conn.LocalAddr() })
	return addr
}

// RemoteAddr implements net.Conn. It is nil after a panic.
func (s *wrappedConn) RemoteAddr() net.Addr {
	var addr net.Addr
	var err error
	callUser("RemoteAddr of the connection", &err, func() { addr = s.Conn.RemoteAddr() })
	return addr
}

// SetDeadline implements net.Conn.
func (s *wrappedConn) SetDeadline(t time.Time) (err error) {
	defer orPanic("SetDeadline", &err)
	return s.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (s *wrappedConn) SetReadDeadline(t time.Time) (err error) {
	defer orPanic("SetReadDeadline", &err)
	return s.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (s *wrappedConn) SetWriteDeadline(t time.Time) (err error) {
	defer orPanic("SetWriteDeadline", &err)
	return s.Conn.SetWriteDeadline(t)
}

// Close closes the connection in a goroutine of its own, and waits for it for
// mostClosing.
func (s *wrappedConn) Close() error {
	if s.closing.Swap(true) {
		return net.ErrClosed
	}
	closed := make(chan error, 1)
	s.transport.wg.Go(func() {
		var err error
		defer func() { closed <- err }()
		callUser("Close of the connection", &err, func() { err = s.Conn.Close() })
	})
	late := time.NewTimer(mostClosing)
	defer late.Stop()
	select {
	case err := <-closed:
		return err
	case <-late.C:
		return errStillClosing
	}
}

// errExited is what a connection fails with whose goroutine was ended.
var errExited error = &PanicError{Func: "a method of the connection"}

// ifExited is deferred, and calls fn if runtime.Goexit ends the goroutine before
// over is set.
func ifExited(over *bool, fn func()) {
	if *over {
		return
	}
	if v := recover(); v != nil {
		panic(v) // a mistake of ours
	}
	fn()
}

// apart runs fn in a goroutine of its own, which may end.
func (l *Transport) apart(fn func() error) error {
	done := make(chan error, 1)
	l.wg.Go(func() {
		err := errExited
		defer func() { done <- err }()
		err = fn()
	})
	return <-done
}
