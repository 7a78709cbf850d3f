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
	return steps
}

const (
	ownSessions = "own sessions"
	oneSession  = "one session"
)

// contended returns hand-offs per second, and the median time from before one
// releases until the next one has acquired.
func contended(ctx context.Context, p plan, s server, n int, sessions string) (_ []result, err error) {
	shared := sessions == oneSession
	cands := []candidate{zkLock, mutex}
	var ends closers
	defer func() { err = ends.close(err) }()
	cycles := make([][]cycle, len(cands))
	rates, delays := make([]result, len(cands)), make([]result, len(cands))
	for i, cand := range cands {
		rates[i] = result{Server: s.name, Group: "hand-offs, " + sessions, Name: fmt.Sprintf("%s, %d clients", cand.name, n), Unit: "/s"}
		delays[i] = result{Server: s.name, Group: "hand-off time, " + sessions, Name: rates[i].Name, Unit: "us"}
		var c *client
		for range n {
			if c == nil || !shared {
				if c, err = cand.open(ctx, s); err != nil {
					return nil, err
				}
				ends = append(ends, c.close)
			}
			cyc, err := c.cycle(fmt.Sprintf("/bench-contended-%d-%t-%d", n, shared, i))
			if err != nil {
				return nil, err
			}
			cycles[i] = append(cycles[i], cyc)
		}
	}
	for round := -1; round < p.rounds; round++ {
		var base, baseDelay float64
		for i := range cands {
			rate, delay, err := goRound(ctx, p.contend, cycles[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", rates[i].Name, err)
			}
			if i == 0 {
				base, baseDelay = rate, delay
			}
			if round >= 0 {
				rates[i].add(rate, base)
				delays[i].add(delay, baseDelay)
			}
		}
	}
	return append(rates, delays...), nil
}

// goRound lets the lock go round for a while.
func goRound(ctx context.Context, length time.Duration, cycles []cycle) (rate, delay float64, err error) {
	var wg sync.WaitGroup
	var inside atomic.Int32
	var last time.Time // when the latest holder was about to release; guarded by the lock that is measured
	var times []time.Duration
	errs := make(chan error, len(cycles))
	began := time.Now()
	for _, cyc := range cycles {
		wg.Go(func() {
			for time.Since(began) < length {
				err := cyc(ctx, func() {
					if inside.Add(1) != 1 {
						panic("two holders") // then no figure means anything
					}
					now := time.Now()
					if !last.IsZero() {
						times = append(times, now.Sub(last))
					}
					last = now
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
	took := time.Since(began)
	select {
	case err := <-errs:
		return 0, 0, err
	default:
	}
	return float64(len(times)) / took.Seconds(), micros(quantile(times, 0.5)), nil
}
