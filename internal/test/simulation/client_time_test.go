package simulation

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport/random"
	"github.com/paddock-zk/paddock/retry"
)

// slot is a process with one client, which is replaced when it was closed.
type slot struct {
	w     *world
	name  string
	index int
	rate  float64 // of its clock

	mu      sync.Mutex // guards the fields below
	c       *framework.Client
	gen     int
	leaving bool          // its client is being closed
	gate    chan struct{} // closed to go on; nil while it is not paused
}

// mostDrift is how much faster or slower than the servers' a client's clock may
// run.
const mostDrift = 0.01

func (w *world) newSlot(i int) *slot {
	r := rand.New(rand.NewPCG(w.seed, 100+uint64(i)))
	s := &slot{w: w, name: fmt.Sprintf("c%d", i), index: i, rate: 1}
	if r.IntN(2) == 0 {
		s.rate = 1 + mostDrift*(2*r.Float64()-1)
		w.count("clock drift")
	}
	if w.planted.rate != 0 {
		s.rate = w.planted.rate
	}
	w.tell(s.name, "its clock runs at %.5f", s.rate)
	s.start()
	return s
}

// start makes the slot's client, or another one.
func (s *slot) start() {
	s.mu.Lock()
	gen := s.gen
	s.gen++
	s.mu.Unlock()
	c := s.w.client(fmt.Sprintf("%s.%d", s.name, gen), s.rate, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c, s.leaving = c, false
}

// leave returns the client to close, and false if another goroutine closes it.
func (s *slot) leave() (c *framework.Client, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	alone = !s.leaving
	s.leaving = true
	return s.c, alone
}

func (s *slot) client() *framework.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c
}

// client makes one with draws of its own.
func (w *world) client(name string, rate float64, s *slot) *framework.Client {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	seams := session.Seams{Clock: &drifting{base: time.Now(), rate: rate}, Random: random.Seeded(w.seed ^ h.Sum64())}
	dial := w.cluster.Dialer(name)
	cfg := framework.Config{
		ConnectString: w.cluster.ConnectString(), SessionTimeout: w.timeout, Retry: retry.NTimes(3, 50*time.Millisecond),
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if s == nil {
				return dial(ctx, network, addr)
			}
			if err := s.pass(ctx.Done()); err != nil {
				return nil, ctx.Err()
			}
			raw, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &pausable{Conn: raw, s: s, closed: make(chan struct{})}, nil
		},
	}
	if w.oneName {
		w.nameAll(&cfg)
	}
	c, err := framework.Start(cfg.WithSeams(session.Key{}, seams))
	if err != nil {
		panic(err)
	}
	return c
}

// nameAll gives all members one name, with an address for each.
func (w *world) nameAll(cfg *framework.Config) {
	members := make(map[string]string)
	var hosts []string
	for i, member := range strings.Split(cfg.ConnectString, ",") {
		host := fmt.Sprintf("10.0.0.%d", i+1)
		hosts = append(hosts, host)
		members[host+":2181"] = member
	}
	dial := cfg.DialContext
	cfg.ConnectString = "zk.sim:2181"
	if w.members == 1 {
		cfg.SessionLease = framework.LeaseByServer
	}
	cfg.LookupHost = func(context.Context, string) ([]string, error) { return hosts, nil }
	cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return dial(ctx, network, members[addr])
	}
}

// drifting is a clock that runs too fast or too slow.
type drifting struct {
	base time.Time
	rate float64
}

func (d *drifting) Since(t time.Time) time.Duration { return d.Now().Sub(t) }

func (d *drifting) Now() time.Time {
	if d.rate == 0 {
		return time.Now()
	}
	return d.base.Add(time.Duration(float64(time.Since(d.base)) * d.rate))
}

// pause makes the process stand still, as far as others can tell: nothing comes
// in and nothing goes out.
func (s *slot) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate == nil {
		s.gate = make(chan struct{})
	}
}

func (s *slot) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate != nil {
		close(s.gate)
		s.gate = nil
	}
}

// pass waits while the process stands still.
func (s *slot) pass(closed <-chan struct{}) error {
	for {
		s.mu.Lock()
		gate := s.gate
		s.mu.Unlock()
		if gate == nil {
			return nil
		}
		select {
		case <-gate:
		case <-closed:
			return net.ErrClosed
		}
	}
}

// pausable is a connection of a process that can stand still.
type pausable struct {
	net.Conn
	s      *slot
	once   sync.Once
	closed chan struct{}
}

func (p *pausable) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if gone := p.s.pass(p.closed); gone != nil {
		return 0, gone
	}
	return n, err
}

func (p *pausable) Write(b []byte) (int, error) {
	if gone := p.s.pass(p.closed); gone != nil {
		return 0, gone
	}
	return p.Conn.Write(b)
}

func (p *pausable) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Conn.Close()
}
