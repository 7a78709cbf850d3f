package locks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// slow is a server that needs its time for each request of a kind. All that a
// session has sent waits behind it, heartbeats too.
func slow(srv *zktest.Server, session int64, needs time.Duration, ops ...string) {
	for _, op := range ops {
		srv.On(zktest.Match{Session: session, Op: op}, zktest.Delay(needs))
	}
}

// endedWhenGiven lets contexts be looked at when the servers have the first request
// that deletes nodes of a session. It returns how often they were.
func endedWhenGiven(t *testing.T, srv *zktest.Server, session int64, all []context.Context) (looked *atomic.Int32) {
	t.Helper()
	synctest.Wait() // what acquiring has left to be done is on its way
	looked = new(atomic.Int32)
	giving := func(r zktest.Request) bool { return r.Op == "delete" || r.Op == "multi" || r.Op == "closeSession" }
	srv.On(zktest.Match{Session: session, Func: giving, Nth: 1}, zktest.Call(func(r zktest.Request) {
		looked.Add(1)
		assertEnded(t, all, r.Op)
	}))
	return looked
}

// answers are what can become of a transaction that gives a lock back.
var answers = map[string]struct {
	fault zktest.Fault // of its request
	want  error
	keeps bool // the lock is held as before
}{
	"done":    {fault: zktest.Call(func(zktest.Request) {})},
	"refused": {fault: zktest.Call(func(zktest.Request) {}), want: framework.ErrNoNode, keeps: true},
	"unknown": {fault: zktest.CutAfter(), want: framework.ErrOutcomeUnknown},
	"lost":    {fault: zktest.CutBefore(), want: framework.ErrOutcomeUnknown},
}

// kinds are all locks at one path. Those of one kind stand in one queue.
var kinds = map[string]struct {
	kind string
	lock func(*framework.Client) locks.Lock
	java string // what Curator's lock of that kind makes, below the path
}{
	"mutex": {"mutex", func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/x/y") }, "_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-lock-"},
	"read": {"read/write", func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, "/x/y").ReadLock()
	}, "_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-__READ__"},
	"write": {"read/write", func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, "/x/y").WriteLock()
	}, "_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-__WRIT__"},
	"semaphore":       {"semaphore", func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/x/y", 3) }, "leases/_c_d5d8a4a8-2a4b-4c7e-9a0b-5a1c3f0d8b11-lease-"},
	"semaphore mutex": {"semaphore", func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/x/y") }, "leases/lease-"},
	"mutex in a MultiLock": {"mutex", func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/x/y"), locks.NewInterProcessMutex(c, "/z"))
	}, ""},
	"semaphore mutex in a MultiLock": {"semaphore", func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessSemaphoreMutex(c, "/x/y"), locks.NewInterProcessMutex(c, "/z"))
	}, ""},
}

// refused uses a lock whose path is another's.
func refused(t *testing.T, srv *zktest.Server, c *framework.Client, lock locks.Lock) {
	t.Helper()
	for range 2 {
		_, err := lock.Acquire(t.Context())
		require.ErrorIs(t, err, locks.ErrInvalidLock)
		require.ErrorContains(t, err, "/x/y")
		require.ErrorContains(t, err, "another kind")
		_, err = lock.TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, locks.ErrInvalidLock)
	}
	time.Sleep(time.Minute)
	assert.Empty(t, srv.Ephemerals(c.SessionID()))
}

// within sets the session timeout, and states the servers' tick if it is not 0.
func within(timeout, tick time.Duration) func(*framework.Config) {
	return func(cfg *framework.Config) { cfg.SessionTimeout, cfg.ServerTick = timeout, tick }
}

// exclusively are the locks that have a local queue.
var exclusively = map[string]func(c *framework.Client, opts ...locks.Option) locks.Lock{
	"mutex": func(c *framework.Client, opts ...locks.Option) locks.Lock {
		return locks.NewInterProcessMutex(c, "/l", opts...)
	},
	"write side": func(c *framework.Client, opts ...locks.Option) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, "/l", opts...).WriteLock()
	},
}

// after does something at a moment of half a millisecond.
func after(moment int, fn func()) { time.AfterFunc(time.Duration(moment)*time.Millisecond/2, fn) }

// The worst that is allowed: ticks of half of the session timeout, and sessions that
// end exactly one timeout after the leader has heard of them last.
const (
	marginTimeout = 4 * time.Second
	marginTick    = marginTimeout / 2
)

// busy reads and writes now and then, until the hold ends.
func busy(ctx context.Context, c *framework.Client, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	for ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(ctx, marginTimeout/4)
		if random.IntN(3) == 0 {
			_, _ = c.Create(ctx, "/x", nil, framework.Persistent, framework.OrSet())
		} else {
			_, _, _ = c.Exists(ctx, "/x")
		}
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(random.Int64N(int64(marginTimeout / 4)))):
		}
	}
}

// d is what a message takes each way: a round trip is 2d, exactly.
const d = kit.Latency

// kept keeps what is logged, as text.
type kept struct {
	zapcore.Core
	mu    *sync.Mutex
	lines *[]string
}

func (k kept) Enabled(zapcore.Level) bool { return true }

func (k kept) With([]zapcore.Field) zapcore.Core { return k }

func (k kept) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, k)
}

func (k kept) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	*k.lines = append(*k.lines, fmt.Sprint(e.Level, e.Message, enc.Fields))
	return nil
}

// shown are contexts of a hold: its own, one that Bind made, and a child of each.
func shown(t *testing.T, h *locks.Hold) (all []context.Context) {
	t.Helper()
	bound, cancel := h.Bind(t.Context())
	t.Cleanup(cancel)
	for _, ctx := range []context.Context{h.Context(), bound} {
		child, cancel := context.WithCancel(ctx)
		t.Cleanup(cancel)
		all = append(all, ctx, child)
	}
	return all
}

// assertEnded says of contexts that have not ended which they are.
func assertEnded(t *testing.T, all []context.Context, what string) {
	t.Helper()
	for i, ctx := range all {
		assert.Error(t, ctx.Err(), "%s: %s", what, []string{"own", "child of own", "bound", "child of bound"}[i%4])
	}
}
