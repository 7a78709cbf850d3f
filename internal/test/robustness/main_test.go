//go:build realzk

package robustness

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework"
)

// roleVar makes the test binary another process of a test.
const roleVar = "PADDOCK_ENDURANCE_ROLE"

var roles = map[string]func(ctx context.Context, args []string) error{
	"crowd": crowdOne,
	"hold":  holdUntilKilled,
	"many":  takeMany,
	"nest":  nest,
	"use":   use,
}

// older is for runs with processes of two versions: `make break OLD=commit`.
var older = flag.String("old", "", "test binary of another commit, which every second process runs; what a role is told must mean the same there")

var started atomic.Int64

// program is what the next process runs.
func program() string {
	if *older != "" && started.Add(1)%2 == 0 {
		return *older
	}
	return os.Args[0]
}

// orders are what the parent tells a role, line by line.
var orders = make(chan string, 10)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		ctx, cancel := context.WithCancel(context.Background())
		go func() { // the parent is gone when stdin ends
			for s := bufio.NewScanner(os.Stdin); s.Scan(); {
				orders <- s.Text()
			}
			cancel()
		}()
		if err := roles[role](ctx, os.Args[1:]); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// process is another process of a test.
type process struct {
	*exec.Cmd
	in    io.Writer
	lines chan string
}

// longestLine bounds what a process says at once.
const longestLine = 64 << 20

// start runs a role.
func start(t *testing.T, role string, args ...string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(), args...)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	return run(t, cmd)
}

// run runs a program; its output arrives line by line.
func run(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{Cmd: cmd, in: in, lines: make(chan string, 1000)}
	go func() {
		defer close(p.lines)
		s := bufio.NewScanner(out)
		s.Buffer(nil, longestLine)
		for s.Scan() {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		for range p.lines {
		}
		_ = cmd.Wait()
	})
	return p
}

// says waits for a line that begins with a word and returns what follows.
func (p *process) says(t *testing.T, word string) string {
	t.Helper()
	limit := time.NewTimer(5 * time.Minute)
	defer limit.Stop()
	for {
		select {
		case line, ok := <-p.lines:
			require.True(t, ok, "it ended without saying %q", word)
			if rest, found := strings.CutPrefix(line, word); found {
				return strings.TrimSpace(rest)
			}
			require.NotContains(t, line, "failed:")
		case <-limit.C:
			require.FailNow(t, "it did not say "+word)
		}
	}
}

// tell gives a role an order.
func (p *process) tell(t *testing.T, order string) {
	t.Helper()
	_, err := fmt.Fprintln(p.in, order)
	require.NoError(t, err)
}

const sessionTimeout = 2 * time.Second

// short is the change of a configuration that makes sessions short.
func short(cfg *framework.Config) { cfg.SessionTimeout = sessionTimeout }
