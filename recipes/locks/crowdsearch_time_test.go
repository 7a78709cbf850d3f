package locks_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/workload"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// schedules is how many the search tries. A thousand take a quarter of a minute.
var schedules = flag.Int("schedules", 2_000, "with -crowds: try so many random schedules of few owners of few locks")

// Two to four owners of two or three locks get through, in whatever order their requests,
// replies and events arrive. Each of these is late by a random time, which may be longer than
// what a MultiLock waits before it yields. Owners that nest take their locks in one order,
// which may be any, and in half of the schedules they do not pass their contexts on. Everybody
// goes on until all have had their locks three times, so this finds who is passed over, too. In
// every fourth schedule nobody has to make room, and nobody does. Where the names of nodes say in
// which order others go, no MultiLock makes room over and over.
func TestSearchSchedules(t *testing.T) {
	t.Parallel()
	seeds := 20
	if *wholeCrowds {
		seeds = *schedules
	}
	var worst schedule
	var yields int64 // of one wait
	for seed := *firstMixture; seed < *firstMixture+seeds; seed++ {
		s := scheduleOf(uint64(seed))
		naming(t, seed, s.mixture, func() { s.run(t) })
		if s.stall > worst.stall {
			worst.stall, worst.seed = s.stall, s.seed
		}
		worst.longest, worst.passed = max(worst.longest, s.longest), max(worst.passed, s.passed)
		if s.readable() {
			yields = max(yields, s.yields.most.Load())
		}
	}
	_, _ = fmt.Fprintf(t.Output(), "crowds: %d random schedules from seed %d, nobody stuck, longest time without a grant %v (seed %d), longest wait %v, others were served %d times meanwhile, a MultiLock gave way %d times\n",
		seeds, *firstMixture, worst.stall, worst.seed, worst.longest, worst.passed, yields)
}

// Schedules that the search has found. In the first an Ordered MultiLock was passed over
// for ever in two runs of three, although all take their locks in its order: it moved to the
// ends of both queues over and over. In the second somebody waited for ten seconds and more,
// as the MultiLock took others of its client for owners that might have what it waits for. In
// the next two an Ordered one left its queues twenty times for owners that hide their locks and
// take them in neither its order nor the reverse: it waited for 10 to 67 s. In the last one, in
// two runs of six, an Ordered one that read made room for another reader, which had the lock too.
//
// The second run of 628 has one owner pass its contexts on, and one hide its lock. An Ordered
// one made room for both at once. So the innocent one was in its way the next time, and it was
// passed over for ever. With all in one client, it suspected the innocent one just after it had
// made room for the other one. So it was passed over for ever again, and in 1645 as well. In 252 one is,
// if it leaves its queues twenty times before it keeps the later ones. With other delays one that goes in the order of paths and
// two in the reverse order moved for each other for ever. In 2254 owners hide their semaphore mutexes. Their
// nodes said that they had nothing else, so MultiLocks made room after ever longer waits, and somebody waited for five minutes.
func TestSchedulesThatWereFound(t *testing.T) {
	t.Parallel()
	for seed, most := range map[uint64]time.Duration{628: 20 * time.Second, 252: 5 * time.Second} {
		s := scheduleOf(seed)
		s.someTell = true
		s.run(t)
		assert.Less(t, s.longest, most, "seed %d, some tell", seed)
	}
	for range 3 {
		s := scheduleOf(252)
		s.someTell, s.seed = true, 8
		s.run(t)
		assert.Less(t, s.longest, 5*time.Second, "seed 252, some tell, other delays")
	}
	for _, seed := range []uint64{628, 1645} {
		s := scheduleOf(seed)
		s.someTell, s.clients = true, 1
		for i := range s.owners {
			clear(s.owners[i].clients)
		}
		s.run(t)
		assert.Less(t, s.longest, 2*time.Minute, "seed %d, some tell, one client", seed)
	}
	for seed, times := range map[uint64]int{1765: 3, 374: 1, 628: 1, 1645: 1, 1687: 5, 2254: 1} {
		for range times {
			s := scheduleOf(seed)
			s.run(t)
			assert.Less(t, s.longest, 5*time.Second, "seed %d", seed)
		}
	}
}

// A MultiLock beside two owners that hide their locks, and one of the same client that does not, is
// served. They take their locks in neither the order of paths nor the reverse. It was passed over for
// ever where goroutines of the client handed the nodes over to each other: it made room for one
// of them, and met the next one in its place.
func TestMultiLockBesideOwnersOfBothSorts(t *testing.T) {
	t.Parallel()
	owner := func(way workload.Way, members ...int) mixedOwner {
		return mixedOwner{way: way, members: members, reads: make([]bool, len(members)), clients: make([]int, len(members))}
	}
	for seed := range uint64(5) {
		s := &schedule{seed: seed, late: zktest.Uniform(0, time.Millisecond), hidden: true, someTell: true}
		s.kinds, s.clients, s.hold = make([]int, 3), 1, time.Millisecond
		s.owners = []mixedOwner{owner(workload.Nested, 0, 1), owner(workload.Nested, 2, 0), owner(workload.Multi, 0, 1, 2), owner(workload.Nested, 0, 1)}
		s.run(t)
		assert.Less(t, s.longest, 20*time.Second, "seed %d", seed)
	}
}

// schedule is a small mixture, and how late whatever is sent arrives.
type schedule struct {
	mixture
	seed   uint64
	late   zktest.Distribution
	faulty bool // every third one
	hidden bool // contexts are not passed on

	someTell bool // every second owner passes its contexts on

	peaceful bool // nobody has to make room

	stall, longest time.Duration // without a grant to anybody; that somebody waited
	passed         int           // how often others were served while somebody waited
	yields         yields
}

// yields is a tracer that notes how often a MultiLock yields in one wait, at most.
type yields struct {
	monitor.Nothing
	most atomic.Int64
}

type yieldsKey struct{}

func (y *yields) Begin(ctx context.Context, op monitor.Operation) context.Context {
	if op.Kind != monitor.Acquire {
		return ctx
	}
	return context.WithValue(ctx, yieldsKey{}, new(atomic.Int64))
}

func (y *yields) Event(ctx context.Context, e monitor.Event) {
	if e.Kind != monitor.Yielded {
		return
	}
	count, _ := ctx.Value(yieldsKey{}).(*atomic.Int64)
	for n, most := count.Add(1), y.most.Load(); n > most && !y.most.CompareAndSwap(most, n); most = y.most.Load() {
	}
}

func scheduleOf(seed uint64) *schedule {
	rnd := rand.New(rand.NewPCG(79, seed))
	s := &schedule{seed: seed, faulty: rnd.IntN(3) == 0, hidden: rnd.IntN(2) == 0}
	s.late = []zktest.Distribution{
		zktest.Uniform(0, time.Millisecond),
		zktest.Exponential(time.Millisecond, 20*time.Millisecond),
		zktest.Sometimes(0.2, zktest.Uniform(0, 20*time.Millisecond)),
		zktest.Sometimes(0.05, zktest.Uniform(0, 100*time.Millisecond)),
	}[rnd.IntN(4)]
	s.hold = []time.Duration{0, time.Millisecond, 5 * time.Millisecond}[rnd.IntN(3)]
	s.kinds, s.clients = make([]int, 2+rnd.IntN(2)), 1+rnd.IntN(3)
	most := 1 + 4*rnd.IntN(2)
	for i := range s.kinds {
		s.kinds[i] = rnd.IntN(most)
	}
	order := rnd.Perm(len(s.kinds))
	if slices.Max(s.kinds) > 2 { // MultiLocks take several steps
		slices.Sort(order)
	}
	for range 2 + rnd.IntN(3) {
		o := mixedOwner{way: []workload.Way{workload.Multi, workload.Multi, workload.Ordered, workload.Nested, workload.Nested}[rnd.IntN(5)], members: rnd.Perm(len(s.kinds))}
		o.members = o.members[:min(len(o.members), 2+rnd.IntN(2))]
		if o.way == workload.Nested {
			slices.SortFunc(o.members, func(a, b int) int { return slices.Index(order, a) - slices.Index(order, b) })
			o.members = o.members[:len(o.members)-rnd.IntN(2)]
		}
		client := rnd.IntN(s.clients)
		for range o.members {
			o.reads, o.clients = append(o.reads, rnd.IntN(2) == 0), append(o.clients, client)
		}
		s.owners = append(s.owners, o)
	}
	if seed%4 == 3 {
		s.pacify(rnd)
	}
	return s
}

// pacify leaves MultiLocks of one way and plain users, who wait for nobody but them. Each has a
// client of its own, since two plain users of one may be one owner that passes no context on.
// Holders stay for longer than a MultiLock waits before it yields to others.
func (s *schedule) pacify(rnd *rand.Rand) {
	s.peaceful, s.faulty, s.hidden = true, false, false
	s.hold, s.late = 30*time.Millisecond, zktest.Uniform(0, 10*time.Millisecond)
	for i := range s.kinds {
		s.kinds[i] %= 3 // all members of a MultiLock are taken in one step
	}
	s.clients = len(s.owners)
	way := []workload.Way{workload.Multi, workload.Ordered}[rnd.IntN(2)]
	for i := range s.owners {
		o := &s.owners[i]
		for n := range o.clients {
			o.clients[n] = i
		}
		if o.way == workload.Nested {
			o.members = o.members[:1]
		} else {
			o.way = way
		}
	}
}

// readable is whether names say in which order all go who nest: that of the paths, or the reverse.
func (s *schedule) readable() bool {
	inOrder, reverse := true, true
	for _, o := range s.owners {
		if o.way == workload.Nested {
			inOrder = inOrder && slices.IsSorted(o.members)
			reverse = reverse && slices.IsSortedFunc(o.members, func(a, b int) int { return b - a })
		}
	}
	return !s.faulty && !s.hidden && (inOrder || reverse)
}

func (s *schedule) run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(100*time.Microsecond), zktest.LatencyBy(s.late), zktest.Seed(s.seed))
		var clients []*framework.Client
		for i := range s.clients {
			clients = append(clients, kit.Connect(t, srv, func(cfg *framework.Config) { cfg.DialContext, cfg.Tracer = srv.Dialer(fmt.Sprint(i)), &s.yields }))
		}
		var mu sync.Mutex
		last, grants, left := time.Now(), 0, 3*len(s.owners)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		if s.faulty {
			wg.Go(func() { fail(srv, rand.New(rand.NewPCG(78, s.seed))) })
		}
		for i, o := range s.owners {
			rnd := rand.New(rand.NewPCG(s.seed, uint64(i)))
			wg.Go(func() {
				for mine := 0; ctx.Err() == nil; {
					var set []locks.Lock
					for n, member := range o.members {
						set = append(set, s.lock(clients[o.clients[n]], member, o.reads[n]))
					}
					mu.Lock()
					began, before := time.Now(), grants
					mu.Unlock()
					how := workload.How{Chained: !s.hidden || s.someTell && i%2 == 0, Inside: func(workload.Held) error {
						mu.Lock()
						s.stall, s.longest, s.passed = max(s.stall, time.Since(last)), max(s.longest, time.Since(began)), max(s.passed, grants-before)
						if grants, mine = grants+1, mine+1; mine <= 3 {
							left--
						}
						if left == 0 {
							cancel()
						}
						mu.Unlock()
						time.Sleep(s.hold/2 + time.Duration(rnd.Int64N(int64(s.hold)+1)))
						mu.Lock()
						last = time.Now()
						mu.Unlock()
						return nil
					}}
					limited, stop := context.WithTimeout(ctx, mostWait)
					_, err := how.Once(limited, o.way, set...)
					stop()
					if ctx.Err() == nil && !s.faulty && !assert.NoError(t, err, "seed %d, owner %d", s.seed, i) || time.Since(began) > mostWait && !assert.Fail(t, "stuck", "owner %d: %v", i, err) {
						cancel()
					}
					time.Sleep(time.Duration(rnd.Int64N(int64(time.Millisecond))))
				}
			})
		}
		wg.Wait()
	})
	switch most := s.yields.most.Load(); {
	case s.peaceful:
		assert.Zero(t, most, "a MultiLock has made room for nobody")
	case s.readable():
		assert.Less(t, most, int64(20), "a MultiLock has given way over and over")
	}
}

// mostWait is how long somebody may wait, of a time in which others are served without end.
const mostWait = 5 * time.Minute
