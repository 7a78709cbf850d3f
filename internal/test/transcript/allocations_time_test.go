//go:build !race

package transcript

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// cycle takes a lock and gives it back.
type cycle struct {
	name string
	run  func(ctx context.Context) error
}

// What clients and the in-process server allocate in a cycle. In virtual time
// without latency no clock moves, so nothing else is sent meanwhile. The counts are
// the same from run to run, give or take one or two, as when a pool is emptied.
func TestAllocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Watchdog(0)) // which notes requests
		var clients [2]*client
		for i := range clients {
			c, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString(), DialContext: srv.DialContext, DefaultData: []byte("x")})
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			clients[i] = &client{Client: c}
		}
		var got []allocations
		for _, c := range cycles(t, clients[0], clients[1]) {
			run := func() {
				if err := c.run(t.Context()); err != nil {
					require.NoError(t, err, c.name)
				}
			}
			for range 300 { // numbers of one digit, for instance, are cheaper
				run()
			}
			got = append(got, allocations{int(testing.AllocsPerRun(200, run)), c.name})
		}
		compare(t, got)
	})
}

// cycles are those of a, with b beside it.
func cycles(t *testing.T, a, b *client) []cycle {
	t.Helper()
	plain := func(name string, lock locks.Lock) cycle {
		return cycle{name, func(ctx context.Context) error {
			h, err := lock.Acquire(ctx)
			if err != nil {
				return err
			}
			return h.Release()
		}}
	}
	// handed is a cycle in which one waits for the other, and its own.
	handed := func(name string, first, second locks.Lock) cycle {
		return cycle{name, func(ctx context.Context) error {
			h, err := first.Acquire(ctx)
			if err != nil {
				return err
			}
			done := make(chan error, 1)
			go func() { done <- plain("", second).run(ctx) }()
			synctest.Wait()
			if err := h.Release(); err != nil {
				return err
			}
			return <-done
		}}
	}
	// under is a cycle under a hold.
	under := func(hold *locks.Hold, lock locks.Lock) error {
		h, err := lock.Acquire(hold.Context())
		if err != nil {
			return err
		}
		return h.Release()
	}
	held, err := at(a, "/held").Acquire(t.Context())
	require.NoError(t, err)
	again := at(a, "/held")
	free, taken, written := at(a, "/free"), at(b, "/held"), at(a, "/written")
	rw := readWrite(a)
	return []cycle{
		plain("mutex", mutex.lock(a)),
		plain("read side", rw.ReadLock()),
		plain("write side", rw.WriteLock()),
		{"write side, and the read side under it", func(ctx context.Context) error {
			h, err := rw.WriteLock().Acquire(ctx)
			if err != nil {
				return err
			}
			if err := under(h, rw.ReadLock()); err != nil {
				return err
			}
			return h.Release()
		}},
		plain("semaphore", semaphore(a, 3)),
		plain("semaphore, two leases", several{semaphore(a, 3), 2}),
		plain("semaphore mutex", semaphoreMutex.lock(a)),
		plain("MultiLock of three", multiLock.lock(a)),
		plain("MultiLock of three, ordered", orderedMultiLock.lock(a)),
		plain("MultiLock of a mutex and a semaphore mutex", mixedMultiLock.lock(a)),
		{"mutex, under a hold of it", func(context.Context) error { return under(held, again) }},
		{"mutex, tried once", func(ctx context.Context) error {
			h, err := free.TryAcquire(ctx, 0)
			if err != nil {
				return err
			}
			return h.Release()
		}},
		{"mutex, tried once in vain", func(ctx context.Context) error {
			if _, err := taken.TryAcquire(ctx, 0); err == nil {
				return fmt.Errorf("got what is held")
			}
			return nil
		}},
		{"mutex, with CommitAndRelease", func(ctx context.Context) error {
			h, err := written.Acquire(ctx)
			if err != nil {
				return err
			}
			_, err = h.Transaction().CommitAndRelease(ctx)
			return err
		}},
		handed("mutex, and once more for who waits in the same client", at(a, "/local"), at(a, "/local")),
		handed("mutex, and once more for who waits in another client", at(a, "/remote"), at(b, "/remote")),
		handed("MultiLock of three, and once more for who waits in another client", multiLock.lock(a), multiLock.lock(b)),
	}
}

// allocations are those of one cycle.
type allocations struct {
	n    int
	name string
}

// tolerance is by how much they may differ.
func tolerance(n int) int { return n / 100 }

// compare compares with the golden file.
func compare(t *testing.T, got []allocations) {
	t.Helper()
	const name = "allocations.txt"
	var b strings.Builder
	for _, one := range got {
		fmt.Fprintf(&b, "%5d  %s\n", one.n, one.name)
	}
	if *update {
		golden(t, name, b.String())
		return
	}
	file, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	want := make(map[string]int)
	for line := range strings.Lines(string(file)) {
		var n int
		_, err := fmt.Sscan(line, &n)
		require.NoError(t, err)
		want[strings.TrimSpace(line)[len(fmt.Sprint(n))+2:]] = n
	}
	assert.Len(t, want, len(got), "the cycles in %s", name)
	for _, one := range got {
		n, known := want[one.name]
		assert.True(t, known, "%s has no %q", name, one.name)
		assert.InDelta(t, n, one.n, float64(tolerance(n)), "%s, with %s", one.name, runtime.Version())
	}
}
