package main

import (
	"bytes"
	"context"
	"errors"
	"log"
	"os"
	"os/exec"
	"path/filepath"
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
		main()
		return
	}
	_ = os.Setenv(asDemo, "1") // for the processes that the tests start
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
	cmd.Env = append(os.Environ(), playground.Variable+"="+servers)
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

// begin starts the demo on a server and returns once all workers are at work. One that is
// still connecting would leave a session. The first two sessions are the parent's, which takes locks as well.
func begin(t *testing.T, srv *zktest.Server, args ...string) (cmd *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	cmd, out = demoCommand(t, srv, args...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	at := make(map[int64]bool) // workers that have had a lock
	require.Eventually(t, func() bool {
		for i, s := range srv.Sessions() {
			if i >= 2 && len(srv.Ephemerals(s.ID)) > 0 {
				at[s.ID] = true
			}
		}
		return len(at) >= workers
	}, 30*time.Second, 10*time.Millisecond)
	return cmd, out
}

func TestTheTotalSurvivesAKill(t *testing.T) {
	t.Parallel()
	// The parent is this process, so that a goroutine that it leaves is found.
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer file.Close()
	*length = 12 * time.Second // a quarter until the kill, and then a session and the end of a tick
	err = playground.Run(t.Context(), "demo", "", log.New(file, "", 0), run, zktest.Tick(sessionTimeout/4))
	text, readErr := os.ReadFile(file.Name())
	require.NoError(t, readErr)
	out := string(text)
	t.Log(out)
	require.NoError(t, err)
	assert.Regexp(t, `A worker KILLS ITSELF \(SIGKILL\) while it holds the locks of accounts \d and \d\.\n`, out)
	assert.Regexp(t, `It is dead \(signal: killed\)\. Its session has ended, and its locks passed on after \d+\.\d s\.\n`, out)
	assert.Regexp(t, `transfers +[1-9]\d*\n`, out)
	assert.Regexp(t, `total +8000 before, 8000 after\n`, out)
	assert.Contains(t, out, "BALANCED")
}

// A second of it would do, but on a busy machine no worker may have begun by then.
func TestWithoutLocksTheTotalBreaks(t *testing.T) {
	t.Parallel()
	srv := lasting(t)
	cmd, text := demoCommand(t, srv, "-for", "1m", "-unlocked")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	require.Eventually(t, func() bool { return srv.Requests()["multi"] >= 500 }, 30*time.Second, 10*time.Millisecond, "transfers")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	out := text.String()
	t.Log(out)
	assert.Equal(t, 1, cmd.ProcessState.ExitCode())
	assert.Contains(t, out, "BROKEN: ")
	assert.NotContains(t, out, "KILLS ITSELF")
	assert.NotContains(t, out, "BALANCED")
}

// lasting is a server on which a session lasts for long unless it is closed.
func lasting(t *testing.T) *zktest.Server {
	t.Helper()
	return zktest.Start(t, zktest.SessionTimeouts(40*time.Second, time.Minute))
}

func TestASignalEndsItTidily(t *testing.T) {
	t.Parallel()
	srv := lasting(t)
	cmd, out := begin(t, srv, "-for", "1m")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), out)
	assert.Regexp(t, `total +8000 before, 8000 after\n`, out.String())

	var tree bytes.Buffer
	require.NoError(t, srv.Dump(&tree))
	assert.NotContains(t, tree.String(), "paddock", "left behind")
	assert.Empty(t, srv.Sessions())
}

func TestWorkersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	srv := lasting(t)
	cmd, _ := begin(t, srv, "-for", "1m")
	sessions := srv.Sessions()
	require.NoError(t, cmd.Process.Kill())
	// They end their sessions, which would otherwise last for longer than this.
	assert.Eventually(t, func() bool {
		return !slices.ContainsFunc(srv.Sessions(), func(s zktest.Session) bool { return s.ID >= sessions[2].ID })
	}, 20*time.Second, 10*time.Millisecond)
	_ = cmd.Wait()
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"-for soon", "-sessions 1"} {
		out, status := play(t, strings.Fields(args)...)
		assert.Equal(t, 2, status)
		assert.Contains(t, out, "Usage of ")
		assert.Contains(t, out, strings.Fields(args)[0], "it names what was wrong")
	}
}
