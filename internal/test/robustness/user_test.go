//go:build realzk

package robustness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/check"
	"github.com/paddock-zk/paddock/internal/test/faultnet"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// user is a process that uses every recipe at once, over and over.
type user struct {
	Servers, Name, History string
	Blind                  bool // believes in locks until it gives them back

	client  *framework.Client
	network *faultnet.Net
	history *history
	stop    chan struct{}
}

// The session timeout of users, and the leases of their semaphore.
const (
	userTimeout = 3 * time.Second
	userLeases  = 3
)

// lockSet are what users take.
var lockSet = []check.Lock{
	{Path: "/locks/mutex", Kind: check.Mutex},
	{Path: "/locks/kept", Kind: check.Mutex},
	{Path: "/locks/stale", Kind: check.Mutex},
	{Path: "/locks/m1", Kind: check.Mutex},
	{Path: "/locks/m2", Kind: check.Mutex},
	{Path: "/locks/m3", Kind: check.Semaphore, Permits: 1},
	{Path: "/locks/rw", Kind: check.ReadWrite},
	{Path: "/locks/sem", Kind: check.Semaphore, Permits: userLeases},
	{Path: "/locks/semmutex", Kind: check.Semaphore, Permits: 1},
}

// resources are written under locks: once with the proof of holding and once
// without.
var resources = []string{"mutex", "kept", "rw", "semmutex", "multi", "stale"}

// use is a user's process. It ends at the order "stop".
func use(ctx context.Context, args []string) (err error) {
	u := user{stop: make(chan struct{})}
	if err := json.Unmarshal([]byte(args[0]), &u); err != nil {
		return err
	}
	if u.history, err = openHistory(u.Name, u.History, u.Blind); err != nil {
		return err
	}
	u.network = faultnet.New(nil)
	defer u.network.Close()
	u.client, err = framework.Start(framework.Config{ConnectString: u.Servers, SessionTimeout: userTimeout, DialContext: u.network.DialContext})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var failed error
	var mu sync.Mutex
	for name, once := range u.actors() {
		wg.Go(func() {
			if err := u.loop(ctx, once); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	fmt.Println("ready")
	err = u.obey(ctx)
	close(u.stop)
	wg.Wait()
	if err := errors.Join(err, failed, u.client.Close()); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

// obey does what the parent says until that is to stop.
func (u *user) obey(ctx context.Context) error {
	for {
		var order string
		select {
		case order = <-orders:
		case <-ctx.Done():
			return ctx.Err()
		}
		verb, arg, _ := strings.Cut(order, " ")
		switch verb {
		case "stop":
			return nil
		case "cut":
			u.network.CutAll()
		case "freeze":
			d, err := time.ParseDuration(arg)
			if err != nil {
				return err
			}
			u.network.Freeze()
			<-time.After(d)
			u.network.Thaw()
		case "stale":
			if err := u.stale(ctx); err != nil {
				return err
			}
		default:
			return errors.New("no such order: " + order)
		}
	}
}

func (u *user) loop(ctx context.Context, once func(context.Context) error) error {
	for {
		select {
		case <-u.stop:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(20 * time.Millisecond)):
		}
		if err := once(ctx); err != nil {
			return err
		}
	}
}

func (u *user) mutex(name string) *locks.InterProcessMutex {
	return locks.NewInterProcessMutex(u.client, "/locks/"+name)
}

// actors are what a user does, each in a goroutine.
func (u *user) actors() map[string]func(context.Context) error {
	rw := locks.NewInterProcessReadWriteLock(u.client, "/locks/rw")
	exclusive := func(name string, lock locks.Lock, hold time.Duration) func(context.Context) error {
		return func(ctx context.Context) error { return u.exclusive(ctx, lock, name, rand.N(hold)) }
	}
	all := map[string]func(context.Context) error{
		"nester":          u.nest,
		"multi":           u.multi,
		"semaphore":       u.lease,
		"writer":          func(ctx context.Context) error { return u.write(ctx, rw) },
		"semaphore mutex": exclusive("semmutex", locks.NewInterProcessSemaphoreMutex(u.client, "/locks/semmutex"), 20*time.Millisecond),
		"stale":           exclusive("stale", u.mutex("stale"), 5*time.Millisecond),
		"keeper":          exclusive("kept", u.mutex("kept"), userTimeout),
	}
	for i := range 3 { // through one client
		all[fmt.Sprint("mutex ", i)] = exclusive("mutex", u.mutex("mutex"), 20*time.Millisecond)
	}
	for i := range 2 {
		all[fmt.Sprint("reader ", i)] = func(ctx context.Context) error { return u.read(ctx, rw) }
	}
	return all
}

// acquire takes a lock and has the wait recorded.
func (u *user) acquire(ctx context.Context, name string, acquire func(context.Context) (*locks.Hold, error)) (*locks.Hold, error) {
	w := check.Wait{Who: u.Name, Lock: "/locks/" + name, Began: time.Duration(stamp()), Limit: check.Never}
	h, err := acquire(ctx)
	w.Returned, w.OK = time.Duration(stamp()), err == nil
	if name != "kept" { // for which one waits as long as others like
		u.history.write(record{Wait: &w})
	}
	return h, err
}

// exclusive takes a lock, writes its resource and gives it back.
func (u *user) exclusive(ctx context.Context, lock locks.Lock, name string, hold time.Duration) error {
	h, err := u.acquire(ctx, name, lock.Acquire)
	if err != nil {
		return err
	}
	b := u.history.observe(h, rand.Int(), kind{name, check.Alone})
	<-time.After(hold)
	if m, ok := lock.(*locks.InterProcessMutex); ok && rand.N(4) == 0 {
		if err := u.reenter(h, m); err != nil {
			return err
		}
	}
	return u.raise(ctx, b, name)
}

func (u *user) reenter(h *locks.Hold, m *locks.InterProcessMutex) error {
	again, err := m.Acquire(h.Context())
	if err == nil {
		err = again.Release()
	}
	if h.State() == locks.Lost { // and with it its context
		return nil
	}
	return err
}

// raise writes a resource, with the proof and without, and gives the lock back.
func (u *user) raise(ctx context.Context, b *observedHold, name string) error {
	if !b.asked() {
		b.over()
		return u.release(b.hold)
	}
	w := u.newWrite("/data/"+name, b)
	tx := b.hold.Transaction()
	tx.Set(w.Path, []byte(w.ID), framework.AnyVersion)
	commit := tx.Commit
	leave := rand.N(4) == 0
	if leave {
		b.over()
		commit = tx.CommitAndRelease
	}
	_, err := commit(ctx)
	u.wrote(w, "fenced write", err)
	if !leave {
		u.unfenced(ctx, name, b)
		b.over()
	}
	return u.release(b.hold)
}

// newWrite is a write with the proof of holding.
func (u *user) newWrite(path string, b *observedHold) *check.Write {
	id := u.Name + " " + strconv.FormatUint(rand.Uint64(), 36)
	return &check.Write{Who: u.Name, ID: id, Path: path, Nodes: b.nodes, Fenced: true}
}

// wrote records what became of a write.
func (u *user) wrote(w *check.Write, what string, err error) {
	switch {
	case err == nil:
		w.Outcome = check.Done
		what += " accepted"
	case framework.Ambiguous(err):
		w.Outcome = check.Unknown
		what += " of unknown outcome"
	case errors.Is(err, locks.ErrFenced), errors.Is(err, framework.ErrNoNode), errors.Is(err, locks.ErrReleased):
		w.Outcome = check.NotDone
		what += " refused"
	default:
		w.Outcome = check.NotDone
		what += " failed"
	}
	u.history.write(record{Write: w})
	u.history.count(what)
}

// unfenced is the control. It reports whether the write was accepted.
func (u *user) unfenced(ctx context.Context, name string, b *observedHold) bool {
	w := u.newWrite("/control/"+name, b)
	w.Fenced = false
	_, err := u.client.Set(ctx, w.Path, []byte(w.ID), framework.AnyVersion)
	u.wrote(w, "unfenced write", err)
	return err == nil
}

// release gives back, whatever has become of the hold.
func (u *user) release(h *locks.Hold) error {
	err := h.Release()
	switch {
	case errors.Is(err, locks.ErrLockLost):
		u.history.count("lock lost")
		return nil
	case errors.Is(err, locks.ErrReleasePending):
		u.history.count("release pending")
		return nil
	case errors.Is(err, locks.ErrReleased): // by its commit
		return nil
	}
	return err
}

func (u *user) read(ctx context.Context, rw *locks.InterProcessReadWriteLock) error {
	h, err := u.acquire(ctx, "rw", rw.ReadLock().Acquire)
	if err != nil {
		return err
	}
	b := u.history.observe(h, rand.Int(), kind{"rw", check.Shared})
	<-time.After(rand.N(15 * time.Millisecond))
	b.over()
	return u.release(h)
}

// write takes the write side, and sometimes goes over to the read side.
func (u *user) write(ctx context.Context, rw *locks.InterProcessReadWriteLock) error {
	if rand.N(3) > 0 {
		return u.exclusive(ctx, rw.WriteLock(), "rw", rand.N(15*time.Millisecond))
	}
	h, err := u.acquire(ctx, "rw", rw.WriteLock().Acquire)
	if err != nil {
		return err
	}
	owner := rand.Int()
	b := u.history.observe(h, owner, kind{"rw", check.Alone})
	<-time.After(rand.N(10 * time.Millisecond))
	r, err := rw.ReadLock().Acquire(h.Context())
	if err != nil {
		b.over()
		if h.State() == locks.Lost {
			err = nil
		}
		return errors.Join(err, u.release(h))
	}
	shared := u.history.observe(r, owner, kind{"rw", check.Shared})
	b.over()
	err = u.release(h)
	<-time.After(rand.N(10 * time.Millisecond))
	shared.over()
	return errors.Join(err, u.release(r))
}

func (u *user) lease(ctx context.Context) error {
	n := 1 + rand.N(2)
	sem := locks.NewInterProcessSemaphore(u.client, "/locks/sem", userLeases)
	h, err := u.acquire(ctx, "sem", func(ctx context.Context) (*locks.Hold, error) { return sem.AcquireN(ctx, n) })
	if err != nil {
		return err
	}
	b := u.history.observe(h, rand.Int(), kind{"sem", check.Lease})
	<-time.After(rand.N(20 * time.Millisecond))
	b.over()
	return u.release(h)
}

// multi takes three locks at once, in any order.
func (u *user) multi(ctx context.Context) error {
	members := []locks.Lock{u.mutex("m1"), u.mutex("m2"), locks.NewInterProcessSemaphoreMutex(u.client, "/locks/m3")}
	rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	h, err := u.acquire(ctx, "m1", locks.NewInterProcessMultiLock(members...).Acquire)
	if err != nil {
		return err
	}
	b := u.history.observe(h, rand.Int(), kind{"m1", check.Alone}, kind{"m2", check.Alone}, kind{"m3", check.Alone})
	<-time.After(rand.N(10 * time.Millisecond))
	return u.raise(ctx, b, "multi")
}

// nest takes two of the same locks one after another.
func (u *user) nest(ctx context.Context) error {
	h, err := u.acquire(ctx, "m2", u.mutex("m2").Acquire)
	if err != nil {
		return err
	}
	owner := rand.Int()
	outer := u.history.observe(h, owner, kind{"m2", check.Alone})
	inner, err := u.mutex("m1").TryAcquire(h.Context(), time.Second)
	switch {
	case err == nil:
		b := u.history.observe(inner, owner, kind{"m1", check.Alone})
		<-time.After(rand.N(10 * time.Millisecond))
		b.over()
		err = u.release(inner)
	case errors.Is(err, locks.ErrNotAcquired), errors.Is(err, framework.ErrNotConnected), h.Err() != nil:
		err = nil
	}
	outer.over()
	return errors.Join(err, u.release(h))
}

const staleWrites = 20 // in one go

// stale takes a lock, says so, and writes when the order "fire" comes, without a
// look at the lock. The parent may stop this process in between, for as long as it
// likes.
func (u *user) stale(ctx context.Context) error {
	h, err := u.acquire(ctx, "stale", u.mutex("stale").Acquire)
	if err != nil {
		return err
	}
	b := u.history.observe(h, rand.Int(), kind{"stale", check.Alone})
	fmt.Println("loaded")
	if order := <-orders; order != "fire" {
		return errors.New("no such order here: " + order)
	}
	for range staleWrites { // as the library sends it, past the look that it takes before
		w := u.newWrite("/data/stale", b)
		tx := u.client.Transaction()
		tx.Check(h.Path(), framework.AnyVersion)
		tx.Set(w.Path, []byte(w.ID), framework.AnyVersion)
		_, err := tx.Commit(ctx)
		u.wrote(w, "late fenced write", err)
	}
	w := u.newWrite("/data/stale", b)
	tx := h.Transaction()
	tx.Set(w.Path, []byte(w.ID), framework.AnyVersion)
	_, err = tx.Commit(ctx)
	u.wrote(w, "late write through the hold", err)
	for try := 0; try < 100 && !u.unfenced(ctx, "stale", b); try++ {
		<-time.After(100 * time.Millisecond)
	}
	b.over()
	err = u.release(h)
	fmt.Println("fired")
	return err
}
