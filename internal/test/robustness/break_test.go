//go:build realzk

package robustness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/check"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
)

var (
	breakFor  = flag.Duration("break", time.Minute, "how long TestBreak breaks things")
	breakSeed = flag.Uint64("break-seed", 0, "chooses what TestBreak breaks; 0 chooses a seed")
	blind     = flag.Bool("break-blind", false, "have TestBreak's users believe in their locks until they give them back, which it is to find")
)

const users = 4 // processes

// breaking is an ensemble with users, and what is done to them.
type breaking struct {
	t        *testing.T
	ensemble *realzk.Ensemble
	dir      string
	control  *framework.Client

	mu      sync.Mutex // guards the fields below
	sum     counts
	started int
	files   []string
}

// Everything goes wrong on a real ensemble while processes use every recipe. What
// they recorded is judged afterwards, by the servers' logs.
func TestBreak(t *testing.T) {
	const most = 5 * time.Minute // for one ensemble: judging takes longer the longer its history is
	seed := *breakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	sum := make(counts)
	for left := *breakFor; left > 0; left -= most {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { breakEnsemble(t, seed, min(left, most), sum) })
		seed++
	}
	t.Logf("all, %v:\n%s", *breakFor, sum)
}

// counts are how often something happened.
type counts map[string]int

func (c counts) String() string {
	var text strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&text, "%8d %s\n", c[what], what)
	}
	return text.String()
}

func breakEnsemble(t *testing.T, seed uint64, span time.Duration, sum counts) {
	b := &breaking{
		t: t, dir: t.TempDir(), sum: sum,
		ensemble: realzk.StartT(t, realzk.Options{Servers: 3, Tick: tick, SyncLimit: 10, Partitions: true}),
	}
	b.control = kit.Connect(t, b.ensemble, func(cfg *framework.Config) { cfg.SessionTimeout = 20 * tick })
	for _, name := range resources {
		for _, path := range []string{"/data/", "/control/"} {
			_, err := b.control.Create(t.Context(), path+name, nil, framework.Persistent, framework.Parents())
			require.NoError(t, err)
		}
	}
	var all [users]*process
	for i := range all {
		all[i] = b.start()
	}
	until := time.Now().Add(span)
	var wg sync.WaitGroup
	wg.Go(func() { b.breakServers(rand.New(rand.NewPCG(seed, 1)), until) })
	wg.Go(func() { b.breakUsers(rand.New(rand.NewPCG(seed, 2)), until, &all) })
	wg.Wait()
	require.NoError(t, b.ensemble.AwaitServing(t.Context()))
	healed := time.Duration(stamp())
	<-time.After(userTimeout + check.Grace) // to see that all goes on
	for _, p := range all {
		p.tell(t, "stop")
	}
	for _, p := range all {
		p.says(t, "done")
	}
	b.judge(healed)
}

// start starts a user.
func (b *breaking) start() *process {
	b.mu.Lock()
	b.started++
	n := b.started
	name := fmt.Sprint("user", n)
	file := filepath.Join(b.dir, name)
	b.files = append(b.files, file)
	b.mu.Unlock()
	u := user{Servers: b.ensemble.ConnectString(), Name: name, History: file, Blind: *blind}
	if n%2 == 0 { // cannot go elsewhere when its member is cut off
		u.Servers = b.ensemble.Addr(n / 2 % b.ensemble.Size())
	}
	arg, err := json.Marshal(u)
	require.NoError(b.t, err)
	p := start(b.t, "use", string(arg))
	p.says(b.t, "ready")
	return p
}

// fault is something that can be done.
type fault[T any] struct {
	name string
	do   func(b *breaking, random *rand.Rand, target T) error
}

// deck deals all faults in a random order, over and over, until time is over and
// all were dealt once.
func deck[T any](b *breaking, random *rand.Rand, until time.Time, faults []fault[T], target func() T) {
	for round := 0; time.Now().Before(until) || round == 0; round++ {
		random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		for _, f := range faults {
			if round > 0 && time.Now().After(until) {
				return
			}
			if err := f.do(b, random, target()); !assert.NoError(b.t, err, f.name) {
				return
			}
			b.mu.Lock()
			b.sum["fault: "+f.name]++
			b.sum["faults in all"]++
			b.mu.Unlock()
			<-time.After(between(random, 300*time.Millisecond, 1500*time.Millisecond))
		}
	}
}

// between is a random time.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

// lasts waits for a part of the session timeout.
func lasts(random *rand.Rand, least, most float64) {
	<-time.After(between(random, time.Duration(least*float64(userTimeout)), time.Duration(most*float64(userTimeout))))
}

// breakServers breaks one member after another, or two.
func (b *breaking) breakServers(random *rand.Rand, until time.Time) {
	e := b.ensemble
	role := func(leader bool) func() int {
		return func() int {
			at, err := e.Leader(b.t.Context())
			if err != nil {
				return random.IntN(e.Size())
			}
			if !leader {
				at = (at + 1 + random.IntN(e.Size()-1)) % e.Size()
			}
			return at
		}
	}
	serving := func() error {
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
		defer cancel()
		return e.AwaitServing(ctx)
	}
	kill := func(b *breaking, random *rand.Rand, i int) error {
		if err := e.Kill(i); err != nil {
			return err
		}
		lasts(random, 0, 1)
		return errors.Join(e.Restart(b.t.Context(), i), serving())
	}
	pause := func(_ *breaking, random *rand.Rand, i int) error {
		if err := e.Pause(i); err != nil {
			return err
		}
		lasts(random, 0.2, 1.6)
		return errors.Join(e.Resume(i), serving())
	}
	cut := func(_ *breaking, random *rand.Rand, i int) error {
		if err := e.Partition(i); err != nil {
			return err
		}
		lasts(random, 0.3, 2)
		return errors.Join(e.Heal(i), serving())
	}
	var faults []fault[struct{}]
	for name, do := range map[string]func(*breaking, *rand.Rand, int) error{"killed": kill, "stopped for a while": pause, "cut off": cut} {
		for who, pick := range map[string]func() int{"leader ": role(true), "follower ": role(false)} {
			faults = append(faults, fault[struct{}]{who + name, func(b *breaking, random *rand.Rand, _ struct{}) error { return do(b, random, pick()) }})
		}
	}
	faults = append(faults,
		fault[struct{}]{"member terminated", func(b *breaking, _ *rand.Rand, _ struct{}) error {
			i := role(random.IntN(2) == 0)()
			return errors.Join(e.Stop(b.t.Context(), i), e.Restart(b.t.Context(), i), serving())
		}},
		fault[struct{}]{"majority killed", func(b *breaking, random *rand.Rand, _ struct{}) error {
			i := random.IntN(e.Size())
			j := (i + 1) % e.Size()
			if err := errors.Join(e.Kill(i), e.Kill(j)); err != nil {
				return err
			}
			lasts(random, 0.5, 1.5)
			return errors.Join(e.Restart(b.t.Context(), i), e.Restart(b.t.Context(), j), serving())
		}},
	)
	slices.SortFunc(faults, func(a, b fault[struct{}]) int { return cmp.Compare(a.name, b.name) })
	deck(b, random, until, faults, func() struct{} { return struct{}{} })
}

// breakUsers stops, cuts off and kills users.
func (b *breaking) breakUsers(random *rand.Rand, until time.Time, all *[users]*process) {
	stop := func(least, most float64) func(*breaking, *rand.Rand, **process) error {
		return func(_ *breaking, random *rand.Rand, p **process) error {
			if err := (*p).Process.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			lasts(random, least, most)
			return (*p).Process.Signal(syscall.SIGCONT)
		}
	}
	faults := []fault[**process]{
		{"user stopped within its session", stop(0.1, 0.6)},
		{"user stopped beyond its session", stop(1.3, 2.5)},
		{"user stopped with a write to come", func(b *breaking, random *rand.Rand, p **process) error {
			(*p).tell(b.t, "stale")
			(*p).says(b.t, "loaded")
			if err := (*p).Process.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			(*p).tell(b.t, "fire")
			if err := b.passedOn(); err != nil {
				return err
			}
			if err := (*p).Process.Signal(syscall.SIGCONT); err != nil {
				return err
			}
			(*p).says(b.t, "fired")
			return nil
		}},
		{"user killed", func(b *breaking, _ *rand.Rand, p **process) error {
			err := (*p).Process.Kill()
			*p = b.start()
			return err
		}},
		{"user ended", func(b *breaking, _ *rand.Rand, p **process) error {
			(*p).tell(b.t, "stop")
			(*p).says(b.t, "done")
			*p = b.start()
			return nil
		}},
		{"user's connection cut", func(b *breaking, _ *rand.Rand, p **process) error {
			(*p).tell(b.t, "cut")
			return nil
		}},
		{"user's connection silent", func(b *breaking, random *rand.Rand, p **process) error {
			d := between(random, userTimeout/5, 3*userTimeout/2)
			(*p).tell(b.t, "freeze "+d.String())
			<-time.After(d)
			return nil
		}},
	}
	deck(b, random, until, faults, func() **process { return &all[random.IntN(users)] })
}

// passedOn waits until two more have written the resource, fenced and not: one
// of them may be the one that was just stopped.
func (b *breaking) passedOn() error {
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	begin := make(map[string]int32)
	for {
		passed := true
		for _, path := range []string{"/data/stale", "/control/stale"} {
			_, seen := begin[path]
			if !seen { // not to count those of before, on a member that lags
				if err := b.control.Sync(ctx, path); err != nil {
					passed = false
					continue
				}
			}
			_, stat, err := b.control.Get(ctx, path)
			if err != nil {
				passed = false
				continue
			}
			if !seen {
				begin[path] = stat.Version
			}
			passed = passed && stat.Version >= begin[path]+2
		}
		if passed {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// queueing is how long those ahead may take when all have been served again.
const queueing = 10 * time.Second

// judge says what came of it.
func (b *breaking) judge(healed time.Duration) {
	t := b.t
	rec := &check.Record{Timeout: userTimeout, Locks: lockSet, Healed: healed}
	for _, file := range b.files {
		read(t, file, rec, b.sum)
	}
	rec.Left = b.left()
	rec.Log = readLogs(t, b.ensemble)
	patient := *rec
	patient.Timeout += queueing
	for _, j := range check.All {
		by := rec
		if j.Name == "progress" {
			by = &patient
		}
		for _, v := range j.Of(by) {
			t.Error(v)
			b.sum["violations: "+j.Name]++
		}
	}
	lost := check.StaleWrites(rec)
	assert.Positive(t, lost, "the control: without the fence stale writes are accepted")
	b.sum["stale unfenced writes that were accepted"] += lost
	b.sum["processes"] += b.started
	b.sum["holds"] += len(rec.Holds)
	b.sum["hand-overs"] += handOvers(rec.Holds)
	b.sum["transactions in the servers' logs"] += len(rec.Log)
	t.Logf("who waited when the last fault was over was served within %v", ms(check.Recovery(rec)))
}

// handOvers counts the grants after which another owner had the lock.
func handOvers(holds []check.Hold) (n int) {
	last := make(map[string]int)
	slices.SortFunc(holds, func(a, b check.Hold) int { return cmp.Compare(a.Granted, b.Granted) })
	for _, h := range holds {
		if before, ok := last[h.Lock]; ok && before != h.Owner {
			n++
		}
		last[h.Lock] = h.Owner
	}
	return n
}

// left waits until the sessions of killed users are over and returns what is left
// of anybody.
func (b *breaking) left() (all []string) {
	require.NoError(b.t, b.control.Close())
	for range 40 {
		all = nil
		left, err := b.ensemble.Ephemerals(b.t.Context())
		require.NoError(b.t, err)
		for id, nodes := range left {
			all = append(all, fmt.Sprintf("session %#x: %v", id, nodes))
		}
		watches, err := b.ensemble.WatchCount(b.t.Context())
		require.NoError(b.t, err)
		if watches > 0 {
			all = append(all, fmt.Sprint(watches, " watches"))
		}
		if len(all) == 0 {
			break
		}
		<-time.After(userTimeout / 10)
	}
	return all
}
