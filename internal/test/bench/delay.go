package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// overDelays measures free locks behind networks that take 0, 1 and 5 ms in each
// direction.
func overDelays(ctx context.Context, p plan, s server) (steps []step) {
	for _, d := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		group := fmt.Sprintf("%d ms each way", d.Milliseconds())
		steps = append(steps, step{group, func() ([]result, error) { return overDelay(ctx, p, s, group, d) }})
	}
	return steps
}

func overDelay(ctx context.Context, p plan, s server, group string, d time.Duration) (_ []result, err error) {
	far, err := startProxy(ctx, s.addr, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = closers{far.close}.close(err) }()
	p.turns = max(1, p.turns/5)
	return uncontended(ctx, p, server{name: s.name, addr: far.addr()}, group, []candidate{raw, zkLock, mutex, writeSide, multiLock(3)})
}

// proxy passes on bytes after a delay, as many as come.
type proxy struct {
	l     net.Listener
	to    string
	delay time.Duration
	wg    sync.WaitGroup
	life  context.Context
	stop  context.CancelFunc
}

func startProxy(ctx context.Context, to string, delay time.Duration) (*proxy, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{l: l, to: to, delay: delay}
	p.life, p.stop = context.WithCancel(ctx)
	p.wg.Go(p.accept)
	return p, nil
}

func (p *proxy) addr() string { return p.l.Addr().String() }

func (p *proxy) close() error {
	p.stop()
	err := p.l.Close()
	p.wg.Wait()
	return err
}

func (p *proxy) accept() {
	for {
		near, err := p.l.Accept()
		if err != nil {
			return
		}
		far, err := new(net.Dialer).DialContext(p.life, "tcp", p.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		end := context.AfterFunc(p.life, func() { _, _ = near.Close(), far.Close() })
		var both sync.WaitGroup
		both.Go(func() { p.carry(near, far) })
		both.Go(func() { p.carry(far, near) })
		p.wg.Go(func() { both.Wait(); end() })
	}
}

// chunk is what arrived at once, and when it is due at the other end.
type chunk struct {
	bytes []byte
	due   time.Time
}

// carry copies one way and ends both connections when one does.
func (p *proxy) carry(from, to net.Conn) {
	chunks := make(chan chunk, 1024)
	var wg sync.WaitGroup
	wg.Go(func() {
		for c := range chunks {
			_ = pause(p.life, time.Until(c.due)) // at the end writing fails
			if _, err := to.Write(c.bytes); err != nil {
				_ = from.Close()
			}
		}
		_ = to.Close()
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			chunks <- chunk{append([]byte(nil), buf[:n]...), time.Now().Add(p.delay)}
		}
		if err != nil {
			break
		}
	}
	close(chunks)
	wg.Wait()
	_ = from.Close()
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
