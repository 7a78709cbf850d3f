package simulation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/check"
)

// stuckAfter is how long one seed may take on the clock on the wall.
const stuckAfter = 3 * time.Minute

// process runs this program again, for seeds from, from+step, ... below to, and
// calls hear with what it says. It returns the seed that it ended in, 0 if none,
// and what it wrote.
func process(ctx context.Context, from, to, step uint64, only string, hear func(message)) (died uint64, output string, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return from, "", err
	}
	defer read.Close()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSeeds$", "-test.timeout=0", "-pipe", "-first", fmt.Sprint(from),
		"-seeds", fmt.Sprint(to-from), "-stride", fmt.Sprint(step), "-faults", only)
	// One thread, and a collector that runs seldom: what the scheduler is free
	// to do differently next time.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400")
	cmd.ExtraFiles = []*os.File{write}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		write.Close()
		return from, "", err
	}
	write.Close()
	watchdog := time.AfterFunc(stuckAfter, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	defer watchdog.Stop()
	lines := bufio.NewScanner(read)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		watchdog.Reset(stuckAfter)
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue
		}
		if died = m.Begin; m.Result != nil {
			died = 0
		}
		hear(m)
	}
	err = cmd.Wait()
	return died, tail(out.String()), err
}

// tail is the part of an output that says why it ended.
func tail(s string) string {
	const most = 4000
	for _, begin := range []string{"panic:", "fatal error:", "SIGQUIT", "--- FAIL"} {
		if i := strings.Index(s, begin); i >= 0 {
			s = s[i:]
			break
		}
	}
	return s[:min(len(s), most)]
}

// failure is a seed that went wrong.
type failure struct {
	seed       uint64
	violations []check.Violation
	output     string // of a process that died
	traceFile  string // the file that it is kept in
}

// keep writes down what happened: the next run of the seed may be another.
func keep(t *testing.T, res *result) string {
	t.Helper()
	file := filepath.Join(os.TempDir(), fmt.Sprintf("paddock-sim-%d.txt", res.Seed))
	if err := os.WriteFile(file, []byte(strings.Join(res.Trace, "\n")+"\n"), 0o600); err != nil {
		t.Error(err)
	}
	return file
}

// sweep runs many seeds in several processes.
func sweep(t *testing.T) {
	var (
		mu       sync.Mutex
		all      counts
		failures []failure
		shown    = time.Now()
	)
	end := *first + uint64(*seeds)
	hear := func(m message) {
		mu.Lock()
		defer mu.Unlock()
		if m.Result == nil {
			return
		}
		all.add(m.Result)
		if len(m.Result.Violations) > 0 {
			f := failure{seed: m.Result.Seed, violations: m.Result.Violations, traceFile: keep(t, m.Result)}
			failures = append(failures, f)
			fmt.Printf("seed %d: %v, its story is in %s\n", f.seed, f.violations[0], f.traceFile)
		}
		if time.Since(shown) >= 10*time.Second {
			shown = time.Now()
			fmt.Printf("%s  %v\n", shown.Format("15:04:05"), &all)
		}
	}
	step := uint64(*workers)
	var wg sync.WaitGroup
	for n := range step {
		wg.Go(func() {
			for from := *first + n; from < end; {
				died, output, err := process(t.Context(), from, end, step, "", hear)
				if err == nil {
					return
				}
				if died == 0 { // it failed for what it has told already
					assert.NotEmpty(t, failures, "a process ended: %v\n%s", err, output)
					return
				}
				mu.Lock()
				failures = append(failures, failure{seed: died, output: output})
				mu.Unlock()
				fmt.Printf("seed %d: the process ended: %v\n", died, err)
				from = died + step
			}
		})
	}
	wg.Wait()
	fmt.Print(all.table())
	for i, f := range failures {
		t.Errorf("seed %d (make sim SEED=%d): %v\n%s", f.seed, f.seed, f.violations, f.output)
		if i < 3 {
			shrink(t, f.seed)
		}
	}
	require.Empty(t, failures)
	require.Zero(t, all.undecided, "histories that could not be decided")
	require.Equal(t, *seeds, all.seeds)
	require.Empty(t, all.enough())
}

// shrink looks for fewer faults with which a seed still fails: it leaves out
// ever smaller parts.
func shrink(t *testing.T, seed uint64) {
	left := make([]int, len(scheduleOf(seed)))
	for i := range left {
		left[i] = i
	}
	until := time.Now().Add(time.Minute)
	for size := len(left) / 2; size > 0 && time.Now().Before(until); size /= 2 {
		for at := 0; at < len(left) && time.Now().Before(until); {
			fewer := append(append([]int(nil), left[:at]...), left[min(at+size, len(left)):]...)
			if fails(t.Context(), seed, fewer) {
				left = fewer
			} else {
				at += size
			}
		}
	}
	if !fails(t.Context(), seed, left) {
		t.Logf("seed %d does not fail each time", seed)
		return
	}
	schedule := scheduleOf(seed)
	t.Logf("seed %d still fails with %d of its %d faults: make sim SEED=%d FAULTS=%s", seed, len(left), len(schedule), seed, numbers(left))
	for _, i := range left {
		t.Logf("%4d %v", i, schedule[i])
	}
}

// fails runs a seed with some of its faults.
func fails(ctx context.Context, seed uint64, some []int) bool {
	failed := false
	died, _, _ := process(ctx, seed, seed+1, 1, numbers(some), func(m message) {
		failed = failed || m.Result != nil && len(m.Result.Violations) > 0
	})
	return failed || died != 0
}

func numbers(all []int) string {
	if len(all) == 0 {
		return "none"
	}
	words := make([]string, len(all))
	for i, n := range all {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}
