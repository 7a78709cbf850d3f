package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// asDemo makes the test binary the demo; the demo itself makes it a worker.
const asDemo = "PADDOCK_DEMO_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asDemo) != "" || os.Getenv(assignmentVariable) != "" {
		os.Exit(start(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// demoCommand is the demo on a server, or on its own if that is nil.
func demoCommand(t *testing.T, srv *zktest.Server, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	servers := ""
	if srv != nil {
		servers = srv.ConnectString()
	}
	cmd.Env = append(os.Environ(), asDemo+"=1", playground.Variable+"="+servers)
	return cmd
}

// play runs the demo to its end.
func play(t *testing.T, args ...string) (out string, status int) {
	t.Helper()
	text, err := demoCommand(t, nil, args...).CombinedOutput()
	t.Logf("demo %s:\n%s", strings.Join(args, " "), text)
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
		status = exit.ExitCode()
	}
	return string(text), status
}

// begin starts the demo on a server and returns once money is moving; all that
// it writes is in out once it has ended.
func begin(t *testing.T, srv *zktest.Server, args ...string) (cmd *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	cmd, out = demoCommand(t, srv, args...), new(bytes.Buffer)
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	moving, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		told := false
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			out.WriteString(lines.Text() + "\n")
			if !told && strings.Contains(lines.Text(), "/s   total ") {
				told = true
				close(moving)
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-over
		t.Logf("demo %s:\n%s", strings.Join(args, " "), out)
	})
	select {
	case <-moving:
	case <-over:
		require.Fail(t, "the demo ended before it began")
	}
	return cmd, out
}

func TestTheTotalSurvivesAKill(t *testing.T) {
	t.Parallel()
	out, status := play(t, "-for", "3s", "-session-timeout", "1s")
	assert.Zero(t, status)
	assert.Regexp(t, `KILLED worker \d \(SIGKILL\) while it held accounts \d and \d\n`, out)
	assert.Regexp(t, `its locks passed on after \d\.\d s, account \d to \w+`, out)
	assert.Contains(t, out, "worker 5 starts in its place")
	assert.Regexp(t, `processes +4 ended cleanly, worker \d was killed`, out)
	assert.Regexp(t, `locks left +0\n`, out)
	assert.Regexp(t, `accounts +8 of 8 `, out)
	assert.Regexp(t, `total +8000 before, 8000 after\n`, out)
	assert.Contains(t, out, "BALANCED")
}

func TestWithoutLocksTheTotalBreaks(t *testing.T) {
	t.Parallel()
	out, status := play(t, "-for", "1s", "-unlocked")
	assert.Equal(t, 1, status)
	assert.Contains(t, out, "BROKEN: ")
	assert.NotContains(t, out, "BALANCED")
	assert.NotContains(t, out, "FAILED", "it is the total that broke, and nothing else")
}

func TestASignalEndsItTidily(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	cmd, out := begin(t, srv, "-for", "1m")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	assert.Contains(t, out.String(), "interrupted")
	assert.Contains(t, out.String(), "BALANCED")

	var tree bytes.Buffer
	require.NoError(t, srv.Dump(&tree))
	assert.NotContains(t, tree.String(), "paddock", "left behind")
	assert.Empty(t, srv.Sessions())
}

func TestWorkersDieWithTheirParent(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	cmd, _ := begin(t, srv, "-for", "1m", "-session-timeout", "40s")
	sessions := srv.Sessions()
	require.Len(t, sessions, 6, "two of the parent and four workers, in the order in which they came")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	// They end their sessions, which would otherwise last for longer than this.
	assert.Eventually(t, func() bool {
		return !slices.ContainsFunc(srv.Sessions(), func(s zktest.Session) bool { return s.ID >= sessions[2].ID })
	}, 20*time.Second, 10*time.Millisecond)
}

// A worker may have something to report when its parent has died already and it
// does not know yet.
func TestAWorkerEndsItsSessionThoughNobodyReadsItsReports(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	client, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, client.Close()) }()
	accounts := &bank{client: client, accounts: 2}
	require.NoError(t, accounts.open(t.Context()))
	text, err := json.Marshal(assignment{
		Number: 1, ConnectString: srv.ConnectString(), SessionTimeout: 40 * time.Second, Accounts: 2, Seed: 1,
	})
	require.NoError(t, err)
	worker := demoCommand(t, srv)
	worker.Env = append(worker.Env, assignmentVariable+"="+string(text))
	orders, err := worker.StdinPipe()
	require.NoError(t, err)
	reports, err := worker.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	require.NoError(t, reports.Close())
	require.Eventually(t, func() bool {
		a, err := accounts.read(t.Context(), 1)
		return err == nil && a.version >= 3
	}, 20*time.Second, 10*time.Millisecond, "it goes on, unheard")
	require.NoError(t, orders.Close())
	var exit *exec.ExitError
	require.ErrorAs(t, worker.Wait(), &exit)
	assert.Equal(t, 1, exit.ExitCode(), "it should end by itself: %v", exit)
	assert.Len(t, srv.Sessions(), 1, "ours")
}

func TestBadFlags(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"-for 0s", "-for is 0s: it must be above 0"},
		{"-for -1s", "-for is -1s: it must be above 0"},
		{"-for soon", `invalid value "soon" for flag -for`},
		{"-workers 0", "-workers is 0: it must be from 1 to 32"},
		{"-workers 33", "-workers is 33: it must be from 1 to 32"},
		{"-accounts 1", "-accounts is 1: it must be from 2 to 100"},
		{"-accounts 101", "-accounts is 101: it must be from 2 to 100"},
		{"-session-timeout 1ms", "-session-timeout is 1ms: it must be from 100ms to 1m"},
		{"-sessions 1", "flag provided but not defined: -sessions"},
		{"please", `unexpected argument "please"`},
	} {
		t.Run(tc.args, func(t *testing.T) {
			var errs strings.Builder
			_, err := parse(strings.Fields(tc.args), &errs)
			require.Error(t, err)
			assert.Contains(t, errs.String(), tc.want)
			assert.Contains(t, errs.String(), "Usage of demo")
		})
	}
}
