package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/workload"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// actor is a goroutine of a client that takes locks over and over.
type actor struct {
	w      *world
	s      *slot
	name   string
	r      *rand.Rand
	n      int // of its writes
	bursts int
	c      *framework.Client // of this round
	number int
}

func newActor(w *world, s *slot, n int) *actor {
	return &actor{w: w, s: s, name: fmt.Sprintf("%s/%d", s.name, n), number: 10*s.index + n, r: rand.New(rand.NewPCG(w.seed, uint64(1000+100*s.index+n)))}
}

// round is a way to use locks.
type round struct {
	name    string
	weight  int
	do      func(a *actor, c *framework.Client)
	several bool // locks at once
}

var rounds = []round{
	{"mutex", 6, func(a *actor, c *framework.Client) {
		a.use(workload.Nested, locks.NewInterProcessMutex(c, a.oneOf("/a", "/b")))
	}, false},
	{"re-entry", 2, func(a *actor, c *framework.Client) {
		a.use(workload.Reentry, locks.NewInterProcessMutex(c, a.oneOf("/a", "/b")))
	}, false},
	{"mutex with options", 2, func(a *actor, c *framework.Client) {
		a.use(workload.Nested, locks.NewInterProcessMutex(c, a.oneOf("/a", "/b"), a.options()...))
	}, false},
	{"read", 4, func(a *actor, c *framework.Client) {
		a.use(workload.Nested, locks.NewInterProcessReadWriteLock(c, "/w", a.options()...).ReadLock())
	}, false},
	{"write", 2, func(a *actor, c *framework.Client) {
		a.use(workload.Nested, locks.NewInterProcessReadWriteLock(c, "/w", a.options()...).WriteLock())
	}, false},
	{"downgrade", 2, func(a *actor, c *framework.Client) {
		l := locks.NewInterProcessReadWriteLock(c, "/w")
		a.use(workload.Downgrade, l.WriteLock(), l.ReadLock())
	}, false},
	{"semaphore", 3, func(a *actor, c *framework.Client) {
		a.use(workload.Nested, locks.NewInterProcessSemaphore(c, "/s", a.permits()))
	}, false},
	{"several leases", 2, func(a *actor, c *framework.Client) {
		a.use(workload.Nested, several{locks.NewInterProcessSemaphore(c, "/s", 3), 1 + a.r.IntN(3)})
	}, false},
	{"semaphore mutex", 3, func(a *actor, c *framework.Client) {
		a.use(workload.Nested, locks.NewInterProcessSemaphoreMutex(c, "/x", a.options()...))
	}, false},
	{"multi-lock", 3, func(a *actor, c *framework.Client) { a.use(workload.Multi, a.some(c)...) }, true},
	{"multi-lock, ordered", 1, func(a *actor, c *framework.Client) { a.use(workload.Ordered, a.some(c)...) }, true},
	{"nested", 1, func(a *actor, c *framework.Client) {
		a.use(workload.Nested, locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b"))
	}, true},
	{"burst", 2, (*actor).burst, false},
	{"register", 8, (*actor).useRegister, false},
	{"term", 3, (*actor).term, false},
}

// use takes locks in a way, works under them and gives them back. What goes wrong on the
// way is in the story.
func (a *actor) use(way workload.Way, all ...locks.Lock) {
	_, _ = workload.How{
		Take:       func(ctx context.Context, s workload.Step) (workload.Held, error) { return a.take(ctx, way, s) },
		Inside:     func(last workload.Held) error { last.(interface{ work() }).work(); return nil },
		Wait:       a.howLong,
		Chained:    true,
		OuterFirst: func() bool { return a.r.IntN(2) == 0 },
	}.Once(a.w.ctx, way, all...)
}

// several takes some leases as one.
type several struct {
	s *locks.InterProcessSemaphore
	n int
}

func (l several) Acquire(ctx context.Context) (*locks.Hold, error) { return l.s.AcquireN(ctx, l.n) }

func (l several) TryAcquire(ctx context.Context, wait time.Duration) (*locks.Hold, error) {
	return l.s.TryAcquireN(ctx, l.n, wait)
}

// options draws how a lock is to be taken.
func (a *actor) options() (some []locks.Option) {
	for _, o := range []locks.Option{
		locks.EndOnSuspended(), locks.FailOnSessionLoss(), locks.Revocable(), locks.ReleaseWait(0),
	} {
		if a.r.IntN(4) == 0 {
			some = append(some, o)
		}
	}
	return some
}

// permits is how many leases the semaphore has, as far as this actor knows.
func (a *actor) permits() int { return max(3, a.w.planted.permits) }

func (a *actor) oneOf(paths ...string) string { return paths[a.r.IntN(len(paths))] }

// some are two to four locks.
func (a *actor) some(c *framework.Client) []locks.Lock {
	all := []locks.Lock{
		locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b"),
		locks.NewInterProcessReadWriteLock(c, "/w").WriteLock(), locks.NewInterProcessSemaphoreMutex(c, "/x"),
	}
	a.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:2+a.r.IntN(3)]
}

// burst takes different locks at the same moment, each in a goroutine of its own, so that
// their requests leave together.
func (a *actor) burst(c *framework.Client) {
	a.bursts++
	var all sync.WaitGroup
	for i, lock := range []locks.Lock{
		locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b"),
		locks.NewInterProcessReadWriteLock(c, "/w").WriteLock(), locks.NewInterProcessSemaphoreMutex(c, "/x"),
		locks.NewInterProcessSemaphore(c, "/s", a.permits()),
	} {
		one := &actor{w: a.w, s: a.s, c: c, name: fmt.Sprintf("%s.%d.%d", a.name, a.bursts, i), number: a.number, r: rand.New(rand.NewPCG(a.r.Uint64(), uint64(i)))}
		all.Go(func() { one.use(workload.Nested, lock) })
	}
	all.Wait()
}

// live is the life of an actor.
func (a *actor) live() {
	total := 0
	for _, r := range rounds {
		total += r.weight
	}
	for !a.w.ended() {
		a.rest(a.w.over, time.Duration(a.r.Int64N(int64(60*time.Millisecond))))
		n := a.r.IntN(total)
		for _, r := range rounds {
			if n -= r.weight; n < 0 {
				a.c = a.s.client()
				if lock := a.w.planted.lock; lock != nil && a.r.IntN(3) == 0 {
					a.use(workload.Nested, lock(a.c))
				} else if !r.several || a.w.several {
					r.do(a, a.c)
				}
				w := a.w
				w.mu.Lock()
				w.rounds[r.name]++
				w.mu.Unlock()
				break
			}
		}
	}
}

// rest waits for d, or until done.
func (a *actor) rest(done <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d + 1)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}
