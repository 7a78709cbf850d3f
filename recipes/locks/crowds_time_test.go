package locks_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/workload"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// wholeCrowds has the crowds take as long, and as many seeds, as it needs to judge them.
var wholeCrowds = flag.Bool("crowds", false, "try large crowds of MultiLocks, and thousands of small ones")

// mixtures is how many small ones, and which. A thousand take half a minute.
var (
	mixtures     = flag.Int("mixtures", 2_000, "with -crowds: try so many random mixtures of MultiLocks and others")
	firstMixture = flag.Int("first", 0, "the seed of the first mixture")
)

// crowdSize is who is in a crowd, and what they take.
type crowdSize struct {
	paths, clients, each int // owners of each client
	least, most          int // members of a set
	writes               int // percent of the members that are write sides; 0 for mutexes
}

func (c crowdSize) String() string {
	members := "mutexes"
	if c.writes > 0 {
		members = fmt.Sprintf("sides, %d %% writes", c.writes)
	}
	return fmt.Sprintf("%d of %d clients, %d to %d of %d %s", c.clients*c.each, c.clients, c.least, c.most, c.paths, members)
}

// tally is what came of a crowd.
type tally struct {
	mu      sync.Mutex
	each    []int
	longest []time.Duration // that each waited, at the end also in vain
	last    time.Time       // grant
	stall   time.Duration   // longest time without one
	// In the second half of the time, in which as many set out as are done.
	grants, requests, lists int
	events, bytes           int // that the server sent
}

func (s *tally) granted(i int, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.each[i]++
	s.longest[i] = max(s.longest[i], now.Sub(since))
	s.stall, s.last = max(s.stall, now.Sub(s.last)), now
}

func (s *tally) rounds() (all int) {
	for _, n := range s.each {
		all += n
	}
	return all
}

func (s *tally) String() string {
	sum := s.rounds()
	return fmt.Sprintf("%d rounds, shares %d to %d, longest without a grant %v, longest wait %v, %.1f requests and %.1f lists a grant", sum, slices.Min(s.each),
		slices.Max(s.each), s.stall.Round(time.Millisecond), slices.Max(s.longest).Round(time.Millisecond), s.forAGrant(s.requests), s.forAGrant(s.lists))
}

// gathering is owners that want locks for some time of a bubble.
type gathering struct {
	span, hold      time.Duration // 0 is 5 ms
	clients, owners int
	hidden          bool          // contexts are not passed on
	private, shared bool          // each has another lock all the time, half of them at an early path, or all have one, and passes on its context
	far             time.Duration // how far away the server is, if not near
}

// run has each take what draw gives, in a way, over and over, and hold it.
func (g gathering) run(t *testing.T, draw func(i int, rnd *rand.Rand, all []*framework.Client) (workload.Way, []locks.Lock)) *tally {
	s := &tally{each: make([]int, g.owners), longest: make([]time.Duration, g.owners)}
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(max(500*time.Microsecond, g.far)))
		var all []*framework.Client
		for range g.clients {
			all = append(all, kit.Connect(t, srv))
		}
		count := func(sign int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			c, of := srv.Counters(), srv.Requests()
			s.grants += sign * s.rounds()
			s.requests += sign * int(c.Received)
			s.lists += sign * (of["multiRead"] + of["getChildren"] + of["getChildren2"])
			s.events += sign * int(c.Notifications)
			s.bytes += sign * int(c.BytesSent)
		}
		time.AfterFunc(g.span/2, func() { count(-1) })
		time.AfterFunc(g.span-time.Nanosecond, func() { count(1) })
		ctx, cancel := context.WithTimeout(t.Context(), g.span)
		defer cancel()
		var job *locks.Hold
		if g.shared {
			job = kit.Hold(t, locks.NewInterProcessMutex(all[0], "/job"))
		}
		s.last = time.Now()
		var wg sync.WaitGroup
		for i := range g.owners {
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			wg.Go(func() {
				outer, under := job, ctx
				if g.private {
					outer = kit.HoldWith(ctx, t, locks.NewInterProcessMutex(all[i%len(all)], fmt.Sprintf("/%c/%d", "az"[i%2], i)))
					defer func() { assert.NoError(t, outer.Release()) }()
				}
				if outer != nil {
					bound, end := outer.Bind(ctx)
					defer end()
					under = bound
				}
				for ctx.Err() == nil {
					way, set := draw(i, rnd, all)
					began := time.Now()
					inside := func(workload.Held) error {
						s.granted(i, began)
						time.Sleep(cmp.Or(g.hold, 5*time.Millisecond))
						return nil
					}
					had, err := workload.How{Inside: inside, Chained: !g.hidden}.Once(under, way, set...)
					if ctx.Err() == nil {
						assert.NoError(t, err)
					}
					if !had {
						s.longest[i] = max(s.longest[i], time.Since(began))
					}
				}
			})
		}
		wg.Wait()
		s.stall = max(s.stall, time.Since(s.last))
		if job != nil {
			assert.NoError(t, job.Release())
		}
	})
	return s
}

// alone runs a crowd in which everybody takes locks in one way.
func (c crowdSize) alone(t *testing.T, span time.Duration, way workload.Way) *tally {
	return gathering{span: span, clients: c.clients, owners: c.clients * c.each}.run(t, func(i int, rnd *rand.Rand, all []*framework.Client) (workload.Way, []locks.Lock) {
		client, members := all[i%len(all)], rnd.Perm(c.paths)[:c.least+rnd.IntN(c.most-c.least+1)]
		if way == workload.Nested {
			slices.Sort(members)
		}
		var set []locks.Lock
		for _, m := range members {
			path := fmt.Sprintf("/s/m%04d", m)
			switch rw := locks.NewInterProcessReadWriteLock(client, path); {
			case c.writes == 0:
				set = append(set, locks.NewInterProcessMutex(client, path))
			case rnd.IntN(100) < c.writes:
				set = append(set, rw.WriteLock())
			default:
				set = append(set, rw.ReadLock())
			}
		}
		return way, set
	})
}

// MultiLocks among themselves are as fast as nested locking of the same, and have equal
// shares, however many there are.
func TestCrowdsOfMultiLocks(t *testing.T) {
	t.Parallel()
	span := time.Second
	crowds := []crowdSize{{25, 1, 60, 2, 4, 0}, {25, 4, 5, 2, 4, 20}, {25, 4, 3, 15, 20, 10}}
	if *wholeCrowds {
		span = 20 * time.Second
		crowds = []crowdSize{
			{25, 1, 1000, 2, 4, 0}, {25, 100, 10, 2, 4, 0}, {1000, 1, 1000, 2, 4, 0}, {4, 20, 10, 2, 3, 0},
			{25, 1, 100, 2, 4, 20}, {25, 10, 10, 2, 4, 20}, {25, 10, 10, 2, 4, 5}, {25, 4, 5, 15, 20, 10}, {25, 4, 5, 15, 20, 100}, {100, 1, 40, 50, 60, 2},
		}
	}
	for _, c := range crowds {
		t.Run(c.String(), func(t *testing.T) {
			span := span
			if c.paths == 1000 {
				span /= 4 // it makes a hundred thousand rounds
			}
			nested, multi := c.alone(t, span, workload.Nested), c.alone(t, span, workload.Multi)
			_, _ = fmt.Fprintf(t.Output(), "crowds: %v: nested: %v\ncrowds: %v: MultiLocks: %v\n", c, nested, c, multi)
			least := 9 * nested.rounds() / 10
			switch {
			case c.least >= 15:
				least = 2 * nested.rounds()
			case c.paths == 1000: // where few wait, nested locking serves small sets first, which make more rounds
				least = 17 * nested.rounds() / 20
			}
			assert.GreaterOrEqual(t, multi.rounds(), least, "nested locking is faster")
			assert.LessOrEqual(t, slices.Max(multi.each), 2*slices.Min(multi.each)+2, "shares")
			assert.Less(t, multi.stall, 2*time.Second, "nobody got anything")
			assert.Less(t, slices.Max(multi.longest), span/2, "somebody waited")
			ordered := c.alone(t, span, workload.Ordered)
			_, _ = fmt.Fprintf(t.Output(), "crowds: %v: Ordered MultiLocks: %v\n", c, ordered)
			assert.GreaterOrEqual(t, 10*ordered.rounds(), 8*nested.rounds(), "nested locking is faster than Ordered ones")
			assert.Less(t, ordered.stall, 2*time.Second, "nobody got anything")
		})
	}
}

// mixedCrowd is MultiLocks, and owners that nest or take one lock at a time.
type mixedCrowd struct {
	multi, inOrder, reverse, plain int
	hidden                         bool // contexts are not passed on
	private, shared                bool // see gathering
	leases                         bool // one lock of five is a semaphore mutex
	hold                           time.Duration
	unyielding                     bool // nobody yields to plain users
}

// sides are the rounds of each, and the longest wait.
func (m mixedCrowd) sides(got *tally) string {
	var all []string
	from := 0
	for _, n := range []int{m.multi, m.inOrder, m.reverse, m.plain} {
		if n > 0 {
			rounds := 0
			for _, one := range got.each[from : from+n] {
				rounds += one
			}
			all = append(all, fmt.Sprintf("%d (%v)", rounds, slices.Max(got.longest[from:from+n]).Round(time.Millisecond)))
		}
		from += n
	}
	return strings.Join(all, " + ")
}

// run has the MultiLocks, or what stands in their place, take locks in a way. If that is to nest, all go in the order of the paths.
func (m mixedCrowd) run(t *testing.T, span time.Duration, clients int, way workload.Way) *tally {
	together := way == workload.Nested
	var turns sync.Map // of unyielding ones
	return gathering{span: span, hold: m.hold, clients: clients, owners: m.multi + m.inOrder + m.reverse + m.plain, hidden: m.hidden, private: m.private, shared: m.shared}.run(t, func(i int, rnd *rand.Rand, all []*framework.Client) (workload.Way, []locks.Lock) {
		client, way, members := all[i%len(all)], way, rnd.Perm(25)[:2+rnd.IntN(3)]
		if i >= m.multi {
			way = workload.Nested
		}
		if i >= m.multi+m.inOrder+m.reverse {
			members = members[:1]
		}
		if way == workload.Nested {
			slices.Sort(members)
		}
		if i >= m.multi+m.inOrder && !together {
			slices.Reverse(members)
		}
		var set []locks.Lock
		for _, member := range members {
			path := fmt.Sprintf("/s/m%04d", member)
			var mutex locks.Lock = locks.NewInterProcessMutex(client, path)
			if m.leases && member%5 == 4 {
				mutex = locks.NewInterProcessSemaphoreMutex(client, path)
			}
			if set = append(set, mutex); m.unyielding && i >= m.multi {
				turn, _ := turns.LoadOrStore([2]int{i % len(all), member}, make(chan struct{}, 1))
				set[0] = unyielding{mutex, locks.NewInterProcessMutex(client, fmt.Sprintf("/own/%d", i)), turn.(chan struct{})}
			}
		}
		return way, set
	})
}

// unyielding is a mutex of a plain user whose node says that it is a MultiLock's, as the other member
// is a lock that nobody else wants. So nobody yields to it. As with a mutex, the goroutines of a
// client have one node at a time.
type unyielding struct {
	mutex, other locks.Lock
	turn         chan struct{}
}

func (u unyielding) Acquire(ctx context.Context) (*locks.Hold, error) {
	select {
	case u.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	hold, err := locks.NewInterProcessMultiLock(u.mutex, u.other).Acquire(ctx)
	if err != nil {
		<-u.turn
		return nil, err
	}
	given, _ := locks.NewHold(ctx, func() error {
		defer func() { <-u.turn }()
		return hold.Release()
	})
	return given, nil
}

func (u unyielding) TryAcquire(context.Context, time.Duration) (*locks.Hold, error) {
	return nil, errors.ErrUnsupported
}

// Beside plain users all make nearly as many rounds as without any yield, and wait about as long. Beside owners that nest,
// in the order of paths or in the reverse order, all make at least half of what they make if
// all nest. Somebody gets something all the time, and everybody gets something. Crowds of owners
// that do not pass their contexts on make a thousand rounds.
func TestCrowdsBesideOthers(t *testing.T) {
	t.Parallel()
	span, scale := 2*time.Second, 1
	if *wholeCrowds {
		span, scale = 20*time.Second, 5
	}
	all := []mixedCrowd{
		{multi: 20, plain: 20},
		{multi: 20, plain: 20, leases: true},
		{multi: 20, inOrder: 4},
		{multi: 4, reverse: 20},
		{multi: 10, inOrder: 10},
		{multi: 10, reverse: 10},
		{multi: 10, inOrder: 4, plain: 10},
		{multi: 40, reverse: 1},
		{multi: 20, reverse: 4},
		{multi: 20, plain: 20, hold: 20 * time.Millisecond},
		{multi: 20, plain: 20, leases: true, hold: 20 * time.Millisecond},
		{multi: 20, plain: 20, hold: 50 * time.Millisecond},
		{multi: 20, inOrder: 4, hidden: true},
		{multi: 20, reverse: 4, hidden: true},
	}
	if !*wholeCrowds {
		all = all[:4] // one of each sort
	}
	for nth, c := range all {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			both := []int{1, 10}
			if !*wholeCrowds { // the crowds share them out
				both = both[nth%2 : nth%2+1]
			}
			c.multi, c.inOrder, c.plain = c.multi*scale, c.inOrder*scale, c.plain*scale
			if c.reverse > 1 {
				c.reverse *= scale
			}
			for _, clients := range both {
				c.unyielding = false
				got := c.run(t, span, clients, workload.Multi)
				_, _ = fmt.Fprintf(t.Output(), "crowds: %+v, %d clients: %s: %v\n", c, clients, c.sides(got), got)
				assert.Less(t, got.stall, 2*time.Second, "nobody got anything")
				if *wholeCrowds {
					assert.Positive(t, slices.Min(got.each), "somebody got nothing")
				}
				if c.hidden { // in 27 runs with ten clients MultiLocks waited for 7 to 16 s at most, and others for 7 to 10 s
					assert.GreaterOrEqual(t, got.rounds(), 1000)
					continue
				}
				assert.Less(t, slices.Max(got.longest[:c.multi]), 15*time.Second, "a MultiLock waited")
				if clients > 1 { // in one it is 16 s at times
					assert.Less(t, slices.Max(got.longest), 15*time.Second, "somebody waited")
				}
				if c.inOrder+c.reverse > 0 {
					nested := c.run(t, span, clients, workload.Nested)
					_, _ = fmt.Fprintf(t.Output(), "crowds: the same if all nest: %s: %v\n", c.sides(nested), nested)
					assert.GreaterOrEqual(t, 2*got.rounds(), nested.rounds(), "beside owners that nest")
					continue
				}
				c.unyielding = true
				without := c.run(t, span, clients, workload.Multi)
				_, _ = fmt.Fprintf(t.Output(), "crowds: the same if nobody yields: %s: %v\n", c.sides(without), without)
				share := 0.9
				if !*wholeCrowds { // few rounds show less: in 15 runs it was 0.95 to 1.09
					share = 0.8
				}
				assert.GreaterOrEqual(t, float64(got.rounds()), share*float64(without.rounds()), "beside plain users")
				assert.Less(t, slices.Max(got.longest), 3*slices.Max(without.longest), "somebody waited")
			}
		})
	}
}

// A lock that nobody else wants takes little from those who acquire others under it, each under one of its own or all
// under one: MultiLocks alone make as many rounds as without. They made a twentieth of that, and a quarter. Beside
// owners that nest under such locks it may take seconds until clients have learned in which order these go.
func TestCrowdsUnderLocksOfTheirOwn(t *testing.T) {
	t.Parallel()
	all, span := []mixedCrowd{{multi: 40}, {multi: 4}}, 3*time.Second
	if *wholeCrowds { // beside others 3 s are too short: somebody gets nothing at times
		all, span = append(all, mixedCrowd{multi: 20, plain: 20}, mixedCrowd{multi: 20, inOrder: 10}, mixedCrowd{multi: 20, reverse: 10}), 10*time.Second
	}
	for _, c := range all {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			share := 0.7
			if c.plain > 0 { // their nodes say nothing of what they have
				share = 0.4
			}
			for _, clients := range []int{1, 5} {
				c.private, c.shared = false, false
				without := c.run(t, span, clients, workload.Multi)
				_, _ = fmt.Fprintf(t.Output(), "crowds: %+v, %d clients: %s: %v\n", c, clients, c.sides(without), without)
				for _, c.shared = range []bool{false, true} {
					c.private = !c.shared
					got := c.run(t, span, clients, workload.Multi)
					_, _ = fmt.Fprintf(t.Output(), "crowds: %+v, %d clients: %s: %v\n", c, clients, c.sides(got), got)
					assert.GreaterOrEqual(t, float64(got.rounds()), share*float64(without.rounds()))
					assert.Less(t, got.stall, 2*time.Second, "nobody got anything")
					assert.Positive(t, slices.Min(got.each), "somebody got nothing")
				}
			}
		})
	}
}

// A lock of another kind says nothing about the order in which its owner takes others. Owners that take the lock of a job
// first, wherever it is, and then others in the order of everybody, harm nobody. Beside ten of them, these crowds made a tenth.
func TestCrowdsBesideOwnersOfJobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		job              string
		reverse, library bool
	}{{"/z", false, false}, {"/a", true, false}, {"/z", false, true}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			got := gathering{span: 3 * time.Second, clients: 8, owners: 40}.run(t, func(i int, rnd *rand.Rand, all []*framework.Client) (workload.Way, []locks.Lock) {
				way, of, members := workload.Multi, all[2*(i%4):], rnd.Perm(25)[:2+rnd.IntN(3)]
				if slices.Sort(members); c.reverse {
					slices.Reverse(members)
				}
				var set []locks.Lock
				if i >= 20 {
					way = workload.Nested
				}
				if i >= 30 {
					set = append(set, locks.NewInterProcessMutex(of[0], fmt.Sprintf("%s/%d", c.job, i%5)))
				}
				return way, append(set, mutexesOf(of, i >= 20 && i < 30 && c.library, members)...)
			})
			_, _ = fmt.Fprintf(t.Output(), "crowds: 20 MultiLocks, 10 that nest, and 10 that take the lock of a job first: %+v: %v\n", c, got)
			assert.GreaterOrEqual(t, got.rounds(), 600)
			assert.Less(t, got.stall, 2*time.Second, "nobody got anything")
		})
	}
}

// Ordered MultiLocks that have waited for long leave a queue and all later ones. If they went to its end and kept those,
// they would wait at an earlier path than they block, and so for each other. They got nothing for up to 32 s.
func TestOrderedBesideLongHolds(t *testing.T) {
	t.Parallel()
	for name, nested := range map[string]int{"owners that nest": 2, "plain users": 1} {
		t.Run(name, func(t *testing.T) {
			got := gathering{span: 20 * time.Second, clients: 2, owners: 20}.run(t, func(i int, rnd *rand.Rand, all []*framework.Client) (workload.Way, []locks.Lock) {
				members, way := rnd.Perm(3)[:2+rnd.IntN(2)], workload.Ordered
				if i >= 14 {
					members, way = members[:nested], workload.Nested
				}
				slices.Sort(members)
				var set []locks.Lock
				for _, m := range members {
					set = append(set, locks.NewInterProcessMutex(all[i%len(all)], fmt.Sprintf("/s/m%d", m)))
				}
				if i >= 14 && rnd.IntN(10) == 0 {
					set[len(set)-1] = held{set[len(set)-1], time.Second}
				}
				return way, set
			})
			_, _ = fmt.Fprintf(t.Output(), "crowds: 14 Ordered MultiLocks and 6 %s: %v\n", name, got)
			assert.Less(t, got.stall, 3*time.Second, "nobody got anything")
			assert.GreaterOrEqual(t, got.rounds(), 200)
			assert.Positive(t, slices.Min(got.each), "somebody got nothing")
		})
	}
}

// held is a lock that is held for longer.
type held struct {
	locks.Lock
	more time.Duration
}

func (h held) Acquire(ctx context.Context) (*locks.Hold, error) {
	hold, err := h.Lock.Acquire(ctx)
	if err == nil {
		time.Sleep(h.more)
	}
	return hold, err
}

// A MultiLock beside one plain user for each of its locks, who takes it again at once, is served, however long
// these hold their locks. It made room for one of them before it had the other lock, over and over.
func TestMultiLockBesideLongHolds(t *testing.T) {
	t.Parallel()
	for _, hold := range []time.Duration{2 * time.Second, 10 * time.Second, time.Minute} {
		t.Run(hold.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				lock := func(path string) locks.Lock { return locks.NewInterProcessMutex(kit.Connect(t, srv), path) }
				for i, mutex := range []locks.Lock{lock("/a"), lock("/b")} {
					rnd := rand.New(rand.NewPCG(1, uint64(i)))
					wg.Go(func() {
						for ctx.Err() == nil {
							_ = locks.Do(ctx, mutex, func(context.Context) error {
								time.Sleep(hold/2 + time.Duration(rnd.Int64N(int64(hold))))
								return nil
							})
						}
					})
				}
				client := kit.Connect(t, srv)
				both := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(client, "/a"), locks.NewInterProcessMutex(client, "/b"))
				for range 10 {
					time.Sleep(hold)
					held, err := both.TryAcquire(ctx, 30*hold)
					if assert.NoError(t, err) {
						assert.NoError(t, held.Release())
					}
				}
				cancel()
				wg.Wait()
			})
		})
	}
}

// Nobody waits for ever: random sets of all kinds of members, also of several clients, by
// MultiLocks, Ordered ones, and owners that nest in one order. Every second time the network
// fails, and sessions end.
func TestNobodyIsStuck(t *testing.T) {
	t.Parallel()
	seeds := 20
	if *wholeCrowds {
		seeds = *mixtures
	}
	var worst [2]time.Duration // without faults, and with them
	for seed := *firstMixture; seed < *firstMixture+seeds; seed++ {
		m := mixtureOf(uint64(seed))
		naming(t, seed, m, func() { worst[seed%2] = max(worst[seed%2], m.run(t, uint64(seed))) })
	}
	_, _ = fmt.Fprintf(t.Output(), "crowds: %d random mixtures from seed %d, nobody stuck, longest time without a grant %v, with faults %v\n", seeds, *firstMixture, worst[0], worst[1])
}

// A mixture that the search has found: nobody got anything for 7 s. Four MultiLocks and two
// owners that nest met in the same way over and over. These take their locks in one order, which
// is neither that of the paths nor the reverse. It is 1.0 to 1.4 s now, and up to 3.2 s in one
// schedule of thirty.
func TestMixtureThatWasFound(t *testing.T) {
	t.Parallel()
	const seed = 15152
	assert.Less(t, mixtureOf(seed).run(t, seed), 5*time.Second)
}

// naming runs one of many bubbles, and says which one has failed. That ends the test.
func naming(t *testing.T, seed int, m mixture, run func()) {
	defer func() {
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, m)
		}
	}()
	run()
}

// mixture is locks of all kinds, and owners that take some of them.
type mixture struct {
	kinds   []int // of the locks: 0 and 1 mutex, 2 read/write, 3 semaphore mutex, 4 semaphore
	clients int
	hold    time.Duration
	owners  []mixedOwner
}

type mixedOwner struct {
	way     workload.Way
	members []int // in the order in which it takes them, if it nests
	reads   []bool
	clients []int // whose lock object each is
}

func mixtureOf(seed uint64) (m mixture) {
	rnd := rand.New(rand.NewPCG(77, seed))
	m.kinds, m.clients = make([]int, 2+rnd.IntN(5)), 1+rnd.IntN(3)
	m.hold = []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 50 * time.Millisecond}[rnd.IntN(4)]
	most := 3 + 2*rnd.IntN(2)
	for i := range m.kinds {
		m.kinds[i] = rnd.IntN(most)
	}
	over := rnd.IntN(4) == 0 // members of several clients
	var order []int          // of those that nest: any, or that of the paths if MultiLocks take several steps
	if slices.Max(m.kinds) <= 2 && (!over || m.clients == 1) {
		order = rnd.Perm(len(m.kinds))
	}
	for range 2 + rnd.IntN(5) {
		o := mixedOwner{way: []workload.Way{workload.Multi, workload.Ordered, workload.Nested}[rnd.IntN(3)], members: rnd.Perm(len(m.kinds))[:2+rnd.IntN(min(3, len(m.kinds)-1))]}
		if o.way == workload.Nested {
			slices.SortFunc(o.members, func(a, b int) int {
				if order == nil {
					return a - b
				}
				return slices.Index(order, a) - slices.Index(order, b)
			})
		}
		home := rnd.IntN(m.clients)
		for range o.members {
			client := home
			if over {
				client = rnd.IntN(m.clients)
			}
			o.reads, o.clients = append(o.reads, rnd.IntN(2) == 0), append(o.clients, client)
		}
		m.owners = append(m.owners, o)
	}
	return m
}

func (m mixture) lock(c *framework.Client, member int, read bool) locks.Lock {
	path := fmt.Sprintf("/s/m%02d", member)
	switch kind := m.kinds[member]; {
	case kind < 2:
		return locks.NewInterProcessMutex(c, path)
	case kind == 2 && read:
		return locks.NewInterProcessReadWriteLock(c, path).ReadLock()
	case kind == 2:
		return locks.NewInterProcessReadWriteLock(c, path).WriteLock()
	case kind == 3:
		return locks.NewInterProcessSemaphoreMutex(c, path)
	}
	return locks.NewInterProcessSemaphore(c, path, 1+member%2)
}

// run has each owner take its locks 15 times. It returns the longest time in which nobody
// got anything.
func (m mixture) run(t *testing.T, seed uint64) (stall time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(500*time.Microsecond))
		var clients []*framework.Client
		for range m.clients {
			clients = append(clients, kit.Connect(t, srv))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var mu sync.Mutex
		last := time.Now()
		inside := func(rnd *rand.Rand) {
			mu.Lock()
			stall = max(stall, time.Since(last))
			mu.Unlock()
			time.Sleep(m.hold/2 + time.Duration(rnd.Int64N(int64(m.hold)+1)))
			mu.Lock()
			last = time.Now()
			mu.Unlock()
		}
		var wg sync.WaitGroup
		faulty := seed%2 == 1
		if faulty {
			wg.Go(func() { fail(srv, rand.New(rand.NewPCG(78, seed))) })
		}
		for i, o := range m.owners {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			wg.Go(func() {
				for range 15 {
					var set []locks.Lock
					for n, member := range o.members {
						set = append(set, m.lock(clients[o.clients[n]], member, o.reads[n]))
					}
					how := workload.How{Chained: true, Inside: func(workload.Held) error { inside(rnd); return nil }}
					_, err := how.Once(ctx, o.way, set...)
					if faulty && ctx.Err() == nil {
						err = nil // it was lost, or cannot say whether it was given back
					}
					if !assert.NoError(t, err, "owner %d", i) {
						return
					}
					time.Sleep(time.Duration(rnd.Int64N(int64(time.Millisecond))))
				}
			})
		}
		wg.Wait()
	})
	assert.Less(t, stall, 10*time.Second, "nobody got anything")
	return stall
}

// fail has requests fail for a second, mostly those with which a MultiLock makes or moves its
// nodes.
func fail(srv *zktest.Server, rnd *rand.Rand) {
	for range 12 {
		time.Sleep(time.Duration(rnd.Int64N(int64(150 * time.Millisecond))))
		op := []string{"multi", "multi", "multiRead", "getData", "create2"}[rnd.IntN(5)]
		fault := []zktest.Fault{zktest.CutBefore(), zktest.CutAfter()}[rnd.IntN(2)]
		switch sessions := srv.Sessions(); rnd.IntN(6) {
		case 0:
			srv.DisconnectAll()
		case 1:
			if len(sessions) > 0 {
				_ = srv.ExpireSession(sessions[rnd.IntN(len(sessions))].ID)
			}
		default:
			_ = srv.On(zktest.Match{Op: op, Nth: 1 + rnd.IntN(5)}, fault).Fired() // it may meet none
		}
	}
}

// Two MultiLocks that have to take several steps take them in one order, whatever kinds of
// members they have, and of whatever clients. At one path of two ensembles that is the order given.
func TestStepsAreInTheOrderOfPaths(t *testing.T) {
	mutex := func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessMutex(c, path) }
	semaphore := func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessSemaphore(c, path, 1) }
	for name, sets := range map[string]func(p, q, elsewhere *framework.Client) [2][]locks.Lock{
		"a semaphore": func(p, q, _ *framework.Client) [2][]locks.Lock {
			return [2][]locks.Lock{{mutex(p, "/b"), mutex(p, "/c"), semaphore(p, "/a")}, {mutex(q, "/b"), semaphore(q, "/a")}}
		},
		"two clients": func(p, q, _ *framework.Client) [2][]locks.Lock {
			return [2][]locks.Lock{{mutex(p, "/a"), mutex(q, "/b"), mutex(p, "/c")}, {mutex(q, "/b"), mutex(p, "/c")}}
		},
		"two ensembles, at one path": func(p, _, elsewhere *framework.Client) [2][]locks.Lock {
			return [2][]locks.Lock{{mutex(p, "/a"), mutex(elsewhere, "/a")}, {mutex(p, "/a"), mutex(elsewhere, "/a"), mutex(p, "/b")}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				p, q, elsewhere := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, zktest.Start(t, zktest.InMemory()))
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var wg sync.WaitGroup
				for _, set := range sets(p, q, elsewhere) {
					for range 10 {
						wg.Go(func() {
							assert.NoError(t, locks.Do(ctx, locks.NewInterProcessMultiLock(set...), func(context.Context) error {
								time.Sleep(time.Millisecond)
								return nil
							}))
						})
					}
				}
				wg.Wait()
			})
		})
	}
}
