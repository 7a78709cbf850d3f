//go:build interop

package interop

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// wholeCrowds lets the crowds go on for long enough to tell how many rounds they make.
// Otherwise they show that they go on, and that locks exclude each other.
var wholeCrowds = flag.Bool("crowds", false, "let crowds beside Java go on for 10 s each")

// side is some owners of a crowd, all of one language and way.
type side struct {
	language, way string
	n, clients    int
}

// crowdTally is what a side has got.
type crowdTally struct {
	rounds, least, most int
	longest, stall      time.Duration // the longest wait, and the longest time without a grant
}

func (c crowdTally) String() string {
	return fmt.Sprintf("%d rounds (%d to %d, longest wait %v, without a grant for %v)", c.rounds, c.least, c.most, c.longest, c.stall)
}

// MultiLocks stand in one crowd with Curator's locks: with its MultiLocks, with threads that
// nest mutexes or take one at a time, and with MultiLocks in the reverse order of the paths.
// Each owner takes 2 to 4 of 25 mutexes for 5 ms. With -crowds, Curator's MultiLocks stand in the
// place of ours as well, in a Java of their own.
func TestCrowdsBesideJava(t *testing.T) {
	span := time.Second
	if *wholeCrowds {
		span = 10 * time.Second
	}
	known := make(map[side]crowdTally) // so that what many crowds are compared with runs once
	alone := func(t *testing.T, s side) crowdTally {
		t.Helper()
		if _, have := known[s]; !have {
			known[s] = runCrowd(t, span, s)[0]
		}
		return known[s]
	}
	if *wholeCrowds {
		t.Run("alone", func(t *testing.T) {
			ours, theirs := alone(t, side{"go", "multi", 40, 4}), alone(t, side{"java", "multi", 40, 4})
			_, _ = fmt.Fprintf(t.Output(), "crowds: 40 MultiLocks in Go alone: %v; 40 in Java alone: %v\n", ours, theirs)
			assert.GreaterOrEqual(t, 100*ours.rounds, 95*theirs.rounds, "Curator is faster")
		})
	}
	for _, c := range []struct{ ours, others side }{
		{side{"go", "multi", 40, 4}, side{"java", "multi", 20, 4}},
		{side{"go", "multi", 100, 10}, side{"java", "multi", 10, 10}},
		{side{"go", "multi", 40, 4}, side{"java", "nested", 20, 4}},
		{side{"go", "multi", 40, 4}, side{"java", "plain", 40, 4}},
		{side{"go", "multi", 40, 4}, side{"java", "reverse", 1, 1}},
		{side{"go", "multi", 20, 4}, side{"java", "reverse", 10, 2}},
	} {
		t.Run(fmt.Sprintf("%d beside %d %s", c.ours.n, c.others.n, c.others.way), func(t *testing.T) {
			got := runCrowd(t, span, c.ours, c.others)
			least := func() int { return min(got[0].rounds, got[1].rounds) }
			for longer := 4 * span; least() == 0 && c.others.way != "reverse" && longer < time.Minute; longer *= 4 {
				got = runCrowd(t, longer, c.ours, c.others) // a busy machine's servers are slow
			}
			_, _ = fmt.Fprintf(t.Output(), "crowds: %v: %v; %v: %v\n", c.ours, got[0], c.others, got[1])
			assert.Positive(t, got[0].rounds+got[1].rounds)
			if *wholeCrowds {
				assert.Less(t, min(got[0].stall, got[1].stall), 2*time.Second, "nobody got anything")
			}
			if c.others.way == "reverse" {
				return // Curator beside itself would wait for ever
			}
			assert.Positive(t, least(), "a side got nothing")
			if !*wholeCrowds {
				return
			}
			curators := c.ours
			curators.language = "java"
			beside := runCrowd(t, span, curators, c.others)
			_, _ = fmt.Fprintf(t.Output(), "crowds: alone %d and %d; Curator's %v: %v; %v: %v; alone %d\n", alone(t, c.ours).rounds,
				alone(t, c.others).rounds, curators, beside[0], c.others, beside[1], alone(t, curators).rounds)
		})
	}
}

// runCrowd runs the sides of a crowd for some time.
func runCrowd(t *testing.T, span time.Duration, sides ...side) []crowdTally {
	t.Helper()
	below, where := chroot(t)
	prefix := "/" + shared.name("crowd") + "-"
	got, run := make([]crowdTally, len(sides)), make([]func() crowdTally, len(sides))
	for i, s := range sides {
		if s.language == "java" {
			p, names := shared.peers["java"][i], []string(nil)
			for range s.clients {
				names = append(names, p.client(t, where))
			}
			run[i] = func() crowdTally {
				return javaTally(t, p.begin("crowd", strings.Join(names, ","), s.way, prefix, s.n, span.Milliseconds()))
			}
			continue
		}
		var clients []*framework.Client
		for range s.clients {
			clients = append(clients, kit.Dial(t, framework.Config{ConnectString: where, SessionTimeout: sessionTimeout}))
		}
		run[i] = func() crowdTally { return goCrowd(t, span, clients, prefix, s.n) }
	}
	var wg sync.WaitGroup
	for i := range sides {
		wg.Go(func() { got[i] = run[i]() })
	}
	wg.Wait()
	assert.Empty(t, shared.witness.violations())
	nothingLeft(t, below)
	return got
}

// javaTally waits for what a side in Java has got.
func javaTally(t *testing.T, began *reply) (got crowdTally) {
	t.Helper()
	text, err := began.wait(2 * time.Minute)
	if !assert.NoError(t, err) {
		return got
	}
	var longest, stall int64
	_, err = fmt.Sscan(text, &got.rounds, &got.least, &got.most, &longest, &stall)
	assert.NoError(t, err, text)
	got.longest, got.stall = time.Duration(longest)*time.Millisecond, time.Duration(stall)*time.Millisecond
	return got
}

// goCrowd runs MultiLocks of Go.
func goCrowd(t *testing.T, span time.Duration, clients []*framework.Client, prefix string, n int) (got crowdTally) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	each, last := make([]int, n), time.Now()
	var mu sync.Mutex // guards each, last and got
	var wg sync.WaitGroup
	for i := range n {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		witness, err := callWitness(t.Context(), shared.witness.addr())
		if !assert.NoError(t, err) {
			break
		}
		granted := func(since time.Time) {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			each[i]++
			got.longest, got.stall, last = max(got.longest, now.Sub(since)), max(got.stall, now.Sub(last)), now
		}
		wg.Go(func() {
			defer witness.close()
			for ctx.Err() == nil {
				var set []locks.Lock
				var paths []string
				for _, m := range rnd.Perm(25)[:2+rnd.IntN(3)] {
					paths = append(paths, fmt.Sprintf("%s%02d", prefix, m))
					set = append(set, locks.NewInterProcessMutex(clients[i%len(clients)], paths[len(paths)-1]))
				}
				since := time.Now()
				hold, err := locks.NewInterProcessMultiLock(set...).Acquire(ctx)
				if err != nil {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					return
				}
				granted(since)
				err = nil
				for _, path := range paths {
					err = errors.Join(err, witness.tell("enter %s 1 go", path))
				}
				err = errors.Join(err, witness.tell("hold"))
				for _, path := range paths {
					err = errors.Join(err, witness.tell("leave %s 1 go", path))
				}
				if gave := hold.Release(); !errors.Is(gave, locks.ErrReleasePending) { // a busy machine's servers are slow
					err = errors.Join(err, gave)
				}
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	got.stall = max(got.stall, time.Since(last)).Round(time.Millisecond)
	got.longest = got.longest.Round(time.Millisecond)
	got.least, got.most = slices.Min(each), slices.Max(each)
	for _, one := range each {
		got.rounds += one
	}
	return got
}
