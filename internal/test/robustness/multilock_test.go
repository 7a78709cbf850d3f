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
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/recipes/locks"
)

var multiRounds = flag.Int("multi-rounds", 2000, "how often processes take ten locks together")

const manyLocks = 10

// takeMany takes ten locks together a number of times, named in one order or the
// other. The holder makes a file for each lock, which must not be there yet.
func takeMany(ctx context.Context, args []string) error {
	if len(args) < 4 {
		return errors.New("want connect string, order, rounds, witness")
	}
	rounds, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	c, err := framework.Connect(ctx, framework.Config{ConnectString: args[0], SessionTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	var lockSet []locks.Lock
	for i := range manyLocks {
		if args[1] == "reverse" {
			i = manyLocks - 1 - i
		}
		lockSet = append(lockSet, locks.NewInterProcessMutex(c, fmt.Sprintf("/locks/many-%d", i)))
	}
	many := locks.NewInterProcessMultiLock(lockSet...)
	var longest time.Duration
	for range rounds {
		began := time.Now()
		if err := locks.Do(ctx, many, func(context.Context) error {
			longest = max(longest, time.Since(began))
			return witnessAll(args[3])
		}); err != nil {
			return err
		}
	}
	if err := c.Close(); err != nil {
		return err
	}
	fmt.Println("longest", longest)
	return nil
}

func witnessAll(dir string) (err error) {
	for i := range manyLocks {
		f, e := os.OpenFile(filepath.Join(dir, strconv.Itoa(i)), os.O_CREATE|os.O_EXCL, 0o600)
		if e != nil {
			return fmt.Errorf("two inside: %w", e)
		}
		defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	}
	return nil
}

// MultiLocks over the same ten locks, named in opposite orders by several
// processes, never wait for each other in a circle.
func TestOppositeMultiLocks(t *testing.T) {
	e := realzk.StartT(t, realzk.Options{Servers: 3, Tick: tick})
	witness := t.TempDir()
	began := time.Now()
	var all []*process
	for i := range 4 {
		order := []string{"straight", "reverse"}[i%2]
		all = append(all, start(t, "many", e.ConnectString(), order, strconv.Itoa(*multiRounds/4), witness))
	}
	for i, p := range all {
		longest, err := time.ParseDuration(p.says(t, "longest"))
		require.NoError(t, err)
		t.Logf("process %d waited %v at most", i, longest.Round(time.Millisecond))
		assert.Less(t, longest, 5*time.Second)
	}
	t.Logf("%d rounds of %d locks in opposite orders by 4 processes in %v, never two inside", *multiRounds, manyLocks, time.Since(began).Round(time.Millisecond))
	c := kit.Connect(t, e, short)
	for i := range manyLocks {
		names, _, err := c.Children(t.Context(), fmt.Sprintf("/locks/many-%d", i))
		if !errors.Is(err, framework.ErrNoNode) {
			require.NoError(t, err)
		}
		assert.Empty(t, names, "nothing is left")
	}
	n, err := e.WatchCount(t.Context())
	require.NoError(t, err)
	assert.Zero(t, n, "no watch is left")
}
