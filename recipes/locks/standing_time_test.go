package locks_test

import (
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

// A MultiLock that gave up waiting says what it had and what it wanted, whatever kinds of
// members and steps it has.
func TestWaitErrorOfAMultiLockSaysWhatItHad(t *testing.T) {
	for name, tc := range map[string]struct {
		lock       func(p, q *framework.Client) locks.Lock
		wait       time.Duration
		has, wants []string
		text       string
	}{
		"in one step": {
			func(p, _ *framework.Client) locks.Lock {
				return locks.NewInterProcessMultiLock(kit.MutexAt("/a")(p), kit.MutexAt("/b")(p), kit.MutexAt("/c")(p))
			}, time.Second, []string{"/a", "/c"}, []string{"/b"}, "; has /a, /c, wants /b)",
		},
		"in order": {
			func(p, _ *framework.Client) locks.Lock {
				return locks.NewInterProcessMultiLock(kit.MutexAt("/a")(p), kit.MutexAt("/b")(p), kit.MutexAt("/c")(p)).Ordered()
			}, time.Second, []string{"/a"}, []string{"/b", "/c"}, "; has /a, wants /b, /c)",
		},
		"of two clients": {
			func(p, q *framework.Client) locks.Lock {
				return locks.NewInterProcessMultiLock(kit.MutexAt("/a")(q), kit.MutexAt("/b")(p), kit.MutexAt("/c")(q))
			}, time.Second, []string{"/a"}, []string{"/b", "/c"}, "; has /a, wants /b, /c)",
		},
		"semaphores before": {
			func(p, _ *framework.Client) locks.Lock {
				return locks.NewInterProcessMultiLock(locks.NewInterProcessSemaphore(p, "/a", 2), locks.NewInterProcessSemaphoreMutex(p, "/a1"), kit.MutexAt("/b")(p), kit.MutexAt("/c")(p))
			}, time.Second, []string{"/a", "/a1", "/c"}, []string{"/b"}, "; has /a, /a1, /c, wants /b)",
		},
		"without waiting": {
			func(p, _ *framework.Client) locks.Lock {
				return locks.NewInterProcessMultiLock(kit.MutexAt("/a")(p), kit.MutexAt("/b")(p))
			}, 0, nil, []string{"/a", "/b"}, "",
		},
		"a single lock": {func(p, _ *framework.Client) locks.Lock { return kit.MutexAt("/b")(p) }, time.Second, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				held := kit.Hold(t, kit.MutexAt("/b")(kit.Connect(t, srv)))
				p, q := kit.Connect(t, srv), kit.Connect(t, srv)
				_, err := tc.lock(p, q).TryAcquire(t.Context(), tc.wait)
				require.ErrorIs(t, err, locks.ErrNotAcquired)
				told := new(locks.WaitError)
				require.ErrorAs(t, err, &told)
				assert.Equal(t, "/b", told.Lock)
				assert.Equal(t, held.Path(), told.Holder)
				assert.Equal(t, tc.has, told.Has)
				assert.Equal(t, tc.wants, told.Wants)
				if tc.text == "" {
					assert.NotContains(t, err.Error(), "wants")
				} else {
					assert.Contains(t, err.Error(), tc.text)
				}
				require.NoError(t, held.Release())
			})
		})
	}
}

// A MultiLock that waits shows in each of its queues what it has and what it wants, and no
// queue in which it does not wait any more.
func TestWaitingMultiLockShowsWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		logged, logs := kit.Logged(zapcore.InfoLevel)
		c, other := kit.Connect(t, srv, logged), kit.Connect(t, srv)
		b, d := kit.Hold(t, kit.MutexAt("/b")(other)), kit.Hold(t, kit.MutexAt("/d")(other))
		var set []locks.Lock
		for _, path := range []string{"/a", "/b", "/c", "/d"} {
			set = append(set, kit.MutexAt(path)(c))
		}
		waits := kit.Acquire(t, locks.NewInterProcessMultiLock(set...))
		shown := func(paths, has, wants []string) {
			t.Helper()
			time.Sleep(time.Second)
			var at []string
			for _, w := range c.Waiters() {
				at = append(at, w.Lock.Path)
				assert.Equal(t, has, w.Has)
				assert.Equal(t, wants, w.Wants)
			}
			assert.ElementsMatch(t, paths, at)
		}
		shown([]string{"/b", "/d"}, []string{"/a", "/c"}, []string{"/b", "/d"})
		require.NoError(t, b.Release())
		shown([]string{"/d"}, []string{"/a", "/b", "/c"}, []string{"/d"})
		time.Sleep(10 * time.Second)
		lines := aboutLocks(logs, zapcore.InfoLevel)
		require.Len(t, lines, 1)
		assert.Equal(t, "/d", lines[0]["path"])
		assert.Equal(t, d.Path(), lines[0]["behind"])
		assert.Equal(t, []any{"/a", "/b", "/c"}, lines[0]["has"])
		assert.Equal(t, []any{"/d"}, lines[0]["wants"])

		// An owner that takes the locks in the reverse order comes behind it. It does so, too.
		theirs := kit.AcquireWith(d.Context(), t, kit.MutexAt("/c")(other))
		shown([]string{"/d"}, nil, []string{"/a", "/b", "/c", "/d"})
		require.NoError(t, theirs.Soon().Release())
		require.NoError(t, d.Release())
		require.NoError(t, waits.Soon().Release())
		assert.Empty(t, c.Waiters())
	})
}

// A MultiLock that gives way over and over says so once, and to whom.
func TestGivingWayOverAndOverIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
		logged, logs := kit.Logged(zapcore.InfoLevel)
		c := kit.Connect(t, srv, logged)
		held := kit.Hold(t, kit.MutexAt("/b")(kit.Connect(t, srv)))
		waits := kit.Acquire(t, locks.NewInterProcessMultiLock(kit.MutexAt("/a")(c), kit.MutexAt("/b")(c)))
		time.Sleep(time.Second)
		var to []string
		for range 2 * 20 { // owners of /b in the eyes of the MultiLock, which waits for longer with each
			other := kit.Acquire(t, kit.MutexAt("/a")(kit.Connect(t, srv)))
			hold := other.Soon()
			to = append(to, hold.Path())
			time.Sleep(10 * time.Millisecond)
			require.NoError(t, hold.Release())
		}
		lines := logs.FilterMessageSnippet("giving way over and over").All()
		require.Len(t, lines, 1)
		fields := lines[0].ContextMap()
		assert.Equal(t, "/a", fields["path"])
		assert.EqualValues(t, 20, fields["times"])
		assert.Contains(t, to, fields["to"])
		assert.Contains(t, fields["wants"], "/b")
		require.NoError(t, held.Release())
		require.NoError(t, waits.Soon().Release())
	})
}
