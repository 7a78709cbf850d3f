package main

import (
	"context"
	"fmt"
	"math/rand/v2"
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
		results[i] = result{server: s.name, group: group, name: cand.name, unit: "ns/op"}
	}
	for round := -1; round < p.rounds; round++ { // the first one warms up
		samples := make([][]time.Duration, len(cands))
		for range p.turns {
			for _, i := range anyOrder(len(cycles)) {
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
			results[i].values = append(results[i].values, nanos(quantile(samples[i], 0.5)))
			results[i].tail = append(results[i].tail, nanos(quantile(samples[i], 0.99)))
		}
	}
	return results, nil
}

// anyOrder is an order of n candidates for one turn each. What comes after the
// same one each time, or after itself more often than others do, would not be
// compared fairly.
func anyOrder(n int) []int { return rand.Perm(n) }
