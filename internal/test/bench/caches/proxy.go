//go:build unix

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"
)

// proxy stands between a client and a server. It delays each byte, counts requests, can cut
// all connections, and knows when the first and the last byte of a conversation passed.
// Pings do not count.
type proxy struct {
	l     net.Listener
	to    string
	delay time.Duration
	wg    sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	refuses bool
	open    map[net.Conn]struct{}
	seen    traffic
}

type traffic struct {
	requests    int
	up, down    int // bytes
	first, last time.Time
}

func (t traffic) took() time.Duration { return t.last.Sub(t.first) }

func startProxy(ctx context.Context, to string, delay time.Duration) (*proxy, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{l: l, to: to, delay: delay, open: make(map[net.Conn]struct{})}
	p.wg.Go(func() { p.serve(ctx) })
	return p, nil
}

func (p *proxy) close() error {
	err := p.l.Close()
	p.cut()
	p.wg.Wait()
	return err
}

func (p *proxy) serve(ctx context.Context) {
	for {
		near, err := p.l.Accept()
		if err != nil {
			return
		}
		far, err := new(net.Dialer).DialContext(ctx, "tcp", p.to)
		p.mu.Lock()
		if p.refuses || err != nil {
			p.mu.Unlock()
			_ = near.Close()
			if err == nil {
				_ = far.Close()
			}
			continue
		}
		p.open[near], p.open[far] = struct{}{}, struct{}{}
		p.wg.Go(func() { p.carry(near, far, true) })
		p.wg.Go(func() { p.carry(far, near, false) })
		p.mu.Unlock()
	}
}

// cut ends all connections and refuses new ones, until mend.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = true
	for c := range p.open {
		_ = c.Close()
	}
	clear(p.open)
}

func (p *proxy) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses, p.seen = false, traffic{}
}

// traffic is what has passed since the last call, and forgets it.
func (p *proxy) traffic() traffic {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = traffic{}
	return seen
}

// quiet waits until nothing has passed for so long, after something has.
func (p *proxy) quiet(ctx context.Context, d time.Duration) error {
	for {
		p.mu.Lock()
		last := p.seen.last
		p.mu.Unlock()
		if !last.IsZero() && time.Since(last) > d {
			return nil
		}
		select {
		case <-time.After(d / 10):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// chunk is what arrived at once, and when it is due at the other end.
type chunk struct {
	bytes  []byte
	counts int // of them
	due    time.Time
}

func (p *proxy) carry(from, to net.Conn, up bool) {
	defer func() { _, _ = from.Close(), to.Close() }()
	chunks, done := make(chan chunk, 4096), make(chan struct{})
	go func() {
		defer close(done)
		for c := range chunks {
			<-time.After(time.Until(c.due))
			if _, err := to.Write(c.bytes); err != nil {
				_ = from.Close()
			}
			p.note(0, c.counts, up, time.Now())
		}
	}()
	var frames frames
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		bytes, whole := frames.feed(buf[:n])
		p.note(whole, 0, up, time.Now())
		switch {
		case n == 0:
		case p.delay > 0:
			chunks <- chunk{append([]byte(nil), buf[:n]...), bytes, time.Now().Add(p.delay)}
		default:
			if _, writeErr := to.Write(buf[:n]); writeErr != nil {
				err = errors.Join(err, writeErr)
			}
			p.note(0, bytes, up, time.Now())
		}
		if err != nil {
			break
		}
	}
	close(chunks)
	<-done
}

func (p *proxy) note(requests, bytes int, up bool, now time.Time) {
	if requests == 0 && bytes == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen.first.IsZero() {
		p.seen.first = now
	}
	p.seen.last = now
	if up {
		p.seen.requests += requests
		p.seen.up += bytes
	} else {
		p.seen.down += bytes
	}
}

// frames counts frames in a stream.
type frames struct {
	head [8]byte
	have int
	left int // bytes of a frame behind its head
	ping bool
}

// feed takes in some bytes. It returns how many of them are of no ping, and how many such
// frames have begun.
func (f *frames) feed(b []byte) (bytes, begun int) {
	const ping = 0xfffffffe
	for len(b) > 0 {
		if f.left > 0 {
			n := min(f.left, len(b))
			if !f.ping {
				bytes += n
			}
			f.left, b = f.left-n, b[n:]
			continue
		}
		n := copy(f.head[f.have:], b)
		f.have, b = f.have+n, b[n:]
		if f.have < len(f.head) {
			break
		}
		f.have, f.left = 0, int(binary.BigEndian.Uint32(f.head[:]))-4
		if f.ping = binary.BigEndian.Uint32(f.head[4:]) == ping; !f.ping {
			bytes, begun = bytes+len(f.head), begun+1
		}
	}
	return bytes, begun
}
