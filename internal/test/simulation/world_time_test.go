package simulation

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/check"
	zktest "github.com/paddock-zk/paddock/testing"
)

// setting is what a seed draws before anything happens.
type setting struct {
	members   int
	tick      time.Duration
	timeout   time.Duration
	syncLimit int
	near, far time.Duration // latencies
	clients   int
	actors    int    // of each client
	several   bool   // some take several locks at once, and give way to others
	oneName   bool   // clients know all members by one name
	elects    string // the layout of the election; empty for none
}

// faulty is how long faults begin.
const faulty = 12 * time.Second

func draw(r *rand.Rand) setting {
	s := setting{
		members:   [...]int{1, 3, 3, 3, 3, 3, 5}[r.IntN(7)],
		tick:      [...]time.Duration{250, 500, 500, 1000}[r.IntN(4)] * time.Millisecond,
		syncLimit: 2 + r.IntN(4),
		near:      time.Duration(50+r.IntN(950)) * time.Microsecond,
		clients:   3 + r.IntN(3),
		actors:    1 + r.IntN(3),
		several:   r.IntN(2) == 0,
	}
	s.timeout = max(time.Second, min(s.tick*time.Duration(2+r.IntN(7)), 4*time.Second))
	s.far = s.near * time.Duration(2+r.IntN(6))
	s.oneName = r.IntN(2) == 0
	s.elects = [...]string{"", "", "", "", latch, selector}[r.IntN(6)]
	return s
}

func (s setting) String() string {
	return fmt.Sprintf("%d members, tick %v, sync limit %d, session timeout %v, latency %v to %v, %d clients with %d actors each, several locks at once: %v, one name: %v, election: %s",
		s.members, s.tick, s.syncLimit, s.timeout, s.near, s.far, s.clients, s.actors, s.several, s.oneName, cmp.Or(s.elects, "none"))
}

// world is one run of the simulation. It lives in a bubble of its own.
type world struct {
	setting
	seed    uint64
	planted plantedBug
	begun   time.Time
	cluster *zktest.Cluster
	slots   []*slot
	op      *framework.Client // an operator's
	ctx     context.Context   // of whatever anybody does
	over    chan struct{}     // closed when actors are to stop
	jobs    sync.WaitGroup    // faults under way
	gallery gallery           // of who observes the election

	mu       sync.Mutex // guards the fields below
	trace    []traceLine
	rec      check.Record
	owners   int
	fired    map[string]int
	rounds   map[string]int
	register []registerOp
	calls    []*call
	found    []check.Violation
	overAt   time.Duration
	calmed   chan struct{}
}

// result is what one run came to. It goes from process to process as JSON.
type result struct {
	Seed         uint64
	Setting      string
	Virtual      time.Duration
	Schedule     []fault
	Fired        map[string]int
	Rounds       map[string]int
	Histories    int
	Undecided    int
	Operations   int
	Stale        int
	Recovery     time.Duration
	LongestYield time.Duration
	Leaderless   time.Duration
	Violations   []check.Violation
	Digest       string // of the story
	Trace        []string
}

// lockSet are where everybody meets.
var lockSet = []check.Lock{
	{Path: "/a", Kind: check.Mutex}, {Path: "/b", Kind: check.Mutex}, {Path: "/w", Kind: check.ReadWrite},
	{Path: "/s", Kind: check.Semaphore, Permits: 3}, {Path: "/x", Kind: check.Semaphore, Permits: 1},
}

// election is where candidates stand, if any do.
const election = "/e"

// locks are where everybody meets in this world.
func (s setting) locks() []check.Lock {
	if s.elects == "" {
		return lockSet
	}
	return append(slices.Clone(lockSet), check.Lock{Path: election, Kind: check.Election})
}

var registers = []string{"/data/r0", "/data/r1"}

// run simulates one seed with the faults given, or those that it draws.
func run(t *testing.T, seed uint64, schedule []fault, p plantedBug) *result {
	w := &world{seed: seed, planted: p, fired: make(map[string]int), rounds: make(map[string]int)}
	w.setting = draw(rand.New(rand.NewPCG(seed, 1)))
	if p.stale {
		w.actors = 1 // wrong histories take long to refute
	}
	if schedule == nil {
		schedule = scheduleOf(seed)
	}
	var virtual time.Duration
	synctest.Test(t, func(t *testing.T) {
		w.live(t, schedule)
		virtual = w.now()
	})
	return w.judged(schedule, virtual)
}

func (w *world) now() time.Duration { return time.Since(w.begun) }

// tell adds a line to the story.
func (w *world) tell(who, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tellLocked(who, format, args...)
}

func (w *world) tellLocked(who, format string, args ...any) {
	w.trace = append(w.trace, traceLine{w.now(), who, fmt.Sprintf(format, args...)})
}

// live is the life of a world, from its begin to its end.
func (w *world) live(t *testing.T, schedule []fault) {
	w.begun, w.calmed = time.Now(), make(chan struct{})
	opts := []zktest.Option{
		zktest.InMemory(), zktest.Tick(w.tick), zktest.SyncLimit(w.syncLimit), zktest.Seed(w.seed | 1),
		zktest.LatencyBy(zktest.Uniform(w.near, w.far)), zktest.SweepInterval(0), zktest.ElectionTime(w.tick / 2), zktest.TransactionLog(),
	}
	var err error
	if w.cluster, err = zktest.NewCluster(w.members, opts...); err != nil {
		t.Fatal(err)
	}
	w.ctx, w.over = t.Context(), make(chan struct{})
	w.tell("world", "%v", w.setting)
	w.rec = check.Record{Timeout: w.timeout, Locks: w.locks(), Forced: make(map[int64]time.Duration)}
	w.op = w.client("op", 1, nil)
	w.prepare(t)
	for i := range w.clients {
		w.slots = append(w.slots, w.newSlot(i))
	}
	var actors sync.WaitGroup
	for _, s := range w.slots {
		for n := range w.actors {
			a := newActor(w, s, n)
			actors.Go(a.live)
		}
	}
	w.beginElection(&actors)
	w.trouble(schedule)
	w.heal()
	time.Sleep(w.timeout + check.Grace + check.YieldGrace + time.Second) // so that who is late is seen
	w.end()
	w.join(t, &actors)
	w.clean()
	w.depart(t)
}

// end stops the actors and what they wait for, in the order in which it began:
// a context would end its children in any order.
func (w *world) end() {
	w.tell("world", "the actors are to stop")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.overAt = w.now()
	w.rec.Over = w.overAt
	close(w.over)
	for _, c := range w.calls {
		c.cancel(errOver)
	}
}

// ended is whether the actors are to stop.
func (w *world) ended() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// prepare makes what actors write to.
func (w *world) prepare(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	paths := slices.Clone(registers)
	for _, l := range w.locks() {
		paths = append(paths, "/data"+l.Path, "/plain"+l.Path)
	}
	for _, path := range paths {
		if _, err := w.op.Create(ctx, path, []byte{}, framework.Persistent, framework.Parents()); err != nil {
			t.Fatal(err)
		}
	}
}

// join waits for the actors. One that does not come back has broken its promise.
func (w *world) join(t *testing.T, actors *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { actors.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		w.rec.Left = append(w.rec.Left, "actors that do not come back")
		for _, s := range w.slots {
			_ = s.client().Close()
		}
		<-done
	}
}

// syncsWhenIdle is how many a client may send in each session timeout: six by the
// documentation, and twice as many where timeouts are short.
func (s setting) syncsWhenIdle() int {
	if s.timeout < 2500*time.Millisecond {
		return 15
	}
	return 6
}

// clean looks what is left when everybody has given back.
func (w *world) clean() {
	time.Sleep(2*w.timeout + 10*time.Second) // background work pauses for up to 5 s
	w.closeGallery()
	left := func(what string, all []string) {
		if len(all) > 0 {
			w.rec.Left = append(w.rec.Left, fmt.Sprintf("%d %s: %s", len(all), what, strings.Join(all[:min(5, len(all))], ", ")))
		}
	}
	left("nodes", w.cluster.Ephemerals(0))
	var watches []string
	for _, x := range w.cluster.Watches() {
		watches = append(watches, fmt.Sprintf("%s on %s of %#x", x.Kind, x.Path, x.Session))
	}
	left("watches", watches)
	const idle = 30 * time.Second
	before := w.cluster.Requests()
	time.Sleep(idle)
	// Clients with lock objects go on asking whether the leader hears of them.
	may := map[string]int{"ping": math.MaxInt, "sync": w.syncsWhenIdle() * (len(w.slots) + 1) * int(idle/w.timeout+1)}
	var busy []string
	for op, n := range w.cluster.Requests() {
		if n-before[op] > may[op] {
			busy = append(busy, fmt.Sprintf("%d %s", n-before[op], op))
		}
	}
	slices.Sort(busy)
	left("kinds of request by clients that have nothing to do", busy)
}

// depart closes everything. What still runs then stops the bubble, which fails
// the test.
func (w *world) depart(t *testing.T) {
	for _, s := range w.slots {
		if err := s.client().Close(); err != nil {
			w.rec.Left = append(w.rec.Left, fmt.Sprintf("a session: %s: %v", s.name, err))
		}
	}
	_ = w.op.Close()
	time.Sleep(time.Second)
	if n := len(w.cluster.Sessions()); n > 0 {
		w.rec.Left = append(w.rec.Left, fmt.Sprintf("%d sessions after Close", n))
	}
	if err := w.cluster.Close(); err != nil {
		t.Error(err)
	}
}

// judged is the verdict on a life.
func (w *world) judged(schedule []fault, virtual time.Duration) *result {
	for _, txn := range w.cluster.Transactions() {
		x := check.Txn{Zxid: txn.Zxid, At: txn.At, Session: txn.Session, Closes: txn.Op == "closeSession"}
		for _, c := range txn.Changes {
			x.Changes = append(x.Changes, check.Change{Kind: check.ChangeKind(c.Kind), Path: c.Path, Owner: c.Owner, Data: string(c.Data)})
		}
		w.rec.Log = append(w.rec.Log, x)
	}
	res := &result{
		Seed: w.seed, Setting: fmt.Sprint(w.setting), Virtual: virtual, Schedule: schedule, Fired: w.fired, Rounds: w.rounds,
		Operations: len(w.rec.Log), Stale: check.StaleWrites(&w.rec), Recovery: check.Recovery(&w.rec), LongestYield: check.LongestYield(&w.rec), Leaderless: check.Leaderless(&w.rec), Histories: len(w.locks()),
	}
	res.Violations = w.found
	for _, j := range check.All {
		res.Violations = append(res.Violations, j.Of(&w.rec)...)
	}
	w.judgeRegisters(res)
	res.Trace = w.chronicle()
	res.Digest = digest(res.Trace)
	return res
}
