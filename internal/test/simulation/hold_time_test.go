package simulation

import (
	"context"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/check"
	"github.com/paddock-zk/paddock/internal/test/workload"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// heldLock is a hold as its owner sees it.
type heldLock struct {
	a      *actor
	h      *locks.Hold
	lock   locks.Lock
	first  int // in the record
	n      int
	nodes  []string
	bound  context.Context // ends with the hold; the one given to Acquire ends with the call
	stop   func()
	nested bool        // another lock was taken under it, or it under another one
	again  *locks.Hold // of a mutex that was taken again, until one of the two holds is given back
}

// take does a step of an actor.
func (a *actor) take(ctx context.Context, way workload.Way, s workload.Step) (workload.Held, error) {
	under, _ := s.Under.(*heldLock)
	if under == nil {
		return a.acquire(ctx, s, 0)
	}
	if way == workload.Reentry {
		return under.reenter(ctx, s)
	}
	under.nested = true
	owner := 0
	if way == workload.Downgrade {
		owner = under.owner()
	}
	t, err := a.acquire(ctx, s, owner)
	if err != nil {
		return nil, err
	}
	t.nested = true
	return t, nil
}

// howLong draws for how long a step waits.
func (a *actor) howLong(int) time.Duration {
	if a.r.IntN(4) != 0 {
		return -1
	}
	return time.Duration(a.r.Int64N(int64(a.w.timeout))) * time.Duration(a.r.IntN(2))
}

// acquire takes a lock and writes down the hold, as one of the owner or of a new one.
func (a *actor) acquire(ctx context.Context, s workload.Step, owner int) (*heldLock, error) {
	w := a.w
	name := lockName(s.Lock)
	asked := w.now()
	var h *locks.Hold
	w.tell(a.name, "wants %s (%v)", name, s.Wait)
	err := a.wait(ctx, name, func(ctx context.Context) (err error) {
		h, err = s.Take(ctx)
		return err
	})
	if (h == nil) == (err == nil) {
		w.fail("result", "%s got %v and %v", a.name, h, err)
	}
	if err != nil {
		w.tell(a.name, "does not get %s: %s", name, classify(err))
		return nil, err
	}
	t := &heldLock{a: a, h: h, lock: s.Lock}
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
		if own, ok := s.Lock.(*naive); ok {
			hold.Node = own.path
		}
		if w.planted.token {
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
	return t, nil
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
			w.rec.Holds[number].ContextsEnded = w.now()
		})
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

// Context is for what is taken under it.
func (t *heldLock) Context() context.Context { return t.bound }

// Release gives it back. A hold that is not nested is sometimes given back together with
// a write.
func (t *heldLock) Release() error {
	if t.again != nil { // the node goes with the last
		t.stop()
		err := t.h.Release()
		t.h, t.again, t.stop = t.again, nil, func() {}
		return err
	}
	if !t.nested && t.a.r.IntN(5) == 0 {
		t.a.write(t, true)
	}
	return t.giveBack()
}

func (t *heldLock) giveBack() error {
	t.ends()
	t.stop()
	err := t.h.Release()
	t.a.w.tell(t.a.name, "gives back %v: %v", t.nodes, err)
	return err
}

// reentry is the inner hold of a mutex that was taken again.
type reentry struct{ *heldLock }

// reenter takes a mutex again under itself.
func (t *heldLock) reenter(ctx context.Context, s workload.Step) (workload.Held, error) {
	inner, err := s.Take(ctx)
	if err != nil {
		if t.h.Err() == nil && t.bound.Err() == nil {
			t.a.w.fail("re-entry", "%s could not take %v again: %v", t.a.name, t.nodes, err)
		}
		return nil, err
	}
	t.again = inner
	return reentry{t}, nil
}

// work works, and looks whether the mutex is held.
func (r reentry) work() {
	r.heldLock.work()
	if !r.lock.(*locks.InterProcessMutex).HeldBy(r.again.Context()) && r.h.Err() == nil {
		r.a.w.fail("re-entry", "%s does not own %v, and does", r.a.name, r.nodes)
	}
}

// Release gives the inner hold back.
func (r reentry) Release() error {
	if r.again == nil { // the outer hold was given back before
		return r.giveBack()
	}
	inner := r.again
	r.again = nil
	return inner.Release()
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
