package locks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// userCode is all code of the user's that a lock calls. It fails at one of the
// calls that are made in the goroutine that uses the lock.
type userCode struct {
	fail func() // panics, or ends the goroutine

	mu     sync.Mutex // guards the fields below
	user   string     // the goroutine that uses the lock, "" when nothing fails
	left   int        // calls until one fails
	failed string     // which it was
}

// called is a call of user code. The names are the list of what there is:
//
//	Config.ACL, Config.Retry (its functions), Err, Done, Value and Deadline of the
//	caller's context, Acquire, TryAcquire and the release of a Lock of the user's
//	own, and the functions given to Do and TryDo.
//
// Listeners run in goroutines of their own (TestListenerOfAHoldThatFails). NodeData
// and DefaultData are bytes, and a Gate calls nothing.
func (u *userCode) called(what string) {
	here := goroutine()
	u.mu.Lock()
	hit := false
	if u.user == here {
		u.left--
		if hit = u.left == 0; hit {
			u.failed = what
		}
	}
	u.mu.Unlock()
	if hit {
		u.fail()
	}
}

// begin makes the n-th call fail from now on, in this goroutine.
func (u *userCode) begin(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.user, u.left, u.failed = goroutine(), n, ""
}

// end returns what failed, "" if nothing did.
func (u *userCode) end() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.user = ""
	return u.failed
}

// goroutine names the one that runs.
func goroutine() string {
	text := make([]byte, 64)
	return string(bytes.Fields(text[:runtime.Stack(text, false)])[1])
}

// users is a context of a type of the user's.
type users struct {
	context.Context
	code *userCode
}

func (c users) Err() error { c.code.called("Err"); return c.Context.Err() }

func (c users) Done() <-chan struct{} { c.code.called("Done"); return c.Context.Done() }

func (c users) Value(key any) any { c.code.called("Value"); return c.Context.Value(key) }

func (c users) Deadline() (time.Time, bool) { c.code.called("Deadline"); return c.Context.Deadline() }

// theirs is a lock of the user's own, over one of ours.
type theirs struct {
	locks.Lock
	code *userCode
}

func (l theirs) Acquire(ctx context.Context) (*locks.Hold, error) {
	return l.take(ctx, "Acquire", l.Lock.Acquire)
}

func (l theirs) TryAcquire(ctx context.Context, wait time.Duration) (*locks.Hold, error) {
	return l.take(ctx, "TryAcquire", func(ctx context.Context) (*locks.Hold, error) { return l.Lock.TryAcquire(ctx, wait) })
}

func (l theirs) take(ctx context.Context, name string, take func(context.Context) (*locks.Hold, error)) (*locks.Hold, error) {
	l.code.called(name + " of theirs, before")
	inner, err := take(ctx)
	if err != nil {
		return nil, err
	}
	given := false
	defer func() {
		if !given {
			_ = inner.Release()
		}
	}()
	l.code.called(name + " of theirs")
	outer, _ := locks.NewHold(ctx, func() error {
		defer func() { _ = inner.Release() }()
		l.code.called("release of theirs")
		return nil
	})
	given = true
	return outer, nil
}

// failingLocks are the locks that user code fails in.
func failingLocks() map[string]func(*framework.Client, *userCode) locks.Lock {
	all := make(map[string]func(*framework.Client, *userCode) locks.Lock)
	for name, lock := range kit.Locks {
		all[name] = func(c *framework.Client, _ *userCode) locks.Lock { return lock(c) }
	}
	all["alone"] = func(c *framework.Client, _ *userCode) locks.Lock {
		return locks.NewInterProcessMutex(c, "/l/m", locks.LocalHandovers(0))
	}
	all["two of theirs and two of ours"] = func(c *framework.Client, code *userCode) locks.Lock {
		return locks.NewInterProcessMultiLock(
			locks.NewInterProcessMutex(c, "/l/a"), theirs{locks.NewInterProcessMutex(c, "/l/x"), code},
			locks.NewInterProcessSemaphoreMutex(c, "/l/s"), theirs{locks.NewInterProcessMutex(c, "/l/y"), code})
	}
	all["ordered"] = func(c *framework.Client, _ *userCode) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l/a"), locks.NewInterProcessMutex(c, "/l/b")).Ordered()
	}
	return all
}

// usages are the calls that user code fails in.
func usages(code *userCode) map[string]func(context.Context, locks.Lock) {
	release := func(h *locks.Hold, err error) {
		if err == nil {
			_ = h.Release()
		}
	}
	work := func(context.Context) error { code.called("the function given to Do"); return nil }
	commit := func(ctx context.Context, lock locks.Lock, commit func(*locks.Transaction) error) {
		if h, err := lock.Acquire(ctx); err == nil {
			defer func() { _ = h.Release() }()
			tx := h.Transaction()
			tx.Set("/elsewhere", []byte("x"), framework.AnyVersion)
			_ = commit(tx)
		}
	}
	return map[string]func(context.Context, locks.Lock){
		"acquire":         func(ctx context.Context, lock locks.Lock) { release(lock.Acquire(ctx)) },
		"try":             func(ctx context.Context, lock locks.Lock) { release(lock.TryAcquire(ctx, 0)) },
		"try for a while": func(ctx context.Context, lock locks.Lock) { release(lock.TryAcquire(ctx, time.Minute)) },
		"do":              func(ctx context.Context, lock locks.Lock) { _ = locks.Do(ctx, lock, work) },
		"try do":          func(ctx context.Context, lock locks.Lock) { _ = locks.TryDo(ctx, lock, time.Minute, work) },
		"commit": func(ctx context.Context, lock locks.Lock) {
			commit(ctx, lock, func(tx *locks.Transaction) error { _, err := tx.Commit(ctx); return err })
		},
		"commit and release": func(ctx context.Context, lock locks.Lock) {
			commit(ctx, lock, func(tx *locks.Transaction) error { _, err := tx.CommitAndRelease(ctx); return err })
		},
		"re-enter": func(ctx context.Context, lock locks.Lock) {
			if h, err := lock.Acquire(ctx); err == nil {
				defer func() { _ = h.Release() }()
				limited, cancel := context.WithTimeout(users{h.Context(), code}, time.Second)
				defer cancel()
				release(lock.Acquire(limited)) //nolint:contextcheck // the hold's context is ctx's child
			}
		},
		"participants": func(ctx context.Context, lock locks.Lock) {
			if l, ok := lock.(listable); ok {
				_, _ = l.Participants(ctx)
			}
		},
	}
}

// situations are what there is when the lock is used: what happens goes on until
// the lock is free.
var situations = map[string]func(t *testing.T, srv *zktest.Server, c *framework.Client, lock func(*framework.Client) locks.Lock){
	"free": func(t *testing.T, _ *zktest.Server, c *framework.Client, lock func(*framework.Client) locks.Lock) {
		holdFor(t, lock(c), 0) // makes the parents
	},
	"no parents": func(*testing.T, *zktest.Server, *framework.Client, func(*framework.Client) locks.Lock) {},
	"taken": func(t *testing.T, srv *zktest.Server, _ *framework.Client, lock func(*framework.Client) locks.Lock) {
		holdFor(t, lock(kit.Connect(t, srv)), 30*time.Millisecond)
	},
	"taken here": func(t *testing.T, _ *zktest.Server, c *framework.Client, lock func(*framework.Client) locks.Lock) {
		holdFor(t, lock(c), 30*time.Millisecond)
		go func() { _ = locks.Do(t.Context(), lock(c), func(context.Context) error { return nil }) }()
		time.Sleep(5 * time.Millisecond)
	},
	"the reply is lost": func(t *testing.T, srv *zktest.Server, c *framework.Client, lock func(*framework.Client) locks.Lock) {
		holdFor(t, lock(c), 0)
		for _, op := range []string{"create2", "multi"} {
			srv.On(zktest.Match{Session: c.SessionID(), Op: op, Nth: 1}, zktest.CutAfter())
		}
		srv.On(zktest.Match{Session: c.SessionID(), Op: "getChildren", Nth: 1}, zktest.CutBefore())
	},
}

func holdFor(t *testing.T, lock locks.Lock, d time.Duration) {
	t.Helper()
	h, err := lock.Acquire(t.Context())
	require.NoError(t, err)
	if d == 0 {
		require.NoError(t, h.Release())
		return
	}
	time.AfterFunc(d, func() { _ = h.Release() })
}

var failures = map[string]func(){"panic": func() { panic("user code") }, "goexit": runtime.Goexit}

// User code fails at each call of it in turn, for every lock, every call and in
// every situation. Nothing is left of that: the next one gets the lock at once, and
// no node, no watch and no place stays.
func TestUserCodeFailsAtAnyCall(t *testing.T) {
	t.Parallel()
	where := make(map[[2]string]int)
	for kind, lock := range failingLocks() {
		for usage := range usages(nil) {
			for situation := range situations {
				if !*everySweep && !tried(kind, usage, situation) {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, %s", kind, usage, situation), func(t *testing.T) {
					for name, fail := range failures {
						if name == "goexit" && situation != "taken here" && !*everySweep {
							continue
						}
						for n := 1; ; n++ {
							failed := ""
							synctest.Test(t, func(t *testing.T) { failed = failAt(t, n, fail, lock, usage, situation) })
							if t.Failed() {
								t.Fatalf("%s at call %d, of %s", name, n, failed)
							}
							if failed == "" {
								break
							}
							where[[2]string{failed, kind}]++
							require.Less(t, n, 200)
						}
					}
				})
			}
		}
	}
	kit.Tried(t, "user code, failed", where)
}

// tried is what is tried each time: Acquire in all situations, and other calls of
// some locks where most code of the user's is called.
func tried(kind, usage, situation string) bool {
	different := slices.Contains([]string{"mutex", "multi", "semaphore", "two of theirs and two of ours"}, kind)
	switch usage {
	case "acquire":
		return different || situation == "taken here"
	case "participants":
		return different && situation == "the reply is lost"
	}
	return different && situation == "taken here"
}

// failAt returns what failed, "" if there were fewer calls.
func failAt(t *testing.T, n int, fail func(), lock func(*framework.Client, *userCode) locks.Lock, usage, situation string) string {
	t.Helper()
	code := &userCode{fail: fail}
	srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
	c := kit.Connect(t, srv, func(cfg *framework.Config) {
		cfg.ACL = func(string) []framework.ACL { code.called("Config.ACL"); return zk.WorldACL(zk.PermAll) }
		cfg.Retry = retry.OneTime(time.Second).OnRetry(func(context.Context, retry.Attempt) { code.called("Config.Retry") })
	})
	plain := func(c *framework.Client) locks.Lock { return lock(c, code) }
	situations[situation](t, srv, c, plain)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = recover() }()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		defer func() { code.mu.Lock(); defer code.mu.Unlock(); code.user = "" }()
		code.begin(n)
		usages(code)[usage](users{ctx, code}, plain(c))
	}()
	<-ended
	failed := code.end()
	next, cancel := context.WithTimeout(t.Context(), 2*time.Second) // the others let go within 30 ms
	defer cancel()
	h, err := plain(c).Acquire(next)
	if assert.NoError(t, err, "the next one of this client") {
		assert.NoError(t, h.Release())
	}
	time.Sleep(time.Minute)
	kit.NothingLeft(t, srv)
	return failed
}

// However often user code fails, a client can have as many requests on their way
// as before.
func TestUserCodeThatFailsTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/l"))
		code := &userCode{fail: func() { panic("user code") }}
		fails := 0
		for kind, lock := range failingLocks() {
			for _, usage := range slices.Sorted(maps.Keys(usages(nil))) {
				for n := 1; ; n++ {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					func() {
						defer func() { _ = recover() }()
						code.begin(n)
						usages(code)[usage](users{ctx, code}, lock(c, code)) //nolint:contextcheck // it is the context that fails
					}()
					failed := code.end()
					require.NoError(t, ctx.Err(), "%s, %s: call %d, of %s", kind, usage, n, failed)
					cancel()
					if failed == "" {
						break
					}
					fails++
					require.Less(t, n, 200, kind)
				}
			}
		}
		time.Sleep(time.Minute)
		require.Greater(t, fails, 500)
		another := kit.Connect(t, srv)
		srv.Freeze()
		assert.Equal(t, outstanding(t, another), outstanding(t, c))
		srv.Thaw()
		t.Logf("user code failed %d times", fails)
	})
}

// outstanding is how many requests a client sends to a server that answers none.
func outstanding(t *testing.T, c *framework.Client) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var sent atomic.Int32
	for range 4096 + 10 {
		all.Go(func() {
			if _, err := c.Set(ctx, "/l", []byte("x"), framework.AnyVersion); errors.Is(err, framework.ErrOutcomeUnknown) {
				sent.Add(1)
			}
		})
	}
	synctest.Wait()
	cancel()
	all.Wait()
	require.Greater(t, sent.Load(), int32(100))
	return int(sent.Load())
}
