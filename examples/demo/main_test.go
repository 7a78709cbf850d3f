package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	zktest "github.com/paddock-zk/paddock/testing"
)

// asDemo makes the test binary the demo, or a worker of it.
const asDemo = "PADDOCK_DEMO_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asDemo) != "" {
		os.Exit(start(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// demoCommand is the demo on a server, or on its own if that is nil.
func demoCommand(t *testing.T, srv *zktest.Server, args ...string) (cmd *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd, out = exec.CommandContext(ctx, os.Args[0], args...), new(bytes.Buffer)
	servers := ""
	if srv != nil {
		servers = srv.ConnectString()
	}
	cmd.Env = append(os.Environ(), asDemo+"=1", playground.Variable+"="+servers)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = 10 * time.Second
	return cmd, out
}

// play runs the demo to its end.
func play(t *testing.T, args ...string) (out string, status int) {
	t.Helper()
	cmd, text := demoCommand(t, nil, args...)
	err := cmd.Run()
	t.Logf("demo %s:\n%s", strings.Join(args, " "), text)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return text.String(), exit.ExitCode()
	}
	require.NoError(t, err)
	return text.String(), 0
}

// begin starts the demo on a server and returns once all workers are connected, with the
// sessions in the order in which they came: two of the parent, then the workers'.
func begin(t *testing.T, srv *zktest.Server, args ...string) (cmd *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	cmd, out = demoCommand(t, srv, args...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	require.Eventually(t, func() bool { return len(srv.Sessions()) == 6 }, 30*time.Second, 10*time.Millisecond)
	return cmd, out
}

func TestTheTotalSurvivesAKill(t *testing.T) {
	t.Parallel()
	out, status := play(t, "-for", "3s", "-session-timeout", "1s")
	assert.Zero(t, status)
	assert.Regexp(t, `KILLED worker 1 \(SIGKILL\) while it held accounts \d and \d\n`, out)
	assert.Regexp(t, `its locks passed on after \d\.\d s\n`, out)
	assert.Contains(t, out, "worker 5 starts in its place")
	assert.Regexp(t, `locks left +0\n`, out)
	assert.Regexp(t, `total +8000 before, 8000 after\n`, out)
	assert.Contains(t, out, "BALANCED")
}

func TestWithoutLocksTheTotalBreaks(t *testing.T) {
	t.Parallel()
	out, status := play(t, "-for", "1s", "-unlocked")
	assert.Equal(t, 1, status)
	assert.Contains(t, out, "BROKEN: ")
	assert.NotContains(t, out, "BALANCED")
}

func TestASignalEndsItTidily(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	cmd, out := begin(t, srv, "-for", "1m", "-unlocked=false", "-session-timeout", "10s")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	assert.Contains(t, out.String(), "interrupted")
	assert.Contains(t, out.String(), "total       8000 before, 8000 after")

	var tree bytes.Buffer
	require.NoError(t, srv.Dump(&tree))
	assert.NotContains(t, tree.String(), "paddock", "left behind")
	assert.Empty(t, srv.Sessions())
}

func TestWorkersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	cmd, _ := begin(t, srv, "-for", "1m", "-session-timeout", "40s")
	sessions := srv.Sessions()
	require.NoError(t, cmd.Process.Kill())
	// They end their sessions, which would otherwise last for longer than this.
	assert.Eventually(t, func() bool {
		return !slices.ContainsFunc(srv.Sessions(), func(s zktest.Session) bool { return s.ID >= sessions[2].ID })
	}, 20*time.Second, 10*time.Millisecond)
	_ = cmd.Wait()
}

func TestBadFlags(t *testing.T) {
	for _, args := range []string{"-for 0s", "-for soon", "-workers 0", "-session-timeout 1ms", "-sessions 1", "please"} {
		t.Run(args, func(t *testing.T) {
			out, status := play(t, strings.Fields(args)...)
			assert.Equal(t, 2, status)
			assert.Contains(t, out, "Usage of demo")
			for _, word := range strings.Fields(args) {
				assert.Contains(t, out, strings.TrimPrefix(word, "-"), "it names what was wrong")
			}
		})
	}
}
