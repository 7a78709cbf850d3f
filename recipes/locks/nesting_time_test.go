package locks_test

import (
	"context"
	"flag"
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

// setting is what else there is to a crowd.
type setting struct {
	hold    time.Duration
	clients clients
	ordered bool          // all MultiLocks are Ordered
	apart   bool          // no local queues: each goroutine has a node of its own
	far     time.Duration // how far away the server is, if not near
}

// clients is who shares one. Where they are shared, who nests passes its context
// on.
type clients string

const (
	ownClients clients = "own"
	twoClients clients = "two" // one for the MultiLocks, one for all others
	oneClient  clients = "one"
)

func (s setting) String() string {
	name := fmt.Sprintf("%v clients=%s", s.hold, s.clients)
	if s.ordered {
		name += " ordered"
	}
	if s.apart {
		name += " without local queues"
	}
	if s.far > 0 {
		name += fmt.Sprint(" far=", s.far)
	}
	return name
}

// hidesOwners is whether one node stands for many owners in the eyes of those in
// other clients, who can suspect only that.
func (s setting) hidesOwners() bool { return s.clients == twoClients && !s.apart }

func (s setting) lock(c *framework.Client, path string) locks.Lock {
	switch {
	case path == workload.SemaphoreMutex:
		return locks.NewInterProcessSemaphoreMutex(c, "/"+path)
	case s.apart:
		return locks.NewInterProcessMutex(c, "/"+path, locks.LocalHandovers(0))
	}
	return locks.NewInterProcessMutex(c, "/"+path)
}

// score is what came of a crowd.
type score struct {
	rounds  []int
	longest []time.Duration // that each waited
	stall   time.Duration   // the longest time in which nobody got anything
	lists   float64         // per round, of one queue each
}

func runCrowd(t *testing.T, actors []workload.Actor, in setting) (s score) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(max(kit.Near, in.far)))
		s = score{rounds: make([]int, len(actors)), longest: make([]time.Duration, len(actors))}
		var mu sync.Mutex
		owned := map[string]int{}
		lists := 0
		for _, op := range []string{"getChildren", "multiRead"} {
			srv.On(zktest.Match{Op: op}, zktest.Call(func(r zktest.Request) {
				mu.Lock()
				defer mu.Unlock()
				lists += len(r.Paths)
			}))
		}
		last := time.Now()
		span, whole := time.Second, *everyNesting != ""
		if in.clients == oneClient {
			span *= 2 // a local queue that was there first hands over more often
		}
		if whole {
			span = 5 * time.Second
		}
		if slices.ContainsFunc(actors, workload.Actor.UsesSemaphoreMutex) {
			span *= 2 // rounds are fewer there
			if whole {
				span *= 2
			}
		}
		span = max(span, 300*in.hold, 4000*in.far)
		if in.hold > time.Second {
			span *= 2 // who is rarely served waits for hundreds of holds
		}
		if slices.ContainsFunc(actors, func(a workload.Actor) bool { return a.Like != "" }) {
			span *= 4 // they are compared with each other, by few rounds
		}
		ctx, cancel := context.WithTimeout(t.Context(), span)
		defer cancel()
		var wg sync.WaitGroup
		shared := make(map[string]*framework.Client)
		for i, a := range actors {
			a.Ordered = a.Ordered || in.ordered
			with := map[clients]string{ownClients: fmt.Sprint(i), twoClients: fmt.Sprint(a.Multi), oneClient: ""}[in.clients]
			if shared[with] == nil {
				shared[with] = kit.Connect(t, srv)
			}
			c := shared[with]
			wg.Go(func() {
				// Not quite the same every time, or the same few orders come about over and over.
				random := rand.New(rand.NewPCG(uint64(i), 1))
				for ctx.Err() == nil {
					began := time.Now()
					var had time.Time
					inside := func(workload.Held) error {
						had = time.Now()
						mu.Lock()
						for _, p := range a.Paths {
							owned[p]++
							assert.Equal(t, 1, owned[p], "two owners of %s", p)
						}
						s.stall, last = max(s.stall, time.Since(last)), time.Now()
						mu.Unlock()
						time.Sleep(in.hold/2 + time.Duration(random.Int64N(int64(in.hold)+1)))
						mu.Lock()
						for _, p := range a.Paths {
							owned[p]--
						}
						last = time.Now()
						mu.Unlock()
						return nil
					}
					lock := func(path string) locks.Lock { return in.lock(c, path) }
					all, err := a.Once(ctx, lock, workload.How{Inside: inside, Chained: in.clients != ownClients})
					if ctx.Err() != nil {
						return
					}
					if !assert.NoError(t, err) {
						return
					}
					if all {
						s.rounds[i]++
						s.longest[i] = max(s.longest[i], had.Sub(began))
					}
					time.Sleep(time.Duration(random.Int64N(int64(200 * time.Microsecond))))
				}
			})
		}
		wg.Wait()
		s.stall = max(s.stall, time.Since(last))
		all := 0
		for _, n := range s.rounds {
			all += n
		}
		mu.Lock()
		s.lists = float64(lists) / float64(max(1, all))
		mu.Unlock()
		time.Sleep(time.Minute)
		kit.NothingLeft(t, srv)
	})
	return s
}

// everyNesting has TestNesting try everything, which takes minutes.
var everyNesting = flag.String("nesting", "", "try all mixtures of owners, hold times and clients: `k/n` is each n-th, from the k-th on")

// partOf is the part of all mixtures that was asked for.
func partOf(t *testing.T) (k, n int) {
	_, err := fmt.Sscanf(*everyNesting, "%d/%d", &k, &n)
	require.NoError(t, err)
	require.True(t, 1 <= k && k <= n, "there is no part %d of %d", k, n)
	return k, n
}

// settings are those that each crowd is tried in.
func settings(crowd string) (all []setting) {
	if *everyNesting == "" {
		const short, long, longest = 2 * time.Millisecond, 200 * time.Millisecond, 2 * time.Second
		all = []setting{{hold: short, clients: ownClients}, {hold: short, clients: twoClients, ordered: true}, {hold: short, clients: oneClient}, {hold: long, clients: twoClients}}
		switch crowd {
		case "plain": // nobody waits for a MultiLock while holding what it wants, but so it may seem
			all = append(all, setting{hold: longest, clients: twoClients})
		case "three sets": // one of them stands in the way of the most owners
			all = append(all, setting{hold: long, clients: ownClients}, setting{hold: long, clients: ownClients, far: 3 * time.Millisecond})
		}
		return all
	}
	for _, hold := range []time.Duration{0, 2 * time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond, 2 * time.Second} {
		for _, clients := range []clients{ownClients, twoClients, oneClient} {
			for _, ordered := range []bool{false, true} {
				all = append(all, setting{hold: hold, clients: clients, ordered: ordered})
				if clients != ownClients { // else there is nobody to share a local queue with
					all = append(all, setting{hold: hold, clients: clients, ordered: ordered, apart: true})
					continue
				}
				if crowd == "both, timed" {
					continue // from far away they give up before a MultiLock can see them
				}
				for _, far := range []time.Duration{3 * time.Millisecond, 10 * time.Millisecond} {
					all = append(all, setting{hold: hold, clients: clients, ordered: ordered, far: far})
				}
			}
		}
	}
	return all
}

// Nobody is blocked for ever or starved, whoever takes the locks in whatever way.
func TestNesting(t *testing.T) {
	t.Parallel()
	k, n := 1, 1
	if *everyNesting != "" {
		k, n = partOf(t)
	}
	for c, crowd := range slices.Concat(workload.Crowds, workload.MoreCrowds) {
		for i, in := range settings(crowd.Name) {
			if i%n != k-1 || *everyNesting == "" && (c+i)%4 != 0 { // the crowds share the settings out
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", crowd.Name, in), func(t *testing.T) {
				s := runCrowd(t, crowd.Actors, in)
				_, _ = fmt.Fprintf(t.Output(), "nesting: %s: rounds %v, longest wait %v, stall %v, %.1f lists per round\n", t.Name(), s.rounds, s.longest, s.stall, s.lists)
				s.check(t, crowd.Actors, in)
			})
		}
	}
}

func (s score) check(t *testing.T, actors []workload.Actor, in setting) {
	limit := time.Second + 3*in.hold/2 + 50*in.far // as long as the longest hold, 1 s, and 25 round trips
	if slices.ContainsFunc(actors, workload.Actor.UsesSemaphoreMutex) {
		limit += time.Second // `Ordered` ones there take 1 to 2 s in one run of twenty
	}
	assert.Less(t, s.stall, limit, "nobody got anything")
	least, most, apart := map[string]int{}, map[string]int{}, map[string]int{}
	for i, a := range actors {
		apart[a.Kind()], apart[a.Like] = 5, 6 // and a bit for chance, as their rounds are few
		kinds := []string{a.Kind()}
		if a.Like != "" && !in.hidesOwners() {
			kinds = append(kinds, a.Like)
		}
		for _, kind := range kinds {
			if n, ok := least[kind]; !ok || s.rounds[i] < n {
				least[kind] = s.rounds[i]
			}
			most[kind] = max(most[kind], s.rounds[i])
		}
	}
	for kind := range most {
		assert.GreaterOrEqual(t, apart[kind]*least[kind], most[kind], "%s: equals", kind)
		assert.Positive(t, least[kind], kind)
	}
}

// MultiLocks go on in the order of owners that wait for them, also where these do not pass on
// their contexts. Before, they moved to the end of a queue each time, and one was served once.
func TestMultiLocksFollowOwnersThatHideTheirLocks(t *testing.T) {
	t.Parallel()
	at := slices.IndexFunc(workload.Crowds, func(c workload.Crowd) bool { return c.Name == "three sets" })
	s := runCrowd(t, workload.Crowds[at].Actors, setting{hold: 2 * time.Millisecond, clients: ownClients})
	assert.GreaterOrEqual(t, slices.Min(s.rounds), 10, "%v", s.rounds)
}
