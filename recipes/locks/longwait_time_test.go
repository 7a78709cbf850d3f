package locks_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// aboutLocks are the fields of the lines of a level that have a "path".
func aboutLocks(logs *observer.ObservedLogs, level zapcore.Level) (all []map[string]any) {
	for _, entry := range logs.FilterLevelExact(level).All() {
		if fields := entry.ContextMap(); fields["path"] != nil {
			all = append(all, fields)
		}
	}
	return all
}

// waitingFor are all locks that a client can wait for while it holds them itself.
var waitingFor = map[string]struct {
	path          string
	holder, other func(*framework.Client) locks.Lock
}{
	"mutex": {"/l", kit.MutexAt("/l"), kit.MutexAt("/l")},
	"no local queue": {"/l", kit.MutexAt("/l"), func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMutex(c, "/l", locks.LocalHandovers(0))
	}},
	"other data": {"/l", kit.MutexAt("/l"), func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMutex(c, "/l", locks.NodeData([]byte("x")))
	}},
	"read behind write": {"/l", kit.WriteAt("/l"), kit.ReadAt("/l")},
	"write behind read": {"/l", kit.ReadAt("/l"), kit.WriteAt("/l")},
	"semaphore mutex": {"/l", func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/l") },
		func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/l") }},
	"semaphore": {"/l", func(c *framework.Client) locks.Lock { return kit.Leases(locks.NewInterProcessSemaphore(c, "/l", 3), 2) },
		func(c *framework.Client) locks.Lock { return kit.Leases(locks.NewInterProcessSemaphore(c, "/l", 3), 2) }},
	"member of a MultiLock": {"/l", kit.MutexAt("/l"), func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMultiLock(kit.MutexAt("/l")(c), kit.MutexAt("/m")(c))
	}},
}

// A wait for a lock that the same client holds is logged after a while, and again
// each time when it has lasted twice as long.
func TestWaitingForALockThatTheClientHoldsIsLogged(t *testing.T) {
	t.Parallel()
	for name, tc := range waitingFor {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				logged, logs := kit.Logged(zapcore.InfoLevel)
				c := kit.Connect(t, srv, logged)
				h, err := tc.holder(c).Acquire(t.Context())
				require.NoError(t, err)
				time.Sleep(5 * time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
				defer cancel()
				_, err = tc.other(c).Acquire(ctx) // with the wrong context
				require.ErrorIs(t, err, context.DeadlineExceeded)
				var at []time.Duration
				for _, line := range aboutLocks(logs, zapcore.WarnLevel) {
					assert.Equal(t, tc.path, line["path"])
					waited := line["waited"].(time.Duration)
					assert.InDelta(t, waited+5*time.Second, line["held"], float64(time.Second))
					assert.EqualValues(t, 1, line["waiters"])
					at = append(at, waited.Round(time.Second))
				}
				assert.Equal(t, []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second}, at)
				assert.Empty(t, aboutLocks(logs, zapcore.InfoLevel))
				text := logs.FilterLevelExact(zapcore.WarnLevel).All()[0].Message
				assert.Contains(t, text, "hold.Context()")
				require.NoError(t, h.Release())
				logs.TakeAll()
				time.Sleep(time.Hour)
				assert.Empty(t, logs.TakeAll())
			})
		})
	}
}

// A lock that is held for long is logged once, also if nobody waits for it: its
// Release may have been forgotten.
func TestLongHoldIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		logged, logs := kit.Logged(zapcore.InfoLevel)
		c := kit.Connect(t, srv, logged)
		var holds []*locks.Hold
		for _, path := range []string{"/a", "/b", "/c"} {
			h, err := locks.NewInterProcessMutex(c, path).Acquire(t.Context())
			require.NoError(t, err)
			holds = append(holds, h)
			time.Sleep(time.Minute)
		}
		for range 600 { // others come and go
			require.NoError(t, locks.Do(t.Context(), locks.NewInterProcessMutex(c, "/d"), func(context.Context) error { return nil }))
			time.Sleep(6 * time.Second)
		}
		seen := 0
		for _, entry := range logs.FilterLevelExact(zapcore.InfoLevel).FilterMessageSnippet("held for long").All() {
			fields := entry.ContextMap()
			assert.Contains(t, holds[seen].Path(), strings.SplitAfter(fields["oldest"].(string), "/_c_")[0])
			assert.GreaterOrEqual(t, fields["held"], 10*time.Minute)
			assert.Less(t, fields["held"], 21*time.Minute)
			seen += int(fields["locks"].(int64))
		}
		assert.Equal(t, len(holds), seen)
		for _, h := range holds {
			require.NoError(t, h.Release())
		}
	})
}

// nodesOf are the nodes of a hold or its members.
func nodesOf(h *locks.Hold) (nodes []string) {
	for _, m := range append(h.Members(), h) {
		nodes = append(nodes, m.Path())
	}
	return nodes
}

// The line about a long wait names who has the lock, and not who else waits for it.
func TestLongWaitNamesTheHolder(t *testing.T) {
	for name, lock := range map[string]kit.LockOf{
		"mutex": kit.MutexAt("/l"), "write": kit.WriteAt("/l"),
		"semaphore mutex": func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/l") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				logged, logs := kit.Logged(zapcore.InfoLevel)
				hold := kit.Hold(t, lock(kit.Connect(t, srv)))
				kit.Queue(t, lock(kit.Connect(t, srv)))
				synctest.Wait()
				c := kit.Connect(t, srv, logged)
				kit.Queue(t, lock(c))
				synctest.Wait()
				behind := c.Waiters()[0].Behind
				time.Sleep(time.Minute)
				line := aboutLocks(logs, zapcore.InfoLevel)[0]
				if name == "semaphore mutex" {
					assert.Contains(t, line["behind"], "/l/locks/", "who is served")
					return
				}
				assert.Equal(t, hold.Path(), line["behind"])
				assert.NotEqual(t, hold.Path(), behind)
			})
		})
	}
}

// To wait is what a candidate is for.
func TestCandidatesThatWaitAreNotLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		logged, logs := kit.Logged(zapcore.InfoLevel)
		other, c := kit.Connect(t, srv), kit.Connect(t, srv, logged)
		for _, candidate := range []func(c *framework.Client) locks.Lock{
			func(c *framework.Client) locks.Lock { return elects{leader.NewLatch(c, "/latch")} },
			func(c *framework.Client) locks.Lock { return elects{leader.NewSelector(c, "/selector")} },
		} {
			kit.Hold(t, candidate(other))
			kit.Queue(t, candidate(c))
			kit.Queue(t, candidate(other)) // also behind a term of its own client
		}
		synctest.Wait()
		assert.Len(t, c.Waiters(), 2, "they are shown")
		time.Sleep(time.Hour)
		assert.Empty(t, aboutLocks(logs, zapcore.InfoLevel))
		kit.Hold(t, locks.NewInterProcessMutex(other, "/l"))
		kit.Queue(t, locks.NewInterProcessMutex(c, "/l"))
		time.Sleep(time.Minute)
		assert.Len(t, aboutLocks(logs, zapcore.InfoLevel), 1, "other waits are logged as before")
	})
}

// A long wait for another client is logged once, however many goroutines wait.
func TestLongWaitIsLoggedOnce(t *testing.T) {
	t.Parallel()
	for name, lock := range kit.Locks {
		if name == "downgrade" {
			continue // as write
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				logged, logs := kit.Logged(zapcore.InfoLevel)
				c := kit.Connect(t, srv, logged)
				other := kit.Connect(t, srv)
				h, err := lock(other).Acquire(t.Context())
				require.NoError(t, err)
				if name == "read" {
					require.NoError(t, h.Release())
					h, err = kit.Locks["write"](other).Acquire(t.Context())
					require.NoError(t, err)
				}
				const n = 5
				for range n {
					go func() { _ = locks.Do(t.Context(), lock(c), func(context.Context) error { return nil }) }()
				}
				time.Sleep(9 * time.Second)
				assert.Empty(t, aboutLocks(logs, zapcore.InfoLevel))
				time.Sleep(time.Minute)
				lines := aboutLocks(logs, zapcore.InfoLevel)
				paths := map[string]bool{}
				for _, line := range lines {
					if behind, _ := line["behind"].(string); !strings.Contains(behind, "/locks/") { // else it is served by now
						assert.Contains(t, nodesOf(h), behind, "who has it")
					}
					assert.False(t, paths[line["path"].(string)], "twice")
					paths[line["path"].(string)] = true
					assert.EqualValues(t, n, line["waiters"])
				}
				assert.NotEmpty(t, lines)
				require.NoError(t, h.Release())
				time.Sleep(time.Minute)
				assert.Empty(t, aboutLocks(logs, zapcore.WarnLevel))
				assert.Len(t, aboutLocks(logs, zapcore.InfoLevel), len(lines))
			})
		})
	}
}

// Short waits are not logged, even if there is always one, as in a busy queue.
func TestShortWaitsAreNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		logged, logs := kit.Logged(zapcore.InfoLevel)
		c := kit.Connect(t, srv, logged)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := kit.InLine(t, 5, func(int) locks.Lock { return locks.NewInterProcessMutex(c, "/l") }, func(_ int, h *locks.Hold) {})
		done.Wait()
		for range 3 {
			go func() {
				for ctx.Err() == nil {
					_ = locks.Do(ctx, kit.MutexAt("/l")(c), func(context.Context) error { time.Sleep(time.Second); return nil })
				}
			}()
		}
		<-ctx.Done()
		time.Sleep(10 * time.Second)
		assert.Empty(t, aboutLocks(logs, zapcore.WarnLevel))
		assert.Empty(t, aboutLocks(logs, zapcore.InfoLevel))
	})
}
