package simulation

import (
	"context"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/check"
	"github.com/paddock-zk/paddock/recipes/locks"
)

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
