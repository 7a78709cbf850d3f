package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// contendedAll measures how fast a lock that everybody wants all the time goes
// round among clients with sessions of their own, and among the goroutines of
// one client.
func contendedAll(ctx context.Context, p plan, s server) (steps []step) {
	for _, sessions := range []string{ownSessions, oneSession} {
		for _, n := range p.clients {
			steps = append(steps, step{"hand-offs, " + sessions + ", " + fmt.Sprint(n), func() ([]result, error) {
				return contended(ctx, p, s, n, sessions)
			}})
		}
	}
	return append(steps, step{"hand-offs, far", func() ([]result, error) { return farContended(ctx, p, s) }})
}

// farContended lets a lock go round among clients 3 ms away, each way. They do nothing while they hold it, or work for 10 ms.
func farContended(ctx context.Context, p plan, s server) (_ []result, err error) {
	far, err := startProxy(ctx, s.addr, 3*time.Millisecond)
	if err != nil {
		return nil, err
	}
	defer func() { err = closers{far.close}.close(err) }()
	var all []result
	for _, work := range []time.Duration{0, 10 * time.Millisecond} {
		results, err := contend(ctx, p, server{name: s.name, addr: far.addr()}, contest{
			cands: []candidate{zkLock, mutex}, n: 8, turn: p.contend, work: work,
			where: fmt.Sprintf("3 ms each way, held for %d ms", work.Milliseconds()),
		})
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	return all, nil
}

const (
	ownSessions = "own sessions"
	oneSession  = "one session"
)

// contest is who contends, and how.
type contest struct {
	cands  []candidate
	n      int
	shared bool          // all in one session
	turn   time.Duration // how long each contends before it is another's turn, a round at most
	work   time.Duration // while it is held
	where  string        // for the titles
}

// Clients with sessions of their own take short turns: what else the machine
// does would fall on one of them otherwise. But a turn begins and ends with a
// queue that is not full, which must not weigh.
const (
	leastTurn = 150 * time.Millisecond
	turnOfOne = 4 * time.Millisecond
)

func contended(ctx context.Context, p plan, s server, n int, sessions string) ([]result, error) {
	with := contest{cands: []candidate{zkLock, mutex}, n: n, shared: sessions == oneSession, turn: p.contend, where: sessions}
	if !with.shared {
		p.rounds = p.ownSessions
		with.turn = min(p.contend, max(leastTurn, time.Duration(n)*turnOfOne))
	}
	return contend(ctx, p, s, with)
}

// contend returns hand-offs per second, and the median time from before one
// releases until the next one has acquired.
func contend(ctx context.Context, p plan, s server, with contest) (_ []result, err error) {
	var ends closers
	defer func() { err = ends.close(err) }()
	cands := with.cands
	cycles := make([][]cycle, len(cands))
	rates, delays := make([]result, len(cands)), make([]result, len(cands))
	for i, cand := range cands {
		rates[i] = result{server: s.name, group: "hand-offs, " + with.where, name: cand.name, clients: with.n, unit: "hand-offs/s"}
		delays[i] = result{server: s.name, group: "hand-off time, " + with.where, name: cand.name, clients: with.n, unit: "ns/op"}
		var c *client
		for range with.n {
			if c == nil || !with.shared {
				if c, err = cand.open(ctx, s); err != nil {
					return nil, err
				}
				ends = append(ends, c.close)
			}
			cyc, err := c.cycle(fmt.Sprintf("/bench-contended-%s-%d-%d", pathName(with.where), with.n, i))
			if err != nil {
				return nil, err
			}
			cycles[i] = append(cycles[i], cyc)
		}
	}
	for round := -1; round < p.rounds; round++ {
		laps := make([]lap, len(cands))
		for range p.contend / with.turn {
			for _, i := range anyOrder(len(cands)) {
				if err := goRound(ctx, with.turn, with.work, cycles[i], &laps[i]); err != nil {
					return nil, fmt.Errorf("%s: %w", rates[i].name, err)
				}
			}
		}
		if round < 0 {
			continue
		}
		for i := range cands {
			rates[i].values = append(rates[i].values, laps[i].rate())
			delays[i].values = append(delays[i].values, laps[i].delay())
		}
	}
	return append(rates, delays...), nil
}

// lap is what was seen of a lock that went round.
type lap struct {
	took     time.Duration
	handOffs []time.Duration // how long each took
}

func (l *lap) rate() float64  { return float64(len(l.handOffs)) / l.took.Seconds() }
func (l *lap) delay() float64 { return nanos(quantile(l.handOffs, 0.5)) }

// goRound lets the lock go round for a while, and to everybody once at least, and
// adds what it sees to l.
func goRound(ctx context.Context, length, work time.Duration, cycles []cycle, l *lap) error {
	var wg sync.WaitGroup
	var inside atomic.Int32
	var last time.Time // when the latest holder was about to release; guarded by the lock that is measured
	errs := make(chan error, len(cycles))
	began := time.Now()
	for _, cyc := range cycles {
		wg.Go(func() {
			for first := true; first || time.Since(began) < length; first = false {
				err := cyc(ctx, func() {
					if inside.Add(1) != 1 {
						panic("two holders") // then no figure means anything
					}
					if !last.IsZero() {
						l.handOffs = append(l.handOffs, time.Since(last))
					}
					_ = pause(ctx, work) // if ctx ends, acquiring fails
					last = time.Now()
					inside.Add(-1)
				})
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	l.took += time.Since(began)
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}
