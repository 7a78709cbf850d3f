package locks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/workload"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Plain users hold each of two locks for seconds, over and over. A MultiLock of both finds that it is of no use
// to make room for them. It waited for up to a thousand holds when it did so after 300 ms each time.
func TestMultiLockBesideLongHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hold = 10 * time.Second
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c, over := kit.Connect(t, srv), make(chan struct{})
		var wg sync.WaitGroup
		defer wg.Wait()
		defer close(over)
		for i := range 2 {
			client, rnd := kit.Connect(t, srv), rand.New(rand.NewPCG(1, uint64(i)))
			wg.Go(func() {
				for {
					held, err := locks.NewInterProcessMutex(client, fmt.Sprint("/l/", i)).Acquire(t.Context())
					if err != nil {
						return
					}
					time.Sleep(hold/2 + time.Duration(rnd.Int64N(int64(hold))))
					_ = held.Release()
					select {
					case <-over:
						return
					default:
					}
				}
			})
		}
		time.Sleep(hold)
		var waits []time.Duration
		for range 10 {
			began := time.Now()
			held, err := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l/0"), locks.NewInterProcessMutex(c, "/l/1")).TryAcquire(t.Context(), time.Hour)
			require.NoError(t, err)
			waits = append(waits, time.Since(began)/hold)
			require.NoError(t, held.Release())
			time.Sleep(hold)
		}
		assert.Less(t, slices.Max(waits), time.Duration(40), "%d holds", waits)
	})
}

// All pass their contexts on, and all that nest go in the order of the paths. A lock is held for a second at
// first. Where owners say what they have, nobody that has waited for long is taken for one that hides a lock.
func TestCrowdBelowOneLock(t *testing.T) {
	t.Parallel()
	g := gathering{span: 6 * time.Second, clients: 4, owners: 29}
	run := func(way workload.Way) *tally {
		var first sync.Once
		return g.run(t, func(i int, rnd *rand.Rand, all []*framework.Client) (workload.Way, []locks.Lock) {
			way, members := way, rnd.Perm(10)[:2+rnd.IntN(2)]
			switch {
			case i >= 25:
				way, members = workload.Nested, []int{1, 2 + rnd.IntN(8)}
			case i >= 15:
				way, members = workload.Nested, members[:1]
			}
			if i == 15 {
				first.Do(func() {
					held, err := locks.NewInterProcessMutex(all[0], "/m5").Acquire(context.Background())
					if time.Sleep(time.Second); assert.NoError(t, err) {
						assert.NoError(t, held.Release())
					}
				})
			}
			if way == workload.Nested {
				slices.Sort(members)
			}
			var set []locks.Lock
			for _, m := range members {
				set = append(set, locks.NewInterProcessMutex(all[i%len(all)], fmt.Sprint("/m", m)))
			}
			return way, set
		})
	}
	got, nested := run(workload.Multi), run(workload.Nested)
	_, _ = fmt.Fprintf(t.Output(), "crowds: below one lock: %v\ncrowds: the same if all nest: %v\n", got, nested)
	assert.GreaterOrEqual(t, 2*got.rounds(), nested.rounds(), "beside owners that nest")
	assert.Less(t, got.stall, time.Second, "nobody got anything")
}
