package main

import (
	"context"
	"fmt"
	"time"
)

// uncontended measures one client of each candidate that takes a free lock and
// gives it back, over and over. The candidates take turns of a hundredth of a
// second, so that what else the machine does falls on all of them.
func uncontended(ctx context.Context, p plan, s server, group string, cands []candidate) (_ []result, err error) {
	var clients closers
	defer func() { err = clients.close(err) }()
	var cycles []cycle
	for i, cand := range cands {
		c, err := cand.open(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cand.name, err)
		}
		clients = append(clients, c.close)
		cyc, err := c.cycle(fmt.Sprintf("/bench-%s-%d", pathName(group), i))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cand.name, err)
		}
		cycles = append(cycles, cyc)
	}
	results := make([]result, len(cands))
	for i, cand := range cands {
		results[i] = result{Server: s.name, Group: group, Name: cand.name, Unit: "us"}
	}
	for round := -1; round < p.rounds; round++ { // the first one warms up
		samples := make([][]time.Duration, len(cands))
		for t := range p.turns {
			for i := range cycles {
				i = inOrder(t, i, len(cycles))
				cyc := cycles[i]
				for until, first := time.Now().Add(p.turn), true; first || time.Now().Before(until); first = false {
					began := time.Now()
					if err := cyc(ctx, nil); err != nil {
						return nil, fmt.Errorf("%s: %w", cands[i].name, err)
					}
					samples[i] = append(samples[i], time.Since(began))
				}
			}
		}
		if round < 0 {
			continue
		}
		for i := range cands {
			results[i].add(micros(quantile(samples[i], 0.5)), micros(quantile(samples[0], 0.5)))
			results[i].Tail = append(results[i].Tail, micros(quantile(samples[i], 0.99)))
		}
	}
	return results, nil
}

// inOrder is whose turn it is as number i of n in turn t. The order is turned
// round each time, so that nobody always comes after the same one.
func inOrder(t, i, n int) int {
	if t%2 == 1 {
		return n - 1 - i
	}
	return i
}
