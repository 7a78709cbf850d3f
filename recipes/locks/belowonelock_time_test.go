package locks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/workload"
	"github.com/paddock-zk/paddock/recipes/locks"
)

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
