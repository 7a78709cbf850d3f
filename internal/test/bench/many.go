package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// goroutines that share one client, each with a lock of its own.
var crowds = []int{1, 2, 8, 64, 512}

// manySteps measure goroutines of one client, each of which takes and gives back a lock
// of its own.
func manySteps(ctx context.Context, p plan, s server) []step {
	const far = 3 * time.Millisecond
	return []step{
		{"many locks", func() ([]result, error) {
			return many(ctx, p, s, "many locks", crowds, []candidate{raw, zkLock, unbatched, mutex})
		}},
		{"new locks", func() ([]result, error) {
			return many(ctx, p, s, "new locks", []int{64}, []candidate{fresh(unbatched), fresh(mutex)})
		}},
		{"many locks, 3 ms each way", func() (_ []result, err error) {
			away, err := startProxy(ctx, s.addr, far)
			if err != nil {
				return nil, err
			}
			defer func() { err = closers{away.close}.close(err) }()
			return many(ctx, p, server{name: s.name, addr: away.addr()}, "many locks, 3 ms each way", crowds, []candidate{raw, zkLock, unbatched, mutex})
		}},
		{"beside 512 locks", func() ([]result, error) { return beside(ctx, p, s, []candidate{raw, unbatched, mutex}) }},
	}
}

// fresh makes each cycle of a candidate a lock that nobody has had before.
func fresh(cand candidate) candidate {
	return candidate{cand.name, func(ctx context.Context, s server) (*client, error) {
		c, err := cand.open(ctx, s)
		if err != nil {
			return nil, err
		}
		return &client{close: c.close, cycle: func(path string) (cycle, error) {
			n := 0
			return func(ctx context.Context, held func()) error {
				n++
				one, err := c.cycle(fmt.Sprintf("%s/%d", path, n))
				if err != nil {
					return err
				}
				return one(ctx, held)
			}, nil
		}}, nil
	}}
}

// beside measures how long one create and delete of another client take while 512
// goroutines of each candidate are busy.
func beside(ctx context.Context, p plan, s server, cands []candidate) (_ []result, err error) {
	const group, busy = "beside 512 locks", 512
	other, err := raw.open(ctx, s)
	if err != nil {
		return nil, err
	}
	clients := closers{other.close}
	defer func() { err = clients.close(err) }()
	one, err := other.cycle("/bench-beside")
	if err != nil {
		return nil, err
	}
	results := make([]result, len(cands))
	all := make([][]cycle, len(cands))
	for i, cand := range cands {
		results[i] = result{server: s.name, group: group, name: cand.name, unit: "ns/op"}
		c, err := cand.open(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cand.name, err)
		}
		clients = append(clients, c.close)
		if all[i], err = cyclesOf(c, fmt.Sprintf("/bench-beside-%d", i), busy); err != nil {
			return nil, err
		}
	}
	for round := -1; round < p.rounds; round++ { // the first one warms up
		for _, i := range anyOrder(len(cands)) {
			runtime.GC() // not that of the turn before
			var took []time.Duration
			var failed error
			var wg sync.WaitGroup
			over := make(chan struct{})
			wg.Go(func() {
				for ended := false; !ended && failed == nil; {
					from := time.Now()
					failed = one(ctx, nil)
					took = append(took, time.Since(from))
					select {
					case <-over:
						ended = true
					default:
					}
				}
			})
			_, _, err := atOnce(ctx, all[i], 2*p.contend)
			close(over)
			wg.Wait()
			if err := errors.Join(err, failed); err != nil {
				return nil, fmt.Errorf("%s: %w", cands[i].name, err)
			}
			if round >= 0 {
				results[i].values = append(results[i].values, nanos(quantile(took, 0.5)))
				results[i].tail = append(results[i].tail, nanos(quantile(took, 0.99)))
			}
		}
	}
	return results, nil
}

// cyclesOf are n locks of a client.
func cyclesOf(c *client, path string, n int) (all []cycle, err error) {
	for j := range n {
		cyc, err := c.cycle(fmt.Sprintf("%s-%d", path, j))
		if err != nil {
			return nil, err
		}
		all = append(all, cyc)
	}
	return all, nil
}

// many measures crowds. The candidates take turns. Of each round it keeps the cycles a
// second of all of them together, the 99th percentile of a cycle, and the processor time
// of this process for each.
func many(ctx context.Context, p plan, s server, group string, sizes []int, cands []candidate) (all []result, err error) {
	for _, n := range sizes {
		results, err := crowd(ctx, p, s, group, cands, n)
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	return all, nil
}

// crowd is many for n goroutines.
func crowd(ctx context.Context, p plan, s server, group string, cands []candidate, n int) (_ []result, err error) {
	var clients closers
	defer func() { err = clients.close(err) }()
	results := make([]result, len(cands))
	cycles := make([][]cycle, len(cands))
	for i, cand := range cands {
		results[i] = result{server: s.name, group: group, name: cand.name, clients: n, unit: "cycles/s", tailUnit: "ns/op"}
		c, err := cand.open(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cand.name, err)
		}
		clients = append(clients, c.close)
		if cycles[i], err = cyclesOf(c, fmt.Sprintf("/bench-%s-%d", pathName(group), i), n); err != nil {
			return nil, fmt.Errorf("%s: %w", cand.name, err)
		}
	}
	for round := -1; round < p.rounds; round++ { // the first one warms up
		for _, i := range anyOrder(len(cands)) {
			runtime.GC() // not that of the turn before
			used := processorTime()
			rate, took, err := atOnce(ctx, cycles[i], p.contend)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", cands[i].name, err)
			}
			if round >= 0 {
				results[i].values = append(results[i].values, rate)
				results[i].cpu = append(results[i].cpu, nanos(processorTime()-used)/float64(max(1, len(took))))
				results[i].tail = append(results[i].tail, nanos(quantile(took, 0.99)))
			}
		}
	}
	return results, nil
}

// atOnce runs cycles, each over and over in a goroutine of its own, and returns how many
// a second there were, and how long each took.
func atOnce(ctx context.Context, cycles []cycle, turn time.Duration) (rate float64, took []time.Duration, err error) {
	each := make([][]time.Duration, len(cycles))
	errs := make([]error, len(cycles))
	began := time.Now()
	var all sync.WaitGroup
	for i, cyc := range cycles {
		all.Go(func() {
			for time.Since(began) < turn && errs[i] == nil {
				from := time.Now()
				errs[i] = cyc(ctx, nil)
				each[i] = append(each[i], time.Since(from))
			}
		})
	}
	all.Wait()
	passed := time.Since(began)
	for _, err := range errs {
		if err != nil {
			return 0, nil, err
		}
	}
	took = slices.Concat(each...)
	return float64(len(took)) / passed.Seconds(), took, nil
}
