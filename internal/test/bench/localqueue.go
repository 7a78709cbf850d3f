package main

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/paddock-zk/paddock/recipes/locks"
)

// inLocalQueue measures how fast a lock goes round among the goroutines of one client. They
// hand it over without asking the servers, by default and with other bounds.
func inLocalQueue(ctx context.Context, p plan, s server) (all []result, err error) {
	c, err := connect(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = closers{c.Close}.close(err) }()
	for _, n := range []int{8, p.goroutines} {
		for i, bound := range []struct {
			name string
			opts []locks.Option
		}{
			{"by default", nil},
			{"16 times in a row", []locks.Option{locks.LocalHandovers(16)}},
			{"a second in a row", []locks.Option{locks.LocalHandovers(math.MaxInt)}},
		} {
			r := result{server: s.name, group: "hand-offs in a local queue", name: bound.name, clients: n, unit: "hand-offs/s"}
			lock := locks.NewInterProcessMutex(c, fmt.Sprintf("/bench-local-queue-%d-%d", n, i), append(bound.opts, patient)...)
			cycles := make([]cycle, n)
			for i := range cycles {
				cycles[i] = takes(lock)
			}
			for round := -1; round < p.rounds; round++ {
				var l lap
				if err := goRound(ctx, p.contend, 0, cycles, &l); err != nil {
					return nil, fmt.Errorf("%s: %w", r.name, err)
				}
				if round >= 0 {
					r.values = append(r.values, l.rate())
				}
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// waiterMemory measures what a goroutine takes that waits in a local queue.
func waiterMemory(ctx context.Context, p plan, s server) (_ []result, err error) {
	r := result{server: s.name, group: "memory", name: "goroutine in a local queue", unit: "B"}
	c, err := connect(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = closers{c.Close}.close(err) }()
	lock := locks.NewInterProcessMutex(c, "/bench/local-queue", patient)
	for range min(p.rounds, 3) {
		h, err := lock.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		before := inUse()
		waits, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		for range p.goroutines {
			wg.Go(func() {
				if h, err := lock.Acquire(waits); err == nil {
					_ = h.Release()
				}
			})
		}
		err = pause(ctx, settling)
		r.values = append(r.values, float64(inUse()-before)/float64(p.goroutines))
		cancel()
		wg.Wait()
		if released := h.Release(); err == nil {
			err = released
		}
		if err != nil {
			return nil, err
		}
	}
	return []result{r}, nil
}
