package main

import (
	"context"
	"time"

	"github.com/paddock-zk/paddock/recipes/locks"
)

// reentry measures acquire and release by who has the lock already, which asks
// no server.
func reentry(ctx context.Context, p plan, s server) (_ result, err error) {
	r := result{server: "no server", group: "re-entry", name: "acquire and release", unit: "ns/op"}
	c, err := connect(ctx, s)
	if err != nil {
		return r, err
	}
	defer func() { err = closers{c.Close}.close(err) }()
	m := locks.NewInterProcessMutex(c, "/bench-reentry")
	outer, err := m.Acquire(ctx)
	if err != nil {
		return r, err
	}
	again := takes(m)
	const times = 1_000_000
	for range p.rounds {
		began := time.Now()
		for range times {
			if err := again(outer.Context(), nil); err != nil { //nolint:contextcheck // re-entry goes by the hold's context
				return r, err
			}
		}
		r.values = append(r.values, float64(time.Since(began))/times)
	}
	return r, outer.Release()
}
