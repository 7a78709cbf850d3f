package zktest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Plan is faults and verbs drawn from a seed.
//
// Whether a request is hit follows from the seed, its session, and how many
// requests of that session the plan has seen before. It does not depend on what
// other sessions do meanwhile. So if a client does the same again, the same
// seed hits the same requests. In virtual time, if each connection has a
// latency of its own (LatencyBy), the whole order repeats.
type Plan struct {
	Seed uint64

	// Match selects the requests that may be hit. Its field Nth is ignored. The
	// zero value selects all.
	Match Match
	// Rate is the probability that such a request is hit, from 0 to 1.
	Rate float64
	// Faults are the faults that may happen to it, each with the same
	// probability.
	Faults []Fault

	// Pause draws the time before the first verb and between verbs. Nil means
	// no verbs.
	Pause Distribution
	// Verbs are the verbs that may happen to the server, each with the same
	// probability.
	Verbs []Verb

	// Replay, if it is not nil, replaces all random choices. It is the log of a
	// plan with the same Faults and Verbs, and the same things happen again.
	Replay []Fired
}

// Verb is something that a plan may do to a server.
type Verb struct {
	Name string
	// Do does it. It must draw all random numbers from r. It may wait, and the
	// plan waits for it.
	Do func(r *rand.Rand)
}

// Fired is one thing that a plan did. It can be encoded as JSON.
type Fired struct {
	At      time.Duration // since the plan began
	Index   int           // in Verbs or Faults
	Verb    string        // the verb's name, "" for a fault
	Fault   string        // what happened to a request
	Session int64
	N       int // the request was the n-th of its session that the plan saw
	Op      string
	Path    string
	Seed    uint64 // of a verb's chance
}

// String is one line of a log.
func (f Fired) String() string {
	if f.Verb != "" {
		return fmt.Sprintf("%v verb %d %s", f.At, f.Index, f.Verb)
	}
	return fmt.Sprintf("%v fault %d %s on request %d of %#x: %s %s", f.At, f.Index, f.Fault, f.N, f.Session, f.Op, f.Path)
}

// Playing is a plan under way.
type Playing struct {
	e     *ensemble
	plan  Plan
	rule  *Rule
	begun time.Time
	stop  chan struct{}
	once  sync.Once
	ended chan struct{}

	mu   sync.Mutex // guards the fields below
	seen map[int64]int
	log  []Fired
}

// Play carries out a plan until Stop, or Close of the server.
func (s *Server) Play(p Plan) *Playing {
	playing := &Playing{
		e: s.e, plan: p, begun: time.Now(),
		stop: make(chan struct{}), ended: make(chan struct{}), seen: make(map[int64]int),
	}
	if len(p.Faults) > 0 {
		m := p.Match
		m.Nth = 0
		playing.rule = s.On(m, Choose(playing.choose))
	}
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.e.playing = append(s.e.playing, playing)
	if s.e.closed {
		playing.end()
	}
	go playing.run()
	return playing
}

// Stop ends the plan and waits for a verb that is under way. Do not call it
// from a verb.
func (p *Playing) Stop() {
	p.end()
	<-p.ended
}

func (p *Playing) end() {
	p.once.Do(func() { close(p.stop) })
}

func (p *Playing) stopped() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}

// Log returns what has fired, in that order.
func (p *Playing) Log() []Fired {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

// choose decides about one request.
func (p *Playing) choose(req Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped() {
		return Fault{}
	}
	p.seen[req.Session]++
	n := p.seen[req.Session]
	i := p.drawLocked(req.Session, n)
	if i < 0 {
		return Fault{}
	}
	f := p.plan.Faults[i]
	p.log = append(p.log, Fired{
		At: time.Since(p.begun), Index: i, Fault: f.String(), Session: req.Session, N: n, Op: req.Op, Path: req.Path,
	})
	return f
}

// drawLocked returns which fault is to hit a request, -1 for none.
func (p *Playing) drawLocked(session int64, n int) int {
	if p.plan.Replay != nil {
		for _, f := range p.plan.Replay {
			if f.Verb == "" && f.Session == session && f.N == n && f.Index < len(p.plan.Faults) {
				return f.Index
			}
		}
		return -1
	}
	r := rand.New(rand.NewPCG(p.plan.Seed, uint64(session)*0x9e3779b97f4a7c15+uint64(n)))
	if r.Float64() >= p.plan.Rate {
		return -1
	}
	return r.IntN(len(p.plan.Faults))
}

// run does the verbs.
func (p *Playing) run() {
	defer close(p.ended)
	defer func() {
		if p.rule != nil {
			p.rule.Remove()
		}
	}()
	next := p.drawn()
	if p.plan.Replay != nil {
		next = p.replayed()
	}
	for {
		f, ok := next()
		if !ok {
			<-p.stop
			return
		}
		// A verb that is late leaves everybody a moment to feel the one before,
		// or the scheduler would choose who does.
		timer := time.NewTimer(max(time.Until(p.begun.Add(f.At)), time.Microsecond))
		select {
		case <-timer.C:
		case <-p.stop:
		}
		timer.Stop()
		if p.stopped() {
			return
		}
		p.mu.Lock()
		p.log = append(p.log, f)
		p.mu.Unlock()
		p.plan.Verbs[f.Index].Do(rand.New(rand.NewPCG(f.Seed, 0)))
	}
}

// drawn returns the verbs that chance brings.
func (p *Playing) drawn() func() (Fired, bool) {
	r := rand.New(rand.NewPCG(p.plan.Seed, 0))
	at := time.Duration(0)
	return func() (Fired, bool) {
		if p.plan.Pause == nil || len(p.plan.Verbs) == 0 {
			return Fired{}, false
		}
		at += max(p.plan.Pause(r), 1)
		i := r.IntN(len(p.plan.Verbs))
		return Fired{At: at, Index: i, Verb: p.plan.Verbs[i].Name, Seed: r.Uint64()}, true
	}
}

// replayed returns the verbs of a log.
func (p *Playing) replayed() func() (Fired, bool) {
	rest := p.plan.Replay
	return func() (Fired, bool) {
		for len(rest) > 0 {
			f := rest[0]
			rest = rest[1:]
			if f.Verb != "" && f.Index < len(p.plan.Verbs) {
				return f, true
			}
		}
		return Fired{}, false
	}
}

// Verbs returns the verbs for one server, for Plan.Verbs. One disconnects a
// session, and another all of them. Others expire a session, freeze or restart the
// server, stall a session's connection one way or both ways, and sweep. What a verb
// does is over when its Do returns, or after d at most.
func (s *Server) Verbs(d time.Duration) []Verb {
	session := func(r *rand.Rand) int64 {
		all := s.Sessions()
		if len(all) == 0 {
			return 0
		}
		return all[r.IntN(len(all))].ID
	}
	verbs := []Verb{
		{"disconnect", func(r *rand.Rand) { s.quietly(func(s *Server) error { return s.Disconnect(session(r)) }) }},
		{"disconnect all", func(*rand.Rand) { s.DisconnectAll() }},
		{"expire", func(r *rand.Rand) { s.quietly(func(s *Server) error { return s.ExpireSession(session(r)) }) }},
		{"freeze", func(r *rand.Rand) {
			s.Freeze()
			s.pause(r, d)
			s.Thaw()
		}},
		{"restart", func(r *rand.Rand) {
			_ = s.Stop()
			s.pause(r, d)
			_ = s.Restart() // closed meanwhile, or the port is somebody else's
		}},
		{"sweep", func(*rand.Rand) { s.SweepContainers() }},
	}
	for _, way := range []Direction{FromClient, ToClient, BothWays} {
		verbs = append(verbs, Verb{"stall " + way.String(), func(r *rand.Rand) {
			if id := session(r); id != 0 {
				s.Stall(id, way)
				s.pause(r, d)
				s.Unstall(id)
			}
		}})
	}
	return verbs
}

// Verbs returns the verbs of each member, and elections, partitions and lag
// that last d at most.
func (c *Cluster) Verbs(d time.Duration) []Verb {
	n := len(c.each)
	verbs := []Verb{
		{"elect", func(r *rand.Rand) { c.Elect(r.IntN(n)) }},
		{"partition", func(r *rand.Rand) {
			order := r.Perm(n)
			at := 1 + r.IntN(max(n-1, 1))
			c.Partition(order[:at], order[at:])
			c.pause(r, d)
			c.Heal()
		}},
		{"partition one way", func(r *rand.Rand) {
			c.PartitionOneWay(r.IntN(n), r.IntN(n))
			c.pause(r, d)
			c.Heal()
		}},
		{"lag", func(r *rand.Rand) {
			i := r.IntN(n)
			c.Lag(i, time.Duration(r.Int64N(int64(d)+1)))
			c.pause(r, d)
			c.Lag(i, 0)
		}},
	}
	for i, s := range c.each {
		for _, v := range s.Verbs(d) {
			verbs = append(verbs, Verb{fmt.Sprintf("member %d: %s", i, v.Name), v.Do})
		}
	}
	return verbs
}

// quietly calls a verb that may hit nothing without failing the test.
func (s *Server) quietly(verb func(*Server) error) {
	_ = verb(&Server{e: s.e, members: s.members})
}

// pause waits for at most d, or until the server closes.
func (s *Server) pause(r *rand.Rand, d time.Duration) {
	timer := time.NewTimer(time.Duration(r.Int64N(int64(d) + 1)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.e.closing:
	}
}
