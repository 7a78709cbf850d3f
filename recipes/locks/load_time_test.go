package locks_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A crowd of goroutines writes as fast as it can through the client that holds a lock,
// on servers that take a while for each write. The hold stays, and the servers are
// kept as busy as they would be without a bound.
func TestOwnLoadLosesNoHold(t *testing.T) {
	const timeout, span = 2 * time.Second, 6 * time.Second
	crowds := []int{2048}
	if *everySweep {
		crowds = []int{512, 2048, 4000}
	}
	for _, crowd := range crowds {
		for _, takes := range []time.Duration{300 * time.Microsecond, time.Millisecond} {
			for _, trip := range []time.Duration{time.Millisecond, 50 * time.Millisecond} {
				t.Run(fmt.Sprintf("%d goroutines, writes of %v, round trips of %v", crowd, takes, trip), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(timeout/10), zktest.Latency(trip/2))
						c := connect(t, srv, within(timeout, 0))
						h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
						require.NoError(t, err)
						_, err = c.Create(t.Context(), "/x", nil, framework.Persistent)
						require.NoError(t, err)
						srv.On(zktest.Match{Op: "setData"}, zktest.Delay(takes))
						ctx, stop := context.WithTimeout(t.Context(), span)
						defer stop()
						var done atomic.Int64
						var wg sync.WaitGroup
						for range crowd {
							wg.Go(func() {
								for ctx.Err() == nil {
									if _, err := c.Set(ctx, "/x", nil, framework.AnyVersion); err == nil {
										done.Add(1)
									}
								}
							})
						}
						<-ctx.Done()
						require.NoError(t, h.Err())
						possible := min(float64(span/takes), float64(crowd)*float64(span/(trip+takes)))
						t.Logf("%d writes, %.0f %% of what is possible", done.Load(), float64(done.Load())*100/possible)
						assert.Greater(t, float64(done.Load()), 0.9*possible)
						wg.Wait()
						time.Sleep(time.Second)
						require.NoError(t, h.Release())
					})
				})
			}
		}
	}
}
