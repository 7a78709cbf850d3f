//go:build realzk

package robustness

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// What a call asks for takes the server long, and thousands of nodes are made and
// deleted. The session of 4 s lives on, and with it another hold of the client.
func TestBurstsWithinTheSession(t *testing.T) {
	e := realzk.StartT(t, realzk.Options{Tick: time.Second, JVMArgs: []string{"-Xmx512m"}})
	c := kit.Connect(t, e, func(cfg *framework.Config) { cfg.SessionTimeout = 4 * time.Second })
	require.Equal(t, 4*time.Second, c.SessionTimeout())
	other, err := locks.NewInterProcessMutex(c, "/elsewhere").Acquire(t.Context())
	require.NoError(t, err)
	var mu sync.Mutex
	var states []listeners.State
	c.States().Listen(func(s listeners.State) {
		mu.Lock()
		defer mu.Unlock()
		states = append(states, s)
	})
	steady := func(what string, began time.Time) {
		t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
		require.NoError(t, other.Err(), what)
	}

	const n = 20_000
	crowd := kit.Connect(t, e, func(cfg *framework.Config) { cfg.SessionTimeout = 20 * time.Second })
	began := time.Now()
	fillQueue(t, crowd, "/q", "x-lock-", n)
	steady("20,000 nodes made", began)
	began = time.Now()
	all, err := locks.NewInterProcessMutex(c, "/q").Participants(t.Context())
	require.NoError(t, err)
	assert.Len(t, all, n)
	steady("Participants", began)
	require.NoError(t, crowd.Close())

	leases := locks.NewInterProcessSemaphore(c, "/a/b/s", 12_000, locks.ReleaseWait(time.Minute))
	began = time.Now()
	h, err := leases.AcquireN(t.Context(), 12_000)
	require.NoError(t, err)
	steady("AcquireN(12000)", began)
	<-time.After(time.Second) // watches are set
	began = time.Now()
	require.NoError(t, h.Release())
	steady("Release", began)
	require.NoError(t, other.Release())
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, []listeners.State{listeners.Connected}, states)
}

func fillQueue(t *testing.T, c *framework.Client, queue, name string, n int) {
	t.Helper()
	require.NoError(t, c.EnsurePath(t.Context(), queue))
	for ; n > 0; n -= 500 {
		tx := c.Transaction()
		for range min(n, 500) {
			tx.Create(queue+"/"+name, []byte{}, framework.EphemeralSequential)
		}
		_, err := tx.Commit(t.Context())
		require.NoError(t, err)
	}
}

// A lock is deleted with its parent while several wait for it. They queue again.
func TestLockDeletedWithItsParent(t *testing.T) {
	e := realzk.StartT(t, realzk.Options{Tick: tick})
	for name, lock := range map[string]func(*framework.Client) locks.Lock{
		"mutex": func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/l/m") },
		"read": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessReadWriteLock(c, "/l/rw").ReadLock()
		},
		"write": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessReadWriteLock(c, "/l/rw").WriteLock()
		},
		"semaphore":       func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/l/s", 1) },
		"semaphore mutex": func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/l/sm") },
		"multi": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l/a"), locks.NewInterProcessMutex(c, "/l/b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			operator := kit.Connect(t, e, short)
			holder := lock
			if name == "read" {
				holder = func(c *framework.Client) locks.Lock {
					return locks.NewInterProcessReadWriteLock(c, "/l/rw").WriteLock()
				}
			}
			_, err := holder(operator).Acquire(t.Context())
			require.NoError(t, err)
			var all sync.WaitGroup
			var clients []*framework.Client
			for range 2 {
				c := kit.Connect(t, e, short)
				clients = append(clients, c)
				for range 2 {
					all.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						err := locks.Do(ctx, lock(c), func(context.Context) error { return nil })
						// The second waiter got it with the first event of the deletion, and lost it with the next.
						if errors.Is(err, locks.ErrLockLost) {
							err = locks.Do(ctx, lock(c), func(context.Context) error { return nil })
						}
						assert.NoError(t, err)
					})
				}
			}
			waits := 2 // of each client
			if name == "multi" {
				waits *= 2 // in both queues
			}
			kit.Until(t, "all wait", func() bool {
				return !slices.ContainsFunc(clients, func(c *framework.Client) bool { return len(c.Waiters()) < waits })
			})
			tx := operator.Transaction()
			for _, path := range below(t, operator, "/l") {
				tx.Delete(path, framework.AnyVersion)
			}
			_, err = tx.Commit(t.Context())
			require.NoError(t, err)
			all.Wait()
		})
	}
}

// below lists a node and all that are below it, children before their parents.
func below(t *testing.T, c *framework.Client, path string) (all []string) {
	t.Helper()
	children, _, err := c.Children(t.Context(), path)
	require.NoError(t, err)
	for _, child := range children {
		all = append(all, below(t, c, path+"/"+child)...)
	}
	return append(all, path)
}

// The reply to a creation is lost while the list of the queue is longer than the
// client takes: the node goes nevertheless, though the session goes on.
func TestSessionsOwnNodesAreFound(t *testing.T) {
	e := realzk.StartT(t, realzk.Options{Tick: tick})
	c := kit.Connect(t, e, short, func(cfg *framework.Config) { cfg.MaxReply = 4 << 10 })
	crowd := kit.Connect(t, e, short)
	fillQueue(t, crowd, "/l", strings.Repeat("x", 40)+"-other-", 200)
	for range 20 { // the wait ends while the request is on its way, or soon after
		for _, wait := range []time.Duration{time.Microsecond, 100 * time.Microsecond, 300 * time.Microsecond, time.Millisecond} {
			_, err := locks.NewInterProcessMutex(c, "/l").TryAcquire(t.Context(), wait)
			require.Error(t, err)
		}
	}
	require.Eventually(t, func() bool {
		left, _, err := crowd.Children(t.Context(), "/l")
		return err == nil && len(left) == 200
	}, 10*time.Second, 50*time.Millisecond, "a node is left")
}

// One client takes 100,000 locks that nobody has had before, 256 at a time. Nothing is left
// of them but their parents, which the server removes, and the client keeps no memory.
func TestManyDifferentLocks(t *testing.T) {
	const n, together = 100_000, 256
	e := realzk.StartT(t, realzk.Options{Tick: time.Second, JVMArgs: []string{"-Xmx1g"}})
	c := kit.Connect(t, e, func(cfg *framework.Config) { cfg.SessionTimeout = 20 * time.Second })
	var next atomic.Int64
	take := func(upto int64) {
		var all sync.WaitGroup
		for range together {
			all.Go(func() {
				for i := next.Add(1); i <= upto; i = next.Add(1) {
					h, err := locks.NewInterProcessMutex(c, fmt.Sprintf("/orders/%d", i), locks.ReleaseWait(time.Minute)).Acquire(t.Context())
					if !assert.NoError(t, err) {
						return
					}
					assert.NoError(t, h.Release())
				}
			})
		}
		all.Wait()
	}
	inUse := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // the first lets pools go
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc + m.StackInuse)
	}
	take(2 * together)
	before, began := inUse(), time.Now()
	next.Store(2 * together)
	take(n)
	took, grown := time.Since(began), inUse()-before
	s := c.Stats()
	t.Logf("%d locks in %v, %d batches of %.1f, %d undone; %d KiB more memory", n, took.Round(time.Millisecond), s.Batches,
		float64(s.Batched)/float64(s.Batches), s.BatchesUndone, grown>>10)
	assert.Less(t, grown, 4<<20)
	left, err := e.Ephemerals(t.Context())
	require.NoError(t, err)
	assert.Empty(t, left)
	watches, err := e.WatchCount(t.Context())
	require.NoError(t, err)
	assert.Zero(t, watches)
}
