package memnet

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// maxUnread is how many bytes a stream holds before writers wait, like the
// buffers of two sockets.
const maxUnread = 4 << 20

// keepBuffer is the capacity up to which an emptied buffer is used again.
const keepBuffer = 64 << 10

// stream carries bytes one way.
type stream struct {
	latency func() time.Duration
	// readable and writable hold at most one token: that it is worth looking again.
	readable, writable chan struct{}

	mu      sync.Mutex // guards the fields below; held for copying only
	buf     []byte     // sent and not read, from off on
	off     int
	arrived int      // how many of those bytes may be read
	flights []flight // the others, in order
	latest  time.Time
	end     error // what the reader gets after the bytes, once the writer has closed
	ended   time.Time
	gone    bool // the reader has closed; bytes vanish
	noticed time.Time
}

// flight is n bytes that arrive together.
type flight struct {
	n  int
	at time.Time
}

func newStream(latency func() time.Duration) *stream {
	if latency == nil {
		latency = func() time.Duration { return 0 }
	}
	return &stream{
		latency:  latency,
		readable: make(chan struct{}, 1),
		writable: make(chan struct{}, 1),
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// arrivalLocked returns when what is sent now arrives, never before what was
// sent earlier; the zero time is at once.
func (s *stream) arrivalLocked() time.Time {
	d := s.latency()
	if d <= 0 && len(s.flights) == 0 {
		return time.Time{}
	}
	at := time.Now().Add(max(d, 0))
	if at.Before(s.latest) {
		at = s.latest
	}
	s.latest = at
	return at
}

// read copies what has arrived. If that is nothing, arrival says when the next
// bytes come, or the end does; zero if none are on the way.
func (s *stream) read(p []byte) (n int, arrival time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.landLocked()
	if n = copy(p, s.buf[s.off:s.off+s.arrived]); n > 0 {
		s.off += n
		s.arrived -= n
		if s.off == len(s.buf) {
			s.off, s.buf = 0, s.buf[:0]
			if cap(s.buf) > keepBuffer {
				s.buf = nil
			}
		}
		wake(s.writable)
	}
	switch {
	case n > 0 || s.arrived > 0:
	case len(s.flights) > 0:
		return 0, s.flights[0].at, nil
	case s.end == nil:
		return 0, time.Time{}, nil
	case time.Until(s.ended) > 0:
		return 0, s.ended, nil
	default:
		err = s.end
	}
	if s.arrived > 0 || len(s.flights) > 0 || s.end != nil {
		wake(s.readable) // for another reader, as this one does not wait
	}
	return n, time.Time{}, err
}

func (s *stream) landLocked() {
	if len(s.flights) == 0 {
		return
	}
	now := time.Now()
	for len(s.flights) > 0 && !s.flights[0].at.After(now) {
		s.arrived += s.flights[0].n
		s.flights = s.flights[1:]
	}
}

// write takes as much of p as there is room for.
func (s *stream) write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		if time.Until(s.noticed) <= 0 {
			return 0, os.NewSyscallError("write", syscall.EPIPE)
		}
		return len(p), nil
	}
	n := min(len(p), maxUnread-(len(s.buf)-s.off))
	if n == 0 {
		return 0, nil
	}
	if s.off > 0 && len(s.buf)+n > cap(s.buf) {
		s.buf = s.buf[:copy(s.buf, s.buf[s.off:])]
		s.off = 0
	}
	s.buf = append(s.buf, p[:n]...)
	if at := s.arrivalLocked(); at.IsZero() {
		s.arrived += n
	} else {
		s.flights = append(s.flights, flight{n, at})
	}
	wake(s.readable)
	if len(s.buf)-s.off < maxUnread {
		wake(s.writable) // for another writer
	}
	return n, nil
}

// finish ends the stream behind what was written; nil stands for io.EOF.
func (s *stream) finish(reason error) {
	if reason == nil {
		reason = io.EOF
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = reason
	s.ended = s.arrivalLocked()
	wake(s.readable)
}

// abandon says that the reader has gone. The writer learns it after the
// latency, and what it sends meanwhile is lost.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	s.noticed = s.arrivalLocked()
	s.buf, s.off, s.arrived, s.flights = nil, 0, 0, nil
	wake(s.writable)
}
