package locks_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// fencedLocks are the kinds of holds that a transaction can rest on.
var fencedLocks = map[string]func(c *framework.Client) locks.Lock{
	"mutex": func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/l/m") },
	"namespace": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMutex(c.UsingNamespace("l"), "/n")
	},
	"read":            kit.Locks["read"],
	"semaphore":       func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/l/s", 3) },
	"semaphore mutex": kit.Locks["semaphore mutex"],
	"multi":           kit.Locks["multi"],
	"multi of readers": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMultiLock(kit.Locks["read"](c), locks.NewInterProcessMutex(c, "/l/m"))
	},
}

// commitWorld is one fenced write that is disturbed.
type commitWorld struct {
	lock      string
	release   bool
	how       string // nothing, "idempotent" or "receipt"
	cut       int    // the request that is cut, from 1
	applied   bool   // after it was applied
	again     int    // how many requests later another is cut, 0 for none
	meanwhile string // what happens while A reconnects
	rival     string // what another owner then writes
}

// verdicts are how often each outcome was told.
type verdicts map[string]int

func (w commitWorld) run(t *testing.T, seen verdicts) {
	srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
	admin := kit.Connect(t, srv)
	a := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.NTimes(4, time.Second) })
	b := kit.Connect(t, srv)
	ctx := t.Context()
	for _, path := range []string{"/l/acct", "/l/task", "/acct", "/task"} {
		_, err := admin.Create(ctx, path, []byte("100"), framework.Persistent, framework.Parents())
		require.NoError(t, err)
	}
	require.NoError(t, admin.EnsurePath(ctx, "/l/receipts"))
	prefix := ""
	if w.lock == "namespace" {
		prefix = "/l"
	}

	h, err := fencedLocks[w.lock](a).Acquire(ctx)
	require.NoError(t, err)
	time.Sleep(2 * time.Second) // it is watched by now
	fault := zktest.CutBefore()
	if w.applied {
		fault = zktest.CutAfter()
	}
	id := a.SessionID()
	srv.On(zktest.Match{Session: id, Nth: w.cut, Func: isNoConnect}, fault)
	if w.again > 0 {
		srv.On(zktest.Match{Session: id, Nth: w.cut + w.again, Func: isNoConnect}, fault)
	}
	var rivalDone atomic.Bool
	srv.On(zktest.Match{Op: "connect", Session: id, Nth: 1}, zktest.Call(func(zktest.Request) {
		switch w.meanwhile {
		case "expired":
			_ = srv.ExpireSession(id)
		case "deleted":
			for _, leaf := range append(h.Members(), h) {
				if leaf.Path() != "" {
					_ = admin.Delete(ctx, leaf.Path(), framework.AnyVersion)
				}
			}
		}
		rivalDone.Store(w.compete(ctx, b))
	}))
	tx := h.Transaction()
	tx.Set("/acct", []byte("90"), 0)
	tx.Delete("/task", 0)
	var opts []framework.CommitOption
	switch w.how {
	case "idempotent":
		opts = append(opts, framework.Idempotent())
	case "receipt":
		opts = append(opts, framework.Receipt("/receipts"))
	}
	commit := tx.Commit
	if w.release {
		commit = tx.CommitAndRelease
	}
	_, err = commit(ctx, opts...)
	_ = h.Release()
	time.Sleep(45 * time.Second)
	w.judge(t, seen, err, func() bool {
		_, stat, err := admin.Get(ctx, prefix+"/acct")
		require.NoError(t, err)
		require.LessOrEqual(t, stat.Version, int32(1))
		return stat.Version == 1 && !rivalDone.Load()
	})
	kit.NothingLeft(t, srv)
	require.NoError(t, a.Sync(ctx, "/"), "the client goes on")
}

func isNoConnect(r zktest.Request) bool { return r.Op != "connect" && r.Op != "ping" }

// compete is another owner that does the same work, or other work.
func (w commitWorld) compete(ctx context.Context, b *framework.Client) bool {
	data := map[string]string{"equal": "90", "unequal": "91"}[w.rival]
	if data == "" {
		return false
	}
	h, err := fencedLocks[w.lock](b).TryAcquire(ctx, 100*time.Millisecond)
	if err != nil {
		return false
	}
	defer func() { _ = h.Release() }()
	tx := h.Transaction()
	tx.Set("/acct", []byte(data), 0)
	tx.Delete("/task", 0)
	_, err = tx.CommitAndRelease(ctx)
	return err == nil
}

// judge compares what was told with the truth.
func (w commitWorld) judge(t *testing.T, seen verdicts, err error, applied func() bool) {
	var refused *framework.TransactionError
	var lost *locks.LostError
	switch {
	case err == nil:
		seen["applied"]++
		assert.True(t, applied(), "nil, and it was not applied")
	case errors.Is(err, framework.ErrOutcomeUnknown):
		seen["unknown"]++
		for _, not := range []error{
			locks.ErrFenced, locks.ErrLockLost, locks.ErrNodeDeleted, locks.ErrReleased,
			framework.ErrNoNode, framework.ErrBadVersion, framework.ErrNodeExists,
		} {
			assert.NotErrorIs(t, err, not)
		}
		assert.False(t, errors.As(err, &refused) || errors.As(err, &lost), "%v", err)
		assert.False(t, w.how == "receipt" && w.meanwhile != "expired", "a receipt knows: %v", err)
	default:
		seen["not applied"]++
		assert.False(t, applied(), "applied, and it was said: %v", err)
	}
	if t.Failed() {
		t.Logf("%+v: %v", w, err)
	}
}

// What each option can tell, and what it cannot.
func TestCommitWithoutAReply(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		commitWorld
		want string
	}{
		"the same work of the next owner":             {commitWorld{lock: "mutex", how: "idempotent", meanwhile: "expired", rival: "equal"}, "unknown"},
		"the same work of another reader":             {commitWorld{lock: "read", how: "idempotent", rival: "equal"}, "unknown"},
		"the same work of another holder of a lease":  {commitWorld{lock: "semaphore", how: "idempotent", rival: "equal"}, "unknown"},
		"the same work of another reader of a member": {commitWorld{lock: "multi of readers", how: "idempotent", rival: "equal"}, "applied"},
		"nothing happened to the lock":                {commitWorld{lock: "mutex", how: "idempotent", applied: true}, "applied"},
		"sent again under the lock":                   {commitWorld{lock: "mutex", how: "idempotent"}, "applied"},
		"sent again, then given back":                 {commitWorld{lock: "mutex", how: "idempotent", release: true}, "applied"},
		"given back, and the node is gone":            {commitWorld{lock: "multi", how: "idempotent", release: true, applied: true}, "unknown"},
		"given back, and other work of the next owner": {
			commitWorld{lock: "mutex", how: "idempotent", release: true, applied: true, rival: "unequal"}, "unknown",
		},
		"the node was deleted": {commitWorld{lock: "mutex", how: "idempotent", applied: true, meanwhile: "deleted"}, "unknown"},
		"a receipt, given back": {
			commitWorld{lock: "multi", how: "receipt", release: true, applied: true, rival: "unequal"}, "applied",
		},
		"a receipt, the same work of another reader": {commitWorld{lock: "read", how: "receipt", rival: "equal"}, "not applied"},
		"a receipt, the node was deleted":            {commitWorld{lock: "mutex", how: "receipt", meanwhile: "deleted", rival: "equal"}, "not applied"},
		"a receipt, applied before that":             {commitWorld{lock: "namespace", how: "receipt", applied: true, meanwhile: "deleted", rival: "unequal"}, "applied"},
		"a receipt, the session has ended":           {commitWorld{lock: "mutex", how: "receipt", applied: true, meanwhile: "expired"}, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := verdicts{}
			tc.cut = 1
			synctest.Test(t, func(t *testing.T) { tc.run(t, seen) })
			assert.Equal(t, verdicts{tc.want: 1}, seen)
		})
	}
}

// The node that the transaction would have deleted is still there when the client
// looks for it. So a later refusal is a refusal of the whole transaction.
func TestCommitThatWasNotAppliedIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		admin, a := kit.Connect(t, srv), kit.Connect(t, srv)
		_, err := admin.Create(t.Context(), "/acct", nil, framework.Persistent)
		require.NoError(t, err)
		h, err := locks.NewInterProcessMutex(a, "/m").Acquire(t.Context())
		require.NoError(t, err)
		id := a.SessionID()
		commit := zktest.Match{Op: "multi", Session: id, Nth: 1, Func: func(r zktest.Request) bool { return len(r.Paths) == 2 }}
		srv.On(commit, zktest.CutBefore())
		// The first rule has kept the first from this one.
		srv.On(commit, zktest.Call(func(zktest.Request) { _ = admin.Delete(context.Background(), h.Path(), framework.AnyVersion) }))
		tx := h.Transaction()
		tx.Set("/acct", []byte("1"), 0)
		_, err = tx.CommitAndRelease(t.Context(), framework.Idempotent())
		require.ErrorIs(t, err, locks.ErrFenced)
		require.NotErrorIs(t, err, framework.ErrOutcomeUnknown)
		_, stat, err := admin.Get(t.Context(), "/acct")
		require.NoError(t, err)
		assert.Zero(t, stat.Version)
	})
}

// Each request of a commit is lost in turn, or its reply. Meanwhile the session goes on
// or ends, or the lock's node is deleted. Another owner does nothing, the same or
// something else. What Commit returns is true, and nothing is left behind.
func TestCommitSaysWhatHappened(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"", "idempotent", "receipt"} {
		for _, release := range []bool{false, true} {
			t.Run(fmt.Sprintf("release=%v %s", release, how), func(t *testing.T) {
				seen, n := verdicts{}, 0
				for _, lock := range slices.Sorted(maps.Keys(fencedLocks)) {
					for moment := range 2 * 3 * 3 {
						for _, meanwhile := range []string{"", "expired", "deleted"} {
							for _, rival := range []string{"", "equal", "unequal"} {
								if n++; !*everySweep && n%83 != 0 {
									continue
								}
								w := commitWorld{lock: lock, release: release, how: how, meanwhile: meanwhile, rival: rival}
								w.applied, w.cut, w.again = moment%2 == 1, 1+moment/2%3, moment/6
								synctest.Test(t, func(t *testing.T) { w.run(t, seen) })
								if t.Failed() {
									t.Fatalf("%+v", w)
								}
							}
						}
					}
				}
				t.Logf("sweep: of %d worlds: %v", n, seen)
			})
		}
	}
}

// The reply to a write is lost and, before it can be sent again, the lock as
// well: then nobody knows whether it was done.
func TestCommitOfUnknownOutcomeMeetsTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.NTimes(3, time.Second) })
		operator := kit.Connect(t, srv)
		_, err := operator.Create(t.Context(), "/data", nil, framework.Persistent)
		require.NoError(t, err)
		for nth, fault := range []zktest.Fault{zktest.CutBefore(), zktest.CutAfter()} {
			h, err := locks.NewInterProcessMutex(c, fmt.Sprint("/m", nth)).Acquire(t.Context())
			require.NoError(t, err)
			srv.On(zktest.Match{Session: c.SessionID(), Op: "multi", Nth: 1}, fault)
			tx := h.Transaction()
			tx.Set("/data", []byte("x"), 0)
			time.AfterFunc(500*time.Millisecond, func() { _ = operator.Delete(context.Background(), h.Path(), framework.AnyVersion) })
			_, err = tx.Commit(t.Context(), framework.Idempotent())
			require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
			require.NotErrorIs(t, err, locks.ErrFenced)
			require.NotErrorIs(t, err, locks.ErrLockLost)
			require.NotErrorIs(t, err, framework.ErrNoNode)
			require.ErrorIs(t, h.Release(), locks.ErrLockLost)
		}
	})
}
