package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/check"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
)

var (
	errCancelled = errors.New("cancelled by the simulation")
	errOver      = errors.New("the simulation is over")
)

// words are what errors are called; the first that matches counts.
var words = []struct {
	word  string
	error error
}{
	{"fenced", locks.ErrFenced}, {"lock lost", locks.ErrLockLost}, {"outcome unknown", framework.ErrOutcomeUnknown},
	{"not acquired", locks.ErrNotAcquired}, {"not connected", framework.ErrNotConnected}, {"closed", framework.ErrClosed},
	{"deadlock", locks.ErrDeadlock}, {"cancelled", errCancelled}, {"over", errOver}, {"over", context.Canceled},
	{"released", locks.ErrReleased}, {"stepped down", leader.ErrSteppedDown},
}

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
	{"mutex", 6, func(a *actor, c *framework.Client) { a.plain(locks.NewInterProcessMutex(c, a.oneOf("/a", "/b"))) }, false},
	{"re-entry", 2, func(a *actor, c *framework.Client) { a.reenter(locks.NewInterProcessMutex(c, a.oneOf("/a", "/b"))) }, false},
	{"mutex with options", 2, func(a *actor, c *framework.Client) {
		a.plain(locks.NewInterProcessMutex(c, a.oneOf("/a", "/b"), a.options()...))
	}, false},
	{"read", 4, func(a *actor, c *framework.Client) {
		a.plain(locks.NewInterProcessReadWriteLock(c, "/w", a.options()...).ReadLock())
	}, false},
	{"write", 2, func(a *actor, c *framework.Client) {
		a.plain(locks.NewInterProcessReadWriteLock(c, "/w", a.options()...).WriteLock())
	}, false},
	{"downgrade", 2, (*actor).downgrade, false},
	{"semaphore", 3, func(a *actor, c *framework.Client) { a.plain(locks.NewInterProcessSemaphore(c, "/s", a.permits())) }, false},
	{"several leases", 2, func(a *actor, c *framework.Client) {
		a.plain(several{locks.NewInterProcessSemaphore(c, "/s", 3), 1 + a.r.IntN(3)})
	}, false},
	{"semaphore mutex", 3, func(a *actor, c *framework.Client) {
		a.plain(locks.NewInterProcessSemaphoreMutex(c, "/x", a.options()...))
	}, false},
	{"multi-lock", 3, func(a *actor, c *framework.Client) { a.plain(a.multi(c)) }, true},
	{"multi-lock, ordered", 1, func(a *actor, c *framework.Client) { a.plain(a.multi(c).Ordered()) }, true},
	{"nested", 1, (*actor).nested, true},
	{"burst", 2, (*actor).burst, false},
	{"register", 8, (*actor).useRegister, false},
	{"term", 3, (*actor).term, false},
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
		locks.LookAhead(), locks.EndOnSuspended(), locks.FailOnSessionLoss(), locks.Revocable(), locks.ReleaseWait(0),
	} {
		if a.r.IntN(4) == 0 {
			some = append(some, o)
		}
	}
	return some
}

// permits is how many leases the semaphore has, as far as this actor knows.
func (a *actor) permits() int { return max(3, a.w.plant.permits) }

func (a *actor) oneOf(paths ...string) string { return paths[a.r.IntN(len(paths))] }

// multi is two to four locks at once.
func (a *actor) multi(c *framework.Client) *locks.InterProcessMultiLock {
	all := []locks.Lock{
		locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b"),
		locks.NewInterProcessReadWriteLock(c, "/w").WriteLock(), locks.NewInterProcessSemaphoreMutex(c, "/x"),
	}
	a.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return locks.NewInterProcessMultiLock(all[:2+a.r.IntN(3)]...)
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
		all.Go(func() { one.plain(lock) })
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
				if lock := a.w.plant.lock; lock != nil && a.r.IntN(3) == 0 {
					a.plain(lock(a.c))
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

// shared are the locks that some take together with others: who waits for them may
// wait for somebody who yields.
var shared = map[string]bool{
	lockName(new(locks.InterProcessMutex)):          true, // the sides of read/write locks as well
	lockName(new(locks.InterProcessSemaphoreMutex)): true,
	lockName(new(locks.InterProcessMultiLock)):      true,
}

// call is one call of an actor that waits.
type call struct {
	wait      check.Wait
	cancel    context.CancelCauseFunc
	cancelled bool
}

// wait makes a call whose context can end at any time.
func (a *actor) wait(ctx context.Context, lock string, do func(ctx context.Context) error) error {
	wait, err := a.cancellable(ctx, lock, do)
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.rec.Waits = append(a.w.rec.Waits, wait)
	return err
}

// cancellable is wait, for a call that does more than wait.
func (a *actor) cancellable(ctx context.Context, lock string, do func(ctx context.Context) error) (check.Wait, error) {
	w := a.w
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &call{wait: check.Wait{Who: a.name, Lock: lock, Began: w.now(), Limit: check.Never, Yields: w.several && shared[lock]}, cancel: cancel}
	w.mu.Lock()
	w.calls = append(w.calls, c)
	over := w.ended()
	w.mu.Unlock()
	if over {
		cancel(errOver)
	}
	err := do(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = slices.DeleteFunc(w.calls, func(o *call) bool { return o == c })
	c.wait.Returned, c.wait.OK = w.now(), err == nil
	if w.ended() {
		c.wait.Limit = min(c.wait.Limit, w.overAt)
	}
	return c.wait, err
}

// heldLock is a hold as its owner sees it.
type heldLock struct {
	a     *actor
	h     *locks.Hold
	lock  locks.Lock
	first int // in the record
	n     int
	nodes []string
	bound context.Context // ends with the hold; the one given to Acquire ends with the call
	stop  func()
}

// acquire takes a lock. It returns nil if it could not be had.
func (a *actor) acquire(ctx context.Context, lock locks.Lock, owner int) *heldLock {
	w := a.w
	name := lockName(lock)
	asked := w.now()
	var h *locks.Hold
	try := time.Duration(-1)
	if a.r.IntN(4) == 0 {
		try = time.Duration(a.r.Int64N(int64(w.timeout))) * time.Duration(a.r.IntN(2))
	}
	w.tell(a.name, "wants %s (%v)", name, try)
	err := a.wait(ctx, name, func(ctx context.Context) (err error) {
		if try < 0 {
			h, err = lock.Acquire(ctx)
		} else {
			h, err = lock.TryAcquire(ctx, try)
		}
		return err
	})
	if (h == nil) == (err == nil) {
		w.fail("result", "%s got %v and %v", a.name, h, err)
	}
	if err != nil {
		w.tell(a.name, "does not get %s: %s", name, classify(err))
		return nil
	}
	t := &heldLock{a: a, h: h, lock: lock}
	session := a.c.SessionID()
	if h.Err() != nil {
		session = 0 // it may be of another one already
	}
	w.mu.Lock()
	if owner == 0 {
		w.owners++
		owner = w.owners
	}
	t.first = len(w.rec.Holds)
	for _, leaf := range leaves(h) {
		hold := check.Hold{
			Who: a.name, Owner: owner, Node: leaf.Path(), Token: leaf.FencingToken(), Asked: asked, Granted: w.now(), Ended: check.Never,
			ContextsEnded: check.Never,
		}
		if own, ok := lock.(*naive); ok {
			hold.Node = own.path
		}
		if w.plant.token {
			n, _ := framework.Sequence(hold.Node)
			hold.Token = int64(n)
		}
		place(&hold)
		hold.Session = session
		w.watchContexts(h, leaf, len(w.rec.Holds))
		w.rec.Holds = append(w.rec.Holds, hold)
		t.nodes = append(t.nodes, hold.Node)
		t.n++
	}
	w.tellLocked(a.name, "has %v", t.nodes)
	w.mu.Unlock()
	bound, cancel := h.Bind(context.Background())
	t.bound = bound
	unhook := context.AfterFunc(bound, func() {
		if t.ends() {
			w.tell(a.name, "loses %v: %s", t.nodes, classify(context.Cause(bound)))
		}
	})
	ignore := func() {}
	if a.r.IntN(4) == 0 { // users' code may take its time
		slow := time.Duration(a.r.Int64N(int64(2 * w.timeout)))
		ignore = h.Listen(func(locks.HoldState) { time.Sleep(slow) })
	}
	t.stop = func() { ignore(); unhook(); cancel() }
	return t
}

// watchContexts notes when all contexts of a hold have ended, for a node of it. They
// are bound ones, since the context given to Acquire ends with the call.
func (w *world) watchContexts(h, leaf *locks.Hold, number int) {
	ofAll, cancelAll := h.Bind(context.Background())
	ofLeaf, cancelLeaf := leaf.Bind(context.Background())
	all := []context.Context{ofAll, ofLeaf}
	left := len(all)
	for _, ctx := range all {
		context.AfterFunc(ctx, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if left--; left > 0 {
				return
			}
			cancelAll()
			cancelLeaf()
			if h := &w.rec.Holds[number]; h.ContextsEnded != 0 {
				h.ContextsEnded = w.now()
			}
		})
	}
}

// keepsContexts says that they go on after the hold is released, since another one
// is held under it.
func (t *heldLock) keepsContexts() {
	t.a.w.mu.Lock()
	defer t.a.w.mu.Unlock()
	for i := range t.n {
		t.a.w.rec.Holds[t.first+i].ContextsEnded = 0
	}
}

// owner is the record's.
func (t *heldLock) owner() int {
	t.a.w.mu.Lock()
	defer t.a.w.mu.Unlock()
	return t.a.w.rec.Holds[t.first].Owner
}

// ends notes that its owner does not believe in it any more.
func (t *heldLock) ends() (news bool) { return t.endsAt(t.a.w.now()) }

func (t *heldLock) endsAt(at time.Duration) (news bool) {
	w := t.a.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range t.n {
		h := &w.rec.Holds[t.first+i]
		news = news || h.Ended == check.Never
		h.Ended = min(h.Ended, at)
	}
	return news
}

// release gives it back.
func (t *heldLock) release() {
	t.ends()
	t.stop()
	err := t.h.Release()
	t.a.w.tell(t.a.name, "gives back %v: %v", t.nodes, err)
}

// leaves are the holds that stand on one node each.
func leaves(h *locks.Hold) (all []*locks.Hold) {
	if len(h.Members()) == 0 {
		return []*locks.Hold{h}
	}
	for _, m := range h.Members() {
		all = append(all, leaves(m)...)
	}
	return all
}

// plain takes a lock, works and gives it back.
func (a *actor) plain(lock locks.Lock) {
	t := a.acquire(a.w.ctx, lock, 0)
	if t == nil {
		return
	}
	a.work(t)
	a.finish(t)
}

// finish gives a hold back, sometimes together with a write.
func (a *actor) finish(t *heldLock) {
	if a.r.IntN(5) == 0 {
		a.write(t, true)
	}
	t.release()
}

// work is what is done under a lock.
func (a *actor) work(t *heldLock) {
	for range 1 + a.r.IntN(3) {
		switch a.r.IntN(4) {
		case 0, 1:
			a.write(t, false)
		case 2:
			a.writePlainly(t)
		}
		// Mostly short, now and then longer than a session lasts.
		d := time.Duration(a.r.ExpFloat64() * float64(10*time.Millisecond))
		if a.r.IntN(12) == 0 {
			d = a.w.span(a.r, 1.5)
		}
		select {
		case <-a.w.calmed:
			d = time.Duration(a.r.Int64N(int64(3 * time.Millisecond)))
		default:
		}
		done := t.bound.Done()
		if a.r.IntN(3) == 0 {
			done = nil // who does not look
		}
		a.restUnder(done, d)
	}
}

// restUnder waits like rest, and not for long once all is calm.
func (a *actor) restUnder(done <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d + 1)
	defer timer.Stop()
	calmed := a.w.calmed
	select {
	case <-calmed:
		calmed = nil
	default:
	}
	select {
	case <-timer.C:
	case <-done:
	case <-calmed:
	}
}

// write writes under the fence of a hold, and gives it back with it if last.
func (a *actor) write(t *heldLock, last bool) {
	a.n++
	id := fmt.Sprintf("%s-%d", a.name, a.n)
	path := "/data" + lockOf(t.nodes[0])
	tx := t.h.Transaction()
	version := framework.AnyVersion
	var opts []framework.CommitOption
	if a.r.IntN(3) == 0 {
		if stat, ok := a.look(a.c, &registerOp{path: path}); ok {
			version, opts = stat.Version, append(opts, framework.Idempotent())
		}
	}
	tx.Set(path, []byte(id), version)
	w, began := a.w, a.w.now()
	err := a.wait(w.ctx, t.nodes[0], func(ctx context.Context) (err error) {
		switch {
		case w.plant.unfence:
			_, err = a.c.Set(ctx, path, []byte(id), framework.AnyVersion)
		case last:
			_, err = tx.CommitAndRelease(ctx, opts...)
		default:
			_, err = tx.Commit(ctx, opts...)
		}
		return err
	})
	if last && !w.plant.unfence && (err == nil || framework.Ambiguous(err)) {
		t.endsAt(began)
	}
	a.wrote(t, id, path, true, err)
}

// writePlainly writes without a fence, as a control.
func (a *actor) writePlainly(t *heldLock) {
	a.n++
	id := fmt.Sprintf("%s-%d", a.name, a.n)
	path := "/plain" + lockOf(t.nodes[0])
	err := a.wait(a.w.ctx, t.nodes[0], func(ctx context.Context) error {
		_, err := a.c.Set(ctx, path, []byte(id), framework.AnyVersion)
		return err
	})
	a.wrote(t, id, path, false, err)
}

func (a *actor) wrote(t *heldLock, id, path string, fenced bool, err error) {
	outcome := check.Done
	switch {
	case err == nil:
	case framework.Ambiguous(err):
		outcome = check.Unknown
	default:
		outcome = check.NotDone
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.rec.Writes = append(a.w.rec.Writes, check.Write{Who: a.name, ID: id, Path: path, Nodes: t.nodes, Fenced: fenced, Outcome: outcome})
	result := "done"
	if err != nil {
		result = classify(err)
	}
	a.w.tellLocked(a.name, "writes %s to %s: %s", id, path, result)
}

// reenter takes a mutex again under itself.
func (a *actor) reenter(lock *locks.InterProcessMutex) {
	t := a.acquire(a.w.ctx, lock, 0)
	if t == nil {
		return
	}
	inner, err := lock.Acquire(t.bound)
	if err == nil {
		a.work(t)
		if !lock.HeldBy(inner.Context()) && t.h.Err() == nil {
			a.w.fail("re-entry", "%s does not own %v, and does", a.name, t.nodes)
		}
	} else if t.h.Err() == nil && t.bound.Err() == nil {
		a.w.fail("re-entry", "%s could not take %v again: %v", a.name, t.nodes, err)
	}
	if inner != nil && a.r.IntN(2) == 0 {
		// The outer first: the node goes with the last.
		t2 := *t
		t.stop()
		_ = t.h.Release()
		t2.h, t2.stop = inner, func() {}
		t2.release()
		return
	}
	if inner != nil {
		_ = inner.Release()
	}
	a.finish(t)
}

// downgrade takes the write side, then the read side, and gives the former back.
func (a *actor) downgrade(c *framework.Client) {
	l := locks.NewInterProcessReadWriteLock(c, "/w")
	write := a.acquire(a.w.ctx, l.WriteLock(), 0)
	if write == nil {
		return
	}
	a.work(write)
	read := a.acquire(write.bound, l.ReadLock(), write.owner())
	if read != nil {
		write.keepsContexts()
	}
	write.release()
	if read != nil {
		a.work(read)
		read.release()
	}
}

// nested takes a mutex, and another one under it, each in its own right.
func (a *actor) nested(c *framework.Client) {
	outer := a.acquire(a.w.ctx, locks.NewInterProcessMutex(c, "/a"), 0)
	if outer == nil {
		return
	}
	if inner := a.acquire(outer.bound, locks.NewInterProcessMutex(c, "/b"), 0); inner != nil {
		a.work(inner)
		inner.release()
	}
	outer.release()
}
