package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/workload"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// curatorMutex is a mutex as Curator takes it: its nodes say nothing of their owner.
type curatorMutex struct {
	client *framework.Client
	path   string
}

func (m curatorMutex) Acquire(ctx context.Context) (*locks.Hold, error) {
	node, err := m.client.Create(ctx, m.path+"/lock-", nil, framework.EphemeralSequential, framework.Protected(), framework.Parents())
	if err != nil {
		return nil, err
	}
	leave := func() error { return m.client.Delete(context.Background(), node, framework.AnyVersion) } //nolint:contextcheck // it has to be given back
	for err == nil {
		var names []string
		if names, _, err = m.client.Children(ctx, m.path); err != nil {
			break
		}
		number := func(name string) string { return name[len(name)-10:] }
		ahead := ""
		for _, name := range names {
			if number(name) < number(node) && (ahead == "" || number(name) > number(ahead)) {
				ahead = name
			}
		}
		if ahead == "" {
			hold, _ := locks.NewHold(ctx, leave)
			return hold, nil
		}
		var watch *framework.Watch
		if _, _, watch, err = m.client.GetW(ctx, m.path+"/"+ahead); errors.Is(err, framework.ErrNoNode) {
			err = nil
			continue
		}
		if err == nil {
			select {
			case <-watch.C:
			case <-ctx.Done():
				err = ctx.Err()
			}
			watch.Stop()
		}
	}
	return nil, errors.Join(err, leave())
}

func (m curatorMutex) TryAcquire(context.Context, time.Duration) (*locks.Hold, error) {
	return nil, errors.ErrUnsupported
}

// Beside owners of another library, whose nodes say nothing, all make at least half of what
// MultiLocks make alone, and three fifths of what all make if the MultiLocks are of that
// library too. A crowd of a hundred makes about as much. Few rounds show two thirds of that.
func TestCrowdsBesideAnotherLibrary(t *testing.T) {
	t.Parallel()
	span := 2 * time.Second
	if *wholeCrowds {
		span = 20 * time.Second
	}
	const clients = 4 // of either side
	draw := func(all []*framework.Client, way workload.Way, members []int) (workload.Way, []locks.Lock) {
		var set []locks.Lock
		for _, m := range members {
			if path := fmt.Sprintf("/s/m%04d", m); way == workload.Multi {
				set = append(set, locks.NewInterProcessMutex(all[0], path))
			} else {
				set = append(set, curatorMutex{all[1], path})
			}
		}
		return way, set
	}
	crowds := []struct{ multi, inOrder, reverse, plain int }{{40, 20, 0, 0}}
	if *wholeCrowds {
		crowds = append(crowds, []struct{ multi, inOrder, reverse, plain int }{{40, 0, 0, 40}, {100, 10, 0, 0}, {40, 0, 1, 0}, {20, 0, 10, 0}}...)
	}
	for _, c := range crowds {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			crowd := func(ours workload.Way, n int) *tally {
				return tallyOf(t, span, 2*clients, n, func(i int, rnd *rand.Rand, all []*framework.Client) (workload.Way, []locks.Lock) {
					way, members := workload.Nested, rnd.Perm(25)[:2+rnd.IntN(3)]
					if i < c.multi {
						way = ours
					}
					if i >= c.multi+c.inOrder+c.reverse {
						members = members[:1]
					}
					if way == workload.Nested {
						slices.Sort(members)
					}
					if i >= c.multi+c.inOrder {
						slices.Reverse(members)
					}
					at := 2 * (i % clients)
					return draw(all[at:at+2], way, members)
				})
			}
			n := c.multi + c.inOrder + c.reverse + c.plain
			got := crowd(workload.Multi, n)
			rounds := func(from, to int) (all int) {
				for _, n := range got.each[from:to] {
					all += n
				}
				return all
			}
			_, _ = fmt.Fprintf(t.Output(), "crowds: %d MultiLocks, and of another library %d that nest in order, %d in reverse, %d plain: %d + %d rounds: %v\n", c.multi, c.inOrder, c.reverse, c.plain,
				rounds(0, c.multi), rounds(c.multi, n), got)
			if c.reverse > 0 {
				assert.Less(t, got.stall, 5*time.Second, "nobody got anything")
				assert.GreaterOrEqual(t, 8*got.rounds(), crowd(workload.Multi, c.multi).rounds(), "beside the MultiLocks alone")
				return
			}
			assert.Less(t, got.stall, 2*time.Second, "nobody got anything")
			alone, theirs := crowd(workload.Multi, c.multi), crowd(workload.Nested, n)
			_, _ = fmt.Fprintf(t.Output(), "crowds: the MultiLocks alone: %v; all of the other library: %v\n", alone, theirs)
			share := 2
			if *wholeCrowds && c.multi < 100 {
				share = 3
				assert.Positive(t, slices.Min(got.each), "somebody got nothing")
			}
			assert.GreaterOrEqual(t, 6*got.rounds(), share*alone.rounds(), "beside the MultiLocks alone")
			assert.GreaterOrEqual(t, 5*got.rounds(), share*theirs.rounds(), "if all are of the other library")
			assert.GreaterOrEqual(t, 4*rounds(0, c.multi), alone.rounds(), "the MultiLocks")
		})
	}
}

// Nodes of another library do not say in which order their owners go. Where that is the reverse
// of the order of the paths, MultiLocks learn it. Without that all together make about 30 rounds.
func TestMultiLocksLearnTheOrderOfAnotherLibrary(t *testing.T) {
	t.Parallel()
	const multi, reverse, clients = 20, 10, 2 // of either side
	got := tallyOf(t, 3*time.Second, 2*clients, multi+reverse, func(i int, rnd *rand.Rand, all []*framework.Client) (workload.Way, []locks.Lock) {
		at, members := 2*(i%clients), rnd.Perm(25)[:2+rnd.IntN(3)]
		slices.Sort(members)
		slices.Reverse(members)
		way, set := workload.Multi, []locks.Lock(nil)
		for _, m := range members {
			if path := fmt.Sprintf("/s/m%04d", m); i < multi {
				set = append(set, locks.NewInterProcessMutex(all[at], path))
			} else {
				way, set = workload.Nested, append(set, curatorMutex{all[at+1], path})
			}
		}
		return way, set
	})
	_, _ = fmt.Fprintf(t.Output(), "crowds: %d MultiLocks, and %d of another library that nest in reverse: %v\n", multi, reverse, got)
	assert.GreaterOrEqual(t, got.rounds(), 80)
}
