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
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// wholeCrowds lets the crowds go on for long enough to tell how many rounds they make.
// Otherwise they show that they go on, and that locks exclude each other.
var wholeCrowds = flag.Bool("crowds", false, "let crowds beside Java go on for 10 s each")

// owners are those of one language in a crowd.
type owners struct{ n, clients int }

// crowdTally is what owners of one language have got.
type crowdTally struct {
	rounds, least, most int
	longest, stall      time.Duration // the longest wait, and the longest time without a grant
}

func (c crowdTally) String() string {
	return fmt.Sprintf("%d rounds (%d to %d, longest wait %v, without a grant for %v)", c.rounds, c.least, c.most, c.longest, c.stall)
}

// MultiLocks stand in one crowd with Curator's locks: with its MultiLocks, with threads that
// nest mutexes or take one at a time, and with MultiLocks in the reverse order of the paths.
// Each owner takes 2 to 4 of 25 mutexes for 5 ms.
func TestCrowdsBesideJava(t *testing.T) {
	span := time.Second
	if *wholeCrowds {
		span = 10 * time.Second
	}
	alone := make(map[string]crowdTally) // so that what many crowds are compared with runs once
	run := func(t *testing.T, way string, inGo, inJava owners) (goes, javas crowdTally) {
		t.Helper()
		key := fmt.Sprint(way, inGo, inJava)
		if got, known := alone[key]; known {
			return got, got
		}
		goes, javas = runCrowd(t, span, way, inGo, inJava)
		switch {
		case inGo.n == 0:
			alone[key] = javas
		case inJava.n == 0:
			alone[key] = goes
		}
		return goes, javas
	}
	if *wholeCrowds {
		t.Run("alone", func(t *testing.T) {
			goes, _ := run(t, "multi", owners{40, 4}, owners{})
			_, javas := run(t, "multi", owners{}, owners{40, 4})
			_, _ = fmt.Fprintf(t.Output(), "crowds: 40 MultiLocks in Go alone: %v; 40 in Java alone: %v\n", goes, javas)
			assert.GreaterOrEqual(t, 100*goes.rounds, 95*javas.rounds, "Curator is faster")
		})
	}
	for _, c := range []struct {
		way          string
		inGo, inJava owners
	}{
		{"multi", owners{40, 4}, owners{20, 4}},
		{"multi", owners{100, 10}, owners{10, 10}},
		{"nested", owners{40, 4}, owners{20, 4}},
		{"plain", owners{40, 4}, owners{40, 4}},
		{"reverse", owners{40, 4}, owners{1, 1}},
		{"reverse", owners{20, 4}, owners{10, 2}},
	} {
		t.Run(fmt.Sprintf("%d beside %d %s", c.inGo.n, c.inJava.n, c.way), func(t *testing.T) {
			goes, javas := run(t, c.way, c.inGo, c.inJava)
			for longer := 4 * span; min(goes.rounds, javas.rounds) == 0 && c.way != "reverse" && longer < time.Minute; longer *= 4 {
				goes, javas = runCrowd(t, longer, c.way, c.inGo, c.inJava) // a busy machine's servers are slow
			}
			what := fmt.Sprintf("%d MultiLocks in Go and %d in Java, %s", c.inGo.n, c.inJava.n, c.way)
			_, _ = fmt.Fprintf(t.Output(), "crowds: %s: Go %v; Java %v\n", what, goes, javas)
			if *wholeCrowds {
				assert.Less(t, min(goes.stall, javas.stall), 2*time.Second, "nobody got anything")
			}
			assert.Positive(t, goes.rounds+javas.rounds)
			if c.way == "reverse" {
				return
			}
			assert.Positive(t, min(goes.rounds, javas.rounds), "a side got nothing")
			if !*wholeCrowds {
				return
			}
			aloneGo, _ := run(t, "multi", c.inGo, owners{})
			_, aloneJava := run(t, c.way, owners{}, c.inJava)
			_, _ = fmt.Fprintf(t.Output(), "crowds: %s: alone %d and %d\n", what, aloneGo.rounds, aloneJava.rounds)
		})
	}
}

// runCrowd runs owners of both languages for some time.
func runCrowd(t *testing.T, span time.Duration, way string, inGo, inJava owners) (goes, javas crowdTally) {
	t.Helper()
	below, where := chroot(t)
	prefix := "/" + shared.name("crowd") + "-"
	p := shared.peers["java"][0]
	var clients []*framework.Client
	for range inGo.clients {
		clients = append(clients, kit.Dial(t, framework.Config{ConnectString: where, SessionTimeout: sessionTimeout}))
	}
	var began *reply
	if inJava.n > 0 {
		var names []string
		for range inJava.clients {
			names = append(names, p.client(t, where))
		}
		began = p.begin("crowd", strings.Join(names, ","), way, prefix, inJava.n, span.Milliseconds())
	}
	goes = goCrowd(t, span, clients, prefix, inGo.n)
	if began != nil {
		text := began.ok(t)
		var longest, stall int64
		_, err := fmt.Sscan(text, &javas.rounds, &javas.least, &javas.most, &longest, &stall)
		require.NoError(t, err, text)
		javas.longest, javas.stall = time.Duration(longest)*time.Millisecond, time.Duration(stall)*time.Millisecond
	}
	assert.Empty(t, shared.witness.violations())
	nothingLeft(t, below)
	return goes, javas
}

// goCrowd runs MultiLocks of Go.
func goCrowd(t *testing.T, span time.Duration, clients []*framework.Client, prefix string, n int) (got crowdTally) {
	t.Helper()
	if n == 0 {
		return got
	}
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	each, last := make([]int, n), time.Now()
	var mu sync.Mutex // guards each, last and got
	var wg sync.WaitGroup
	for i := range n {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		witness, err := callWitness(t.Context(), shared.witness.addr())
		require.NoError(t, err)
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
				<-time.After(5 * time.Millisecond)
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
