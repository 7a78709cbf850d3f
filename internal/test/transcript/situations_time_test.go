package transcript

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// situation is one golden file.
type situation struct {
	name string
	play func(w *world)
}

// kind is a lock that one has at a time.
type kind struct {
	name      string
	parents   []string
	create    string // the operation that makes its nodes
	remove    string // and the one that removes them
	reentrant bool
	lock      func(c *client) locks.Lock
}

var (
	mutex = kind{"mutex", []string{"/l"}, "create2", "delete", true, func(c *client) locks.Lock {
		return locks.NewInterProcessMutex(c.Client, "/l")
	}}
	semaphoreMutex = kind{"semaphore-mutex", []string{"/l/locks", "/l/leases"}, "multi", "delete", false, func(c *client) locks.Lock {
		return locks.NewInterProcessSemaphoreMutex(c.Client, "/l")
	}}
	multiLock = kind{"multilock", []string{"/a", "/b", "/c"}, "multi", "multi", true, func(c *client) locks.Lock {
		return locks.NewInterProcessMultiLock(at(c, "/a"), at(c, "/b"), at(c, "/c"))
	}}
	orderedMultiLock = kind{"multilock-ordered", multiLock.parents, "create2", "delete", true, func(c *client) locks.Lock {
		return locks.NewInterProcessMultiLock(at(c, "/a"), at(c, "/b"), at(c, "/c")).Ordered()
	}}
	mixedMultiLock = kind{"multilock-mixed", []string{"/a", "/s/locks", "/s/leases"}, "multi", "multi", false, func(c *client) locks.Lock {
		return locks.NewInterProcessMultiLock(at(c, "/a"), locks.NewInterProcessSemaphoreMutex(c.Client, "/s"))
	}}
)

func at(c *client, path string) locks.Lock { return locks.NewInterProcessMutex(c.Client, path) }

// situations are all of them, each for the kinds of lock that differ in it.
func situations() (all []situation) {
	add := func(name string, play func(w *world)) { all = append(all, situation{name, play}) }
	each := func(name string, play func(w *world, k kind), kinds ...kind) {
		for _, k := range kinds {
			add(name+"-"+k.name, func(w *world) { play(w, k) })
		}
	}
	each("free", free, mutex, semaphoreMutex, multiLock, mixedMultiLock)
	each("second", second, mutex, semaphoreMutex)
	each("behind-five", behindFive, mutex, semaphoreMutex)
	add("readers-and-writers", readersAndWriters)
	add("downgrade", downgrade)
	add("semaphore-free", semaphoreFree)
	add("semaphore-busy", semaphoreBusy)
	add("semaphore-several", severalLeases)
	add("semaphore-yields", yieldsTurn)
	each("contended", contended, multiLock, orderedMultiLock, mixedMultiLock)
	add("multilock-yields", yields)
	each("release", release, mutex, semaphoreMutex, multiLock)
	each("commit-and-release", commitAndRelease, mutex, semaphoreMutex, multiLock)
	each("try", try, mutex, semaphoreMutex, multiLock)
	each("lost-reply", lostReply, mutex, semaphoreMutex, multiLock)
	add("held-for-long", heldForLong)
	add("revoke", revoke)
	return all
}

func free(w *world, k kind) {
	a := w.connect("a")
	lock := k.lock(a)
	var h *locks.Hold
	w.step("a acquires, and parents are missing", func() { h = w.acquire(lock) })
	w.step("a releases", func() { w.release(h) })
	w.step("a acquires", func() { h = w.acquire(lock) })
	if k.reentrant {
		w.step("a acquires again under its hold, and releases that", func() { w.release(w.acquireUnder(h, lock)) })
	}
	w.step("a releases", func() { w.release(h) })
}

func second(w *world, k kind) {
	a, b := w.connect("a"), w.connect("b")
	w.ensure(a, k.parents...)
	held := w.holding(k.lock(a))
	var got <-chan grant
	w.step("b queues behind a", func() { got = w.acquiring(k.lock(b)) })
	w.step("a releases, b is granted", func() { w.release(held); held = w.granted(got) })
	w.step("b releases", func() { w.release(held) })
}

func behindFive(w *world, k kind) {
	var all []*client
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		all = append(all, w.connect(name))
	}
	w.ensure(all[0], k.parents...)
	held := w.holding(k.lock(all[0]))
	waiters := make([]<-chan grant, len(all))
	tired := make([]context.CancelFunc, len(all))
	queue := func(i int) {
		var ctx context.Context
		ctx, tired[i] = context.WithCancel(w.ctx)
		waiters[i] = w.acquiringWith(ctx, k.lock(all[i]))
	}
	defer func() {
		for _, cancel := range tired[1:] {
			cancel()
		}
	}()
	givesUp := func(i int) {
		tired[i]()
		require.ErrorIs(w, (<-waiters[i]).err, context.Canceled)
	}
	for i := range all[1:5] {
		queue(1 + i)
		w.settle()
	}
	w.step("f queues behind five", func() { queue(5) })
	w.step("d, in the middle, gives up", func() { givesUp(3) })
	w.step("e, who is just ahead of f, gives up", func() { givesUp(4) })
	w.step("a releases, b is granted", func() { w.release(held); held = w.granted(waiters[1]) })
	w.step("b releases, c is granted", func() { w.release(held); held = w.granted(waiters[2]) })
	w.step("c releases, f is granted", func() { w.release(held); held = w.granted(waiters[5]) })
	w.step("f releases", func() { w.release(held) })
}

func readWrite(c *client) *locks.InterProcessReadWriteLock {
	return locks.NewInterProcessReadWriteLock(c.Client, "/l")
}

func readersAndWriters(w *world) {
	a, b, c, d := w.connect("a"), w.connect("b"), w.connect("c"), w.connect("d")
	w.ensure(a, "/l")
	var ha, hb, hc, hd *locks.Hold
	var got, gotB <-chan grant
	w.step("a acquires the write side", func() { ha = w.acquire(readWrite(a).WriteLock()) })
	w.step("b queues for the read side behind the writer", func() { got = w.acquiring(readWrite(b).ReadLock()) })
	w.step("a releases, b is granted", func() { w.release(ha); hb = w.granted(got) })
	w.step("c acquires the read side beside a reader", func() { hc = w.acquire(readWrite(c).ReadLock()) })
	w.step("d queues for the write side behind two readers", func() { got = w.acquiring(readWrite(d).WriteLock()) })
	w.step("b releases", func() { w.release(hb) })
	w.step("c releases, d is granted", func() { w.release(hc); hd = w.granted(got) })
	w.step("a queues for the read side, b behind it", func() {
		got = w.acquiring(readWrite(a).ReadLock())
		w.settle()
		gotB = w.acquiring(readWrite(b).ReadLock())
	})
	w.step("d releases, both are granted", func() { w.release(hd); ha, hb = w.granted(got), w.granted(gotB) })
	w.step("a releases", func() { w.release(ha) })
	w.step("b releases", func() { w.release(hb) })
}

func downgrade(w *world) {
	a, b := w.connect("a"), w.connect("b")
	w.ensure(a, "/l")
	rw := readWrite(a)
	var write, read, hb *locks.Hold
	var got <-chan grant
	w.step("a acquires the write side", func() { write = w.acquire(rw.WriteLock()) })
	w.step("b queues for the read side", func() { got = w.acquiring(readWrite(b).ReadLock()) })
	w.step("a acquires the read side under the write side", func() { read = w.acquireUnder(write, rw.ReadLock()) })
	w.step("a releases the write side, b is granted", func() { w.release(write); hb = w.granted(got) })
	w.step("a releases the read side", func() { w.release(read) })
	w.step("b releases", func() { w.release(hb) })
}

func semaphore(c *client, leases int) *locks.InterProcessSemaphore {
	return locks.NewInterProcessSemaphore(c.Client, "/s", leases)
}

func semaphoreFree(w *world) {
	a := w.connect("a")
	s := semaphore(a, 3)
	var first, other *locks.Hold
	w.step("a acquires, and parents are missing", func() { first = w.acquire(s) })
	w.step("a acquires another lease", func() { other = w.acquire(s) })
	w.step("a releases one", func() { w.release(first) })
	w.step("a releases the other", func() { w.release(other) })
}

func semaphoreBusy(w *world) {
	a, b, c := w.connect("a"), w.connect("b"), w.connect("c")
	w.ensure(a, "/s/locks", "/s/leases")
	sa, sb, sc := semaphore(a, 2), semaphore(b, 2), semaphore(c, 2)
	one, two := w.holding(sa), w.holding(sa)
	var hb, hc *locks.Hold
	var gotB, gotC <-chan grant
	w.step("b waits for a lease", func() { gotB = w.acquiring(sb) })
	w.step("c waits for its turn", func() { gotC = w.acquiring(sc) })
	w.step("a returns a lease, b is granted", func() { w.release(one); hb = w.granted(gotB) })
	w.step("a returns the other, c is granted", func() { w.release(two); hc = w.granted(gotC) })
	w.step("b releases", func() { w.release(hb) })
	w.step("b acquires, somebody having been in its way", func() { hb = w.acquire(sb) })
	w.step("b releases", func() { w.release(hb) })
	w.step("c releases", func() { w.release(hc) })
}

func severalLeases(w *world) {
	a, b := w.connect("a"), w.connect("b")
	w.ensure(a, "/s/locks", "/s/leases")
	sa, sb := semaphore(a, 3), semaphore(b, 3)
	var ha, hb *locks.Hold
	var got <-chan grant
	w.step("a acquires two of three", func() { ha = w.acquire(several{sa, 2}) })
	w.step("b wants two", func() { got = w.acquiring(several{sb, 2}) })
	w.step("a returns one of its two, b is granted", func() { w.release(ha.Members()[0]); hb = w.granted(got) })
	w.step("a releases", func() { w.release(ha) })
	w.step("b releases two", func() { w.release(hb) })
}

func yieldsTurn(w *world) {
	a, b, c := w.connect("a"), w.connect("b"), w.connect("c")
	w.ensure(a, "/s/locks", "/s/leases")
	sa, sb, sc := semaphore(a, 3), semaphore(b, 3), semaphore(c, 3)
	ha, hc := w.holding(sa), w.holding(sc)
	var gotB, gotC <-chan grant
	w.step("b wants two; c, who has one, another: b yields its turn to c", func() {
		gotB = w.acquiring(several{sb, 2})
		time.Sleep(100 * time.Millisecond)
		gotC = w.acquiring(sc)
	})
	w.step("c releases both", func() { w.release(w.granted(gotC)); w.release(hc) })
	w.step("a and b release", func() { w.release(w.granted(gotB)); w.release(ha) })
}

func contended(w *world, k kind) {
	a, b := w.connect("a"), w.connect("b")
	w.ensure(a, k.parents...)
	other := at(a, "/b")
	if k.name == mixedMultiLock.name {
		other = locks.NewInterProcessSemaphoreMutex(a.Client, "/s")
	}
	held := w.holding(other)
	var hb *locks.Hold
	w.step("b queues; a, who has one of its locks, releases at once", func() {
		got := w.acquiring(k.lock(b))
		time.Sleep(2 * latency)
		w.release(held)
		hb = w.granted(got)
	})
	w.step("b releases", func() { w.release(hb) })
	held = w.holding(other)
	// A look is drawn at random, about twice as late as the one before. The fifth
	// leaves enough time for the event to come before the sixth.
	w.step("b queues, and looks five times whether it is in the way", func() {
		const looks = 5
		looked := make(chan struct{})
		n := 0
		lists := w.srv.On(zktest.Match{Op: "multiRead", Session: b.SessionID()}, zktest.Call(func(zktest.Request) {
			if n++; n == 1+looks {
				close(looked)
			}
		}))
		defer lists.Remove()
		got := w.acquiring(k.lock(b))
		w.await(looked)
		w.release(held)
		hb = w.granted(got)
	}).timeless = true
	w.step("b releases", func() { w.release(hb) })
}

// An owner that nests locks has b and waits for a. In the queue of a it stands
// behind a MultiLock that waits for b.
func yields(w *world) {
	a, b := w.connect("a"), w.connect("b")
	w.ensure(a, "/a", "/b")
	outer := w.holding(at(b, "/b"))
	var inner *locks.Hold
	var got <-chan grant
	w.step("b, who has /b, wants /a while a MultiLock wants both", func() {
		got = w.acquiring(locks.NewInterProcessMultiLock(at(a, "/a"), at(a, "/b")))
		time.Sleep(latency / 5) // behind it, and before it looks for the first time
		inner = w.acquireUnder(outer, at(b, "/a"))
	}).timeless = true
	var multi *locks.Hold
	w.step("b releases /a and /b, the MultiLock is granted", func() { w.release(inner); w.release(outer); multi = w.granted(got) })
	w.step("the MultiLock is released", func() { w.release(multi) })
}

func release(w *world, k kind) {
	a := w.connect("a")
	w.ensure(a, k.parents...)
	lock := k.lock(a)
	w.step("a acquires, and releases at once", func() { w.release(w.acquire(lock)) })
	var h *locks.Hold
	handOver := func(before func(h *locks.Hold)) {
		h = w.acquire(lock)
		got := w.acquiring(k.lock(a))
		time.Sleep(time.Millisecond)
		before(h)
		w.release(h)
		h = w.granted(got)
	}
	w.step("a acquires; another goroutine of a queues and is granted when a releases", func() { handOver(func(*locks.Hold) {}) })
	w.step("it is released", func() { w.release(h) })
	w.step("the same, but a shows its fencing token before it releases", func() { handOver(func(h *locks.Hold) { h.FencingToken() }) })
	w.step("it is released", func() { w.release(h) })
}

func commitAndRelease(w *world, k kind) {
	a, b := w.connect("a"), w.connect("b")
	w.ensure(a, k.parents...)
	h := w.holding(k.lock(a))
	w.step("a commits", func() {
		tx := h.Transaction()
		tx.Create("/done", []byte("1"), framework.Persistent)
		_, err := tx.Commit(w.ctx)
		require.NoError(w, err)
	})
	w.step("a commits and releases", func() {
		tx := h.Transaction()
		tx.Set("/done", []byte("2"), framework.AnyVersion)
		_, err := tx.CommitAndRelease(w.ctx)
		require.NoError(w, err)
	})
	w.step("a acquires, commits and releases at once", func() {
		tx := w.acquire(k.lock(a)).Transaction()
		tx.Set("/done", []byte("3"), framework.AnyVersion)
		_, err := tx.CommitAndRelease(w.ctx)
		require.NoError(w, err)
	})
	h = w.holding(k.lock(a))
	node := h.Path()
	if node == "" {
		node = h.Members()[0].Path()
	}
	w.step("b deletes a's node while a commits and releases", func() {
		tx := h.Transaction()
		tx.Set("/done", []byte("4"), framework.AnyVersion)
		rule := w.srv.On(zktest.Match{Op: "multi", Session: a.SessionID(), Nth: 1}, zktest.Call(func(zktest.Request) {
			require.NoError(w, b.Delete(w.ctx, node, framework.AnyVersion))
		}))
		defer rule.Remove()
		_, err := tx.CommitAndRelease(w.ctx)
		require.ErrorIs(w, err, locks.ErrLockLost)
	})
}

func try(w *world, k kind) {
	a, b := w.connect("a"), w.connect("b")
	w.ensure(a, k.parents...)
	la, lb := k.lock(a), k.lock(b)
	var h *locks.Hold
	w.step("a tries once", func() {
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { h, err = la.TryAcquire(w.ctx, 0) }) // what the test's goroutine has is of another owner
		wg.Wait()
		require.NoError(w, err)
	})
	w.step("b tries once in vain", func() {
		_, err := lb.TryAcquire(w.ctx, 0)
		require.ErrorIs(w, err, locks.ErrNotAcquired)
	})
	w.step("b tries in vain for as long as it takes to queue", func() {
		_, err := lb.TryAcquire(w.ctx, 4*latency+latency/10)
		require.ErrorIs(w, err, locks.ErrNotAcquired)
	})
	w.step("a releases", func() { w.release(h) })
	w.step("b tries for a second", func() {
		var err error
		h, err = lb.TryAcquire(w.ctx, time.Second)
		require.NoError(w, err)
	})
	w.step("b releases", func() { w.release(h) })
}

func lostReply(w *world, k kind) {
	a := w.connect("a")
	w.ensure(a, k.parents...)
	lock := k.lock(a)
	var h *locks.Hold
	steps := []*step{w.step("a acquires; its nodes are made, and the connection ends before the reply", func() {
		rule := w.srv.On(zktest.Match{Op: k.create, Session: a.SessionID(), Nth: 1}, zktest.CutAfter())
		defer rule.Remove()
		h = w.acquire(lock)
		assert.Equal(w, 1, rule.Fired())
	}), w.step("a releases; the lock is given back, and the connection ends before the reply", func() {
		rule := w.srv.On(zktest.Match{Op: k.remove, Session: a.SessionID(), Nth: 1}, zktest.CutAfter())
		defer rule.Remove()
		w.release(h)
		assert.Equal(w, 1, rule.Fired())
	})}
	for _, s := range steps {
		s.timeless, s.concurrent = true, true // it connects again after a while, and then looks for each node by itself
	}
}

// What the servers are asked for while a lock is held, with a session as most are.
func heldForLong(w *world) {
	a := w.connect("a", func(cfg *framework.Config) { cfg.SessionTimeout = 15 * time.Second })
	w.ensure(a, "/l")
	var h *locks.Hold
	w.step("a acquires and holds for a session timeout", func() {
		h = w.acquire(at(a, "/l"))
		time.Sleep(15 * time.Second)
	})
	w.step("a releases and holds nothing for a session timeout", func() {
		w.release(h)
		time.Sleep(15 * time.Second)
	})
}

func revoke(w *world) {
	a, b := w.connect("a"), w.connect("b")
	w.ensure(a, "/l")
	var h *locks.Hold
	m := locks.NewInterProcessMutex(b.Client, "/l")
	var path string
	w.step("a acquires a lock that others may ask for", func() {
		h = w.acquire(locks.NewInterProcessMutex(a.Client, "/l", locks.Revocable()))
	})
	w.step("b lists the participants", func() {
		all, err := m.Participants(w.ctx)
		require.NoError(w, err)
		require.Len(w, all, 1)
		path = all[0].Path
	})
	w.step("b asks a for the lock", func() {
		require.NoError(w, locks.AttemptRevoke(w.ctx, b.Client, path))
		w.await(h.Revoked())
	})
	w.release(h) // whether its node or the watch for revocations goes first is for the scheduler to say
}
