//go:build realzk

package robustness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/recipes/locks"
)

var crowdFor = flag.Duration("crowd", 20*time.Second, "how long processes crowd one mutex")

// holdUntilKilled takes a lock, says so, and holds it.
func holdUntilKilled(ctx context.Context, args []string) error {
	c, err := framework.Connect(ctx, framework.Config{ConnectString: args[0], SessionTimeout: sessionTimeout})
	if err != nil {
		return err
	}
	if _, err := locks.NewInterProcessMutex(c, args[1]).Acquire(ctx); err != nil {
		return err
	}
	fmt.Println("holds", c.SessionTimeout())
	<-ctx.Done()
	return ctx.Err()
}

// The lock of a process that is killed passes on within its session timeout and
// two ticks.
func TestProcessKilled(t *testing.T) {
	e := realzk.StartT(t, realzk.Options{Servers: 3, Tick: tick})
	c := kit.Connect(t, e, short)
	for range 3 {
		p := start(t, "hold", e.ConnectString(), "/locks/l")
		granted, err := time.ParseDuration(p.says(t, "holds"))
		require.NoError(t, err)
		got := make(chan error, 1)
		go func() {
			h, err := locks.NewInterProcessMutex(c, "/locks/l").Acquire(t.Context())
			if err == nil {
				err = h.Release()
			}
			got <- err
		}()
		require.NoError(t, p.Process.Kill())
		killed := time.Now()
		require.NoError(t, <-got)
		passed := time.Since(killed)
		t.Logf("passed on %v after the kill, session timeout %v", passed.Round(time.Millisecond), granted)
		assert.LessOrEqual(t, passed, granted+2*tick)
	}
}

// crowdOne has many goroutines of one process take one mutex for a while. The
// holder makes a file, which must not be there yet.
func crowdOne(ctx context.Context, args []string) error {
	for i, name := range []string{"connect string", "goroutines", "duration", "witness"} {
		if i >= len(args) {
			return errors.New("no " + name)
		}
	}
	goroutines, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	witness := args[3]
	c, err := framework.Connect(ctx, framework.Config{ConnectString: args[0], SessionTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	var rounds atomic.Int64
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	until := time.Now().Add(d)
	for range goroutines {
		wg.Go(func() {
			m := locks.NewInterProcessMutex(c, "/locks/crowd")
			for time.Now().Before(until) && ctx.Err() == nil {
				err := locks.Do(ctx, m, func(context.Context) error {
					f, err := os.OpenFile(witness, os.O_CREATE|os.O_EXCL, 0o600)
					if err != nil {
						return fmt.Errorf("two inside: %w", err)
					}
					rounds.Add(1)
					return errors.Join(f.Close(), os.Remove(witness))
				})
				if err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	if failed == nil {
		failed = c.Close()
	}
	if failed == nil {
		fmt.Println("rounds", rounds.Load())
	}
	return failed
}

func TestManyProcesses(t *testing.T) {
	const processes, goroutines = 4, 64
	e := realzk.StartT(t, realzk.Options{Tick: tick})
	witness := filepath.Join(t.TempDir(), "inside")
	var all []*process
	for range processes {
		all = append(all, start(t, "crowd", e.ConnectString(), strconv.Itoa(goroutines), crowdFor.String(), witness))
	}
	total := 0
	for i, p := range all {
		n, err := strconv.Atoi(p.says(t, "rounds"))
		require.NoError(t, err)
		assert.Positive(t, n)
		t.Logf("process %d: %d rounds", i, n)
		total += n
	}
	t.Logf("%d goroutines in each of %d processes: %d rounds in %v, never two inside", goroutines, processes, total, *crowdFor)
	c := kit.Connect(t, e, short)
	names, _, err := c.Children(t.Context(), "/locks/crowd")
	if !errors.Is(err, framework.ErrNoNode) {
		require.NoError(t, err)
	}
	assert.Empty(t, names, "nothing is left under the lock")
	n, err := e.WatchCount(t.Context())
	require.NoError(t, err)
	assert.Zero(t, n, "no watch is left")
}
