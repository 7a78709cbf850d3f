package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/internal/session/watch"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Notice is what a stream is told.
type Notice = watch.Notice

// Stream is a persistent watch.
type Stream = watch.Stream

// The kinds of notices.
const (
	Established = watch.Established
	Changed     = watch.Changed
	Gap         = watch.Gap
	Ended       = watch.Ended
)

// Follow sets a persistent watch, and waits until it stands. fn gets every notice from the
// first Established on, which comes before Follow returns. It runs in the goroutine that
// reads the connection, or in one that ends it, and must not block.
func Follow(ctx context.Context, s *Session, c *transport.Conn, path string, subtree bool, fn func(Notice)) (*Stream, error) {
	if s.Lacks(wire.OpAddWatch) {
		return nil, &CodeError{Code: wire.CodeUnimplemented}
	}
	first, waiting := make(chan error, 1), true // waiting is fn's, whose calls do not overlap
	st, err := s.watches.Follow(c, path, subtree, func(call *transport.Call) { s.window.take(call) }, func(n Notice) {
		switch {
		case !waiting:
		case n.Kind == Established:
			defer func() { first <- nil }()
		default:
			first <- NoticeError(n)
			fn = func(Notice) {}
		}
		waiting = false
		fn(n)
	})
	var lost *transport.LostError
	switch {
	case errors.As(err, &lost):
		return nil, lostError(err, false)
	case err != nil:
		return nil, err
	}
	select {
	case err = <-first:
	case <-ctx.Done():
		err = s.contextEnd(ctx)
	case <-s.life.Done():
		err = ErrClosed
	}
	if err != nil {
		s.watches.Unfollow(st)
		return nil, err
	}
	return st, nil
}

// Unfollow gives a stream up, and its watch if nobody else has one on its path. Its function
// may be running, or about to.
func Unfollow(s *Session, st *Stream) { s.watches.Unfollow(st) }

// NoticeError says why a stream has a gap or an end.
func NoticeError(n Notice) error {
	switch {
	case n.Kind == Gap:
		return fmt.Errorf("%w: %w", ErrNotConnected, n.Err)
	case n.Err != nil:
		return n.Err
	case n.Code == wire.CodeMarshallingError:
		return fmt.Errorf("%w: recursive watches, as with the watch manager for bitmaps: %w", ErrUnsupported, Error(n.Code))
	}
	return Error(n.Code)
}
