//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// running is a process of the command.
type running struct {
	*exec.Cmd
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Scanner
	errs bytes.Buffer
}

// endsAtOnce is an option of the race detector. Else each process waits for a second at its end.
const endsAtOnce = "atexit_sleep_ms=0"

// start runs the command as a process of its own.
func (s *shell) start(t *testing.T, args ...string) *running {
	t.Helper()
	return s.startProgram(t, append([]string{s.self(t)}, args...)...)
}

func (*shell) self(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return self
}

// startProgram runs a program that runs the command.
func (s *shell) startProgram(t *testing.T, args ...string) *running {
	t.Helper()
	return s.startWith(t, func(*exec.Cmd) {}, args...)
}

// startWith runs a program with something changed.
func (s *shell) startWith(t *testing.T, change func(*exec.Cmd), args ...string) *running {
	t.Helper()
	p := &running{Cmd: exec.Command(args[0], args[1:]...), t: t} //nolint:noctx // it is killed below
	p.Env = append(os.Environ(), asCommand+"=1", "PADDOCK_SERVERS="+s.ConnectString(), "GORACE="+os.Getenv("GORACE")+" "+endsAtOnce)
	p.Stderr = &p.errs
	var err error
	p.in, err = p.StdinPipe()
	require.NoError(t, err)
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	p.out = bufio.NewScanner(out)
	change(p.Cmd)
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// line is the next line that it prints.
func (p *running) line() string {
	p.t.Helper()
	require.True(p.t, p.out.Scan(), "it printed nothing more: %s", &p.errs)
	return p.out.Text()
}

// ends waits for the end, and returns the exit code and the rest of what it printed.
func (p *running) ends() (code int, rest []string) {
	p.t.Helper()
	for p.out.Scan() {
		rest = append(rest, p.out.Text())
	}
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) {
		require.NoError(p.t, err)
	}
	return p.ProcessState.ExitCode(), rest
}

func (s *shell) process(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	p := s.start(t, args...)
	code, lines := p.ends()
	return code, strings.Join(lines, "\n"), p.errs.String()
}

// alive is whether a process runs: a zombie does not.
func alive(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	require.NoError(t, err)
	if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n)); err == nil {
		return !bytes.Contains(state, []byte(") Z "))
	}
	return syscall.Kill(n, 0) == nil
}

func diesSoon(t *testing.T, pid string) {
	t.Helper()
	kit.Until(t, "the end of process "+pid, func() bool { return !alive(t, pid) })
}

func TestLockRunsACommand(t *testing.T) {
	s := newShell(t)
	client := s.client(t)
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"success":         {[]string{"/l", "--", "true"}, 0},
		"free, no wait":   {[]string{"--wait", "0s", "/l", "--", "true"}, 0},
		"failure":         {[]string{"/l", "--", "sh", "-c", "exit 7"}, 7},
		"signal":          {[]string{"/l", "--", "sh", "-c", "kill -KILL $$"}, 128 + 9},
		"not found":       {[]string{"/l", "--", "no-such-command"}, exitNoCommand},
		"not executable":  {[]string{"/l", "--", "/etc/passwd"}, exitNotExecutable},
		"no command":      {[]string{"/l"}, exitUsage},
		"nothing":         {[]string{"/l", "--"}, exitUsage},
		"no path":         {[]string{"--", "true"}, exitUsage},
		"bad path":        {[]string{"l", "--", "true"}, exitUsage},
		"both sides":      {[]string{"--read", "--write", "/l", "--", "true"}, exitUsage},
		"a long grace":    {[]string{"--grace", "1h", "/l", "--", "true"}, exitUsage},
		"a negative wait": {[]string{"--wait", "-1s", "/l", "--", "true"}, exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errs := s.process(t, append([]string{"lock"}, tc.args...)...)
			assert.Equal(t, tc.code, code, errs)
			if names, _, err := client.Children(t.Context(), "/l"); err == nil {
				assert.Empty(t, names, "the lock is given back")
			}
		})
	}
}

func TestLockTellsTheCommandOfTheLock(t *testing.T) {
	s := newShell(t)
	code, out, errs := s.process(t, "lock", "--id", "me", "/b", "/a", "--", "sh", "-c", `echo "$PADDOCK_TOKEN"; echo "$PADDOCK_LOCKS"`)
	require.Equal(t, 0, code, errs)
	lines := strings.Split(out, "\n")
	require.Len(t, lines, 3)
	assert.Equal(t, []string{lines[0] + " /b", lines[0] + " /a"}, lines[1:], "one transaction has made both nodes")
	code, out, errs = s.process(t, "lock", "--json", "--read", "/rw", "--", "sh", "-c", `echo "[$PADDOCK_TOKEN]"`)
	require.Equal(t, 0, code, errs)
	assert.Equal(t, "[]", out, "a read side has no token")
	e := decode[lockEvent](t, errs)
	assert.Equal(t, "acquired", e.Event)
	assert.Equal(t, []string{"/rw"}, e.Paths)
	assert.Len(t, e.Nodes, 1)
}

// A command under two nested locks, or with a stale value in the environment, finds each
// variable once, with the value of its own lock.
func TestLockEnvironmentOnce(t *testing.T) {
	s := newShell(t)
	self, err := os.Executable()
	require.NoError(t, err)
	for name, args := range map[string][]string{
		"a stale value": {"lock", "/stale", "--", "env"},
		"nested":        {"lock", "/outer", "--", self, "lock", "/stale", "--", "env"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PADDOCK_TOKEN", "7")
			t.Setenv("PADDOCK_LOCKS", "7 /other")
			code, out, errs := s.process(t, args...)
			require.Equal(t, 0, code, errs)
			var token, lines []string
			for line := range strings.Lines(out) {
				line = strings.TrimSuffix(line, "\n")
				if value, is := strings.CutPrefix(line, "PADDOCK_TOKEN="); is {
					token = append(token, value)
				}
				if value, is := strings.CutPrefix(line, "PADDOCK_LOCKS="); is {
					lines = append(lines, value)
				}
			}
			require.Len(t, token, 1)
			assert.NotEqual(t, "7", token[0])
			assert.Equal(t, []string{token[0] + " /stale"}, lines)
		})
	}
}

// Below another lock, locks are taken although a MultiLock waits for the outer one and is first in a queue of the
// inner ones. It cannot see that by itself, since the two locks are of two processes.
func TestLockBelowAnotherBesideAMultiLock(t *testing.T) {
	s := newShell(t)
	client := s.client(t)
	kit.Hold(t, locks.NewInterProcessMutex(client, "/l/a"))
	s.wait(t, kit.MultiAt("/l")(s.client(t)), "/l/b", 1)
	t.Setenv("PADDOCK_LOCKS", "7 /l/a")
	code, _, errs := s.process(t, "lock", "--wait", "20s", "/l/b", "/l/c", "--", "true")
	assert.Equal(t, 0, code, errs)
}

// Each line has the token of its own lock. A lease has none.
func TestLockTellsTheTokenOfEachLock(t *testing.T) {
	s := newShell(t)
	const show = `echo "$PADDOCK_LOCKS"`
	for name, flags := range map[string][]string{"mutexes": nil, "write sides": {"--write"}, "semaphores": {"--semaphore", "1"}} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := s.process(t, append(append([]string{"lock", "--json"}, flags...), "/b"+name, "/a"+name, "--", "sh", "-c", show)...)
			require.Equal(t, 0, code, errs)
			nodes := decode[lockEvent](t, errs).Nodes
			require.Len(t, nodes, 2, "in the order of their paths")
			tokens := make(map[string]int64)
			for line := range strings.Lines(out) {
				token, path, _ := strings.Cut(strings.TrimSpace(line), " ")
				n, err := strconv.ParseInt(token, 10, 64)
				require.NoError(t, err)
				assert.Equal(t, name == "semaphores", n == 0, path)
				tokens[path] = n
			}
			assert.Len(t, tokens, 2)
			assert.Equal(t, tokens["/a"+name], tokens["/b"+name], "they are taken at once")
		})
	}
}

func TestLockThatSomebodyElseHas(t *testing.T) {
	s := newShell(t)
	kit.Hold(t, locks.NewInterProcessMutex(s.client(t), "/l"))
	for _, flag := range [][]string{{"--try"}, {"--wait", "50ms"}, {"--wait", "0s"}, {"--wait=0"}, {"--timeout", "500ms"}, {"--timeout", "500ms", "--wait", "1h"}} {
		code, out, errs := s.process(t, append(append([]string{"lock"}, flag...), "/l", "--", "echo", "ran")...)
		assert.Equal(t, exitBusy, code, errs)
		assert.Empty(t, out)
	}
}

// mayBe skips a test of a signal that is ignored in this process, as below nohup, and so in
// those that it starts.
func mayBe(t *testing.T, s syscall.Signal) {
	t.Helper()
	if signal.Ignored(s) {
		t.Skip("it is ignored here")
	}
}

// A signal that ends a process takes one that waits out of the queue at once. Its exit code
// says which signal it was.
func TestLockSignalsWhileWaiting(t *testing.T) {
	s := newShell(t)
	kit.Hold(t, locks.NewInterProcessMutex(s.client(t), "/l"))
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			mayBe(t, sig)
			p := s.start(t, "lock", "/l", "--", "echo", "ran")
			require.NoError(t, s.WaitChildren(t.Context(), "/l", 2))
			require.NoError(t, p.Process.Signal(sig))
			code, out := p.ends()
			assert.Equal(t, 128+int(sig), code)
			assert.Empty(t, out)
			assert.Empty(t, p.errs.String(), "who has sent the signal knows")
			assert.Len(t, kit.Children(t, s.client(t), "/l"), 1, "its node stays in the queue")
		})
	}
}

// Each of these ends the command with the signal's own status, and the lock is free then.
func TestLockSignalsWhileTheCommandRuns(t *testing.T) {
	s := newShell(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1} {
		t.Run(sig.String(), func(t *testing.T) {
			mayBe(t, sig)
			p := s.start(t, "lock", "/l", "--", "sh", "-c", `echo ready; exec sleep 100`)
			assert.Equal(t, "ready", p.line())
			require.NoError(t, p.Process.Signal(sig))
			code, _ := p.ends()
			assert.Equal(t, 128+int(sig), code)
			assert.Empty(t, kit.Children(t, s.client(t), "/l"))
		})
	}
}

// What was ignored when paddock was started, as by nohup and for the background jobs of
// scripts, is ignored by paddock and by its command.
func TestLockUnderNohup(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			h := kit.Hold(t, locks.NewInterProcessMutex(s.client(t), "/l"))
			p := s.startProgram(t, "sh", "-c", `trap '' `+name+`; exec "$0" lock /l -- sh -c 'echo ready; read line; echo $line'`, s.self(t))
			require.NoError(t, s.WaitChildren(t.Context(), "/l", 2))
			require.NoError(t, p.Process.Signal(sig), "while it waits")
			require.NoError(t, h.Release())
			assert.Equal(t, "ready", p.line())
			require.NoError(t, p.Process.Signal(sig), "while the command runs")
			_, err := p.in.Write([]byte("went on\n"))
			require.NoError(t, err)
			assert.Equal(t, "went on", p.line())
			code, _ := p.ends()
			assert.Equal(t, 0, code)
		})
	}
}

// At a terminal, a person who waits is told for whom.
func TestLockTellsWhomItWaitsFor(t *testing.T) {
	s := newShell(t)
	client := s.client(t)
	kit.Hold(t, locks.NewInterProcessMutex(client, "/l", locks.NodeData([]byte("report-7 \x1b"))))
	errs, w := io.Pipe()
	inv := &invocation{sys: system{err: w}}
	stop := inv.tellWait(t.Context(), client, []string{"/free", "/l"}, time.Millisecond)
	line, err := bufio.NewReader(errs).ReadString('\n')
	require.NoError(t, err)
	assert.Regexp(t, `^paddock: waiting for /l, which report-7 \\x1b has had for \S+s\n$`, line)
	stop()
	stop = inv.tellWait(t.Context(), client, []string{"/l"}, time.Hour)
	stop()

	p := s.start(t, "lock", "--wait", "1500ms", "/l", "--", "true")
	code, _ := p.ends()
	assert.Equal(t, exitBusy, code)
	assert.NotContains(t, p.errs.String(), "has had", "not a terminal")
}

// With the chroot in its path as well, a lock would keep nobody out.
func TestLockWithThePathOfALog(t *testing.T) {
	s := newShell(t)
	require.NoError(t, s.client(t).EnsurePath(t.Context(), "/shop"))
	code, _, errs := s.process(t, "--servers", s.ConnectString()+"/shop", "lock", "/shop/orders", "--", "true")
	assert.Equal(t, 0, code)
	assert.Contains(t, errs, "below the chroot /shop: try /orders, unless /shop/orders below it is meant")
	code, _, errs = s.process(t, "--servers", s.ConnectString()+"/shop", "lock", "/orders", "--", "true")
	assert.Equal(t, 0, code)
	assert.Empty(t, errs)
}

func TestWatchForATime(t *testing.T) {
	s := newShell(t)
	kit.Hold(t, locks.NewInterProcessMutex(s.client(t), "/l"))
	began := time.Now()
	assert.Contains(t, s.ok(t, "watch", "--timeout", "1s", "/l"), "holds")
	assert.GreaterOrEqual(t, time.Since(began), time.Second)
}

func TestWatchThatIsInterrupted(t *testing.T) {
	mayBe(t, syscall.SIGINT)
	s := newShell(t)
	kit.Hold(t, locks.NewInterProcessMutex(s.client(t), "/l"))
	p := s.start(t, "watch", "/l")
	assert.Contains(t, p.line(), "holds")
	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	code, _ := p.ends()
	assert.Equal(t, exitInterrupted, code)
	assert.Empty(t, p.errs.String())
}

// A command must not run beside the leader of an election, or beside what another kind of
// lock guards.
func TestLockBesideAnotherKind(t *testing.T) {
	s := newShell(t)
	client := s.client(t)
	term, err := leader.NewLatch(client, "/latch").Await(t.Context())
	require.NoError(t, err)
	kit.Hold(t, locks.NewInterProcessReadWriteLock(client, "/rw").ReadLock())
	kit.Hold(t, locks.NewInterProcessSemaphore(client, "/s", 2))
	for path, says := range map[string]string{"/latch": "another kind, a latch", "/rw": "another kind, a read/write lock", "/s": "another kind, a semaphore", "/s/locks": "another kind, a semaphore"} {
		for _, flag := range []string{"--try", "--wait=1m"} {
			code, out, errs := s.process(t, "lock", flag, path, "--", "echo", "ran")
			assert.Equal(t, exitNoLock, code, path)
			assert.Empty(t, out, path)
			assert.Contains(t, errs, says)
		}
	}
	require.NoError(t, term.Err())
}

func TestLockPassesSignalsOn(t *testing.T) {
	s := newShell(t)
	p := s.start(t, "lock", "/l", "--", "sh", "-c", `trap 'echo usr1' USR1; trap 'echo term; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
	assert.Equal(t, "ready", p.line())
	require.NoError(t, p.Process.Signal(syscall.SIGUSR1))
	assert.Equal(t, "usr1", p.line())
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	code, rest := p.ends()
	assert.Equal(t, 3, code)
	assert.Equal(t, []string{"term"}, rest)
}

// Who reads what --json prints may have gone. The lock is given back at once, and a command
// whose lock is lost has its grace.
func TestLockThatNobodyHears(t *testing.T) {
	s := newShell(t)
	start := func(command string) (*running, *os.File) {
		events, w, err := os.Pipe()
		require.NoError(t, err)
		t.Cleanup(func() { _ = events.Close() })
		p := s.startWith(t, func(c *exec.Cmd) { c.Stderr = w }, s.self(t), "lock", "--json", "--grace", "2s", "/l", "--", "sh", "-c", command)
		require.NoError(t, w.Close())
		return p, events
	}
	hold := kit.Hold(t, locks.NewInterProcessMutex(s.client(t), "/l"))
	p, events := start(`echo ran`)
	require.NoError(t, s.WaitChildren(t.Context(), "/l", 2))
	require.NoError(t, errors.Join(events.Close(), hold.Release()))
	code, rest := p.ends()
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, rest)
	assert.Empty(t, kit.Children(t, s.client(t), "/l"))

	p, events = start(`exec 2>/dev/null; trap 'sleep 0.1; echo term; exit 0' TERM; echo ready; while :; do sleep 0.01; done`)
	assert.Equal(t, "ready", p.line())
	require.NoError(t, events.Close())
	s.ok(t, "break", "--yes", "/l")
	code, rest = p.ends()
	assert.Equal(t, exitLost, code)
	assert.Equal(t, []string{"term"}, rest)
}

// What the command leaves behind in its group ends before the lock is given back.
func TestLockLeavesNothingBehind(t *testing.T) {
	s := newShell(t)
	p := s.start(t, "lock", "--grace", "50ms", "/l", "--", "sh", "-c", `trap "" TERM; sleep 100 >/dev/null & echo $!`)
	left := p.line()
	code, _ := p.ends()
	assert.Equal(t, 0, code)
	assert.False(t, alive(t, left))
}

// A holder that is killed takes the command with it, and what that has started.
func TestLockWhoseProcessIsKilled(t *testing.T) {
	s := newShell(t)
	p := s.start(t, "lock", "/l", "--", "sh", "-c", `sleep 100 >/dev/null & echo $!; echo $$; wait`)
	grandchild, child := p.line(), p.line()
	require.NoError(t, p.Process.Kill())
	_ = p.Wait()
	diesSoon(t, child)
	diesSoon(t, grandchild)
}

// A lock that is broken ends the command: with SIGTERM, and with SIGKILL after the grace.
func TestLockThatIsBroken(t *testing.T) {
	s := newShell(t)
	p := s.start(t, "lock", "--json", "--grace", "1s", "/l", "--", "sh", "-c", `trap 'echo term' TERM; echo ready; while :; do sleep 0.01; done`)
	assert.Equal(t, "ready", p.line())
	s.ok(t, "break", "--yes", "/l")
	code, rest := p.ends()
	assert.Equal(t, exitLost, code)
	assert.Equal(t, []string{"term"}, rest)
	events := strings.Split(strings.TrimSpace(p.errs.String()), "\n")
	require.GreaterOrEqual(t, len(events), 2)
	e := decode[lockEvent](t, events[1])
	assert.Equal(t, "lost", e.Event)
	assert.NotEmpty(t, e.Error)
}

// ticks runs a command that writes the time into a file again and again, and returns that.
func ticks(t *testing.T, s *shell, args ...string) (*running, func() []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ticks")
	p := s.start(t, append(append([]string{"lock"}, args...), "/l", "--", "sh", "-c",
		`trap 'echo term >>"$0"' TERM; echo $$; while :; do date +%s.%N >>"$0"; sleep 0.01; done`, file)...)
	return p, func() []string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

// last is when a command ticked last.
func last(t *testing.T, lines []string) time.Time {
	t.Helper()
	for i := len(lines) - 1; i >= 0; i-- {
		if sec, nano, is := strings.Cut(lines[i], "."); is {
			s, err := strconv.ParseInt(sec, 10, 64)
			require.NoError(t, err)
			n, err := strconv.ParseInt(nano, 10, 64)
			require.NoError(t, err)
			return time.Unix(s, n)
		}
	}
	t.Fatal("it never ticked")
	return time.Time{}
}

// Without a server, and with a holder that stands still, the command is dead before the
// next owner can have the lock.
func TestCommandIsDeadBeforeTheNextOwner(t *testing.T) {
	for name, tc := range map[string]struct {
		timeout, grace string
		cut            func(*shell, *running)
	}{
		// The grace is as long as a shell on a busy machine may take to run its trap.
		"no server":           {"6s", "800ms", func(s *shell, _ *running) { s.Stall(onlySession(t, s), zktest.BothWays) }},
		"the process stopped": {"2s", "200ms", func(_ *shell, p *running) { _ = p.Process.Signal(syscall.SIGSTOP) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, zktest.SessionTimeouts(time.Second, time.Minute))
			p, ticked := ticks(t, s, "--session-timeout", tc.timeout, "--grace", tc.grace)
			child := p.line()
			time.Sleep(300 * time.Millisecond) //nolint:forbidigo // a process is watched
			tc.cut(s, p)
			h, err := locks.NewInterProcessMutex(s.client(t), "/l").Acquire(t.Context())
			require.NoError(t, err)
			granted := time.Now()
			assert.False(t, alive(t, child))
			lines := ticked()
			t.Logf("the last tick came %v before the next grant", granted.Sub(last(t, lines)).Round(time.Millisecond))
			assert.True(t, last(t, lines).Before(granted))
			if name == "no server" {
				assert.Contains(t, lines, "term", "it was told before")
			}
			require.NoError(t, h.Release())
			_ = p.Process.Signal(syscall.SIGCONT)
			_ = p.Process.Kill()
			_ = p.Wait()
		})
	}
}

// onlySession is the session of the one client that there is.
func onlySession(t *testing.T, s *shell) int64 {
	t.Helper()
	all := s.Sessions()
	require.Len(t, all, 1)
	return all[0].ID
}

func TestGuard(t *testing.T) {
	for name, tc := range map[string]struct {
		lines        []string
		inTime, then int // how often it kills before the pipe ends, and by the end of that
	}{
		"a command":           {lines: []string{"group 5", "left 3600000000000"}, then: 1},
		"before any command":  {},
		"the time is up":      {lines: []string{"group 5", "left 1"}, inTime: 1, then: 1},
		"it was up at once":   {lines: []string{"group 5", "left -7"}, inTime: 1, then: 1},
		"up before a command": {lines: []string{"left -7"}},
	} {
		t.Run(name, func(t *testing.T) {
			lines, killed := make(chan string), make(chan int, 4)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				guardBy(lines, func(group int) { killed <- group })
			}()
			for _, line := range tc.lines {
				lines <- line
			}
			for range tc.inTime {
				assert.Equal(t, 5, <-killed)
			}
			close(lines)
			<-ended
			assert.Len(t, killed, tc.then)
		})
	}
}

// childOf waits for a process of a name that another one has started, other than not.
func childOf(t *testing.T, parent int, name string, not int) (pid int) {
	t.Helper()
	kit.Until(t, "the guard", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
		if err != nil {
			t.Skip("no children in /proc")
		}
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
		for _, task := range tasks {
			of, _ := os.ReadFile(task)
			text = append(append(text, ' '), of...)
		}
		for child := range strings.FieldsSeq(string(text)) {
			if args, _ := os.ReadFile("/proc/" + child + "/cmdline"); strings.Contains(string(args), name) {
				if pid, _ = strconv.Atoi(child); pid != not {
					return true
				}
			}
		}
		return false
	})
	return pid
}

// hasOpen is whether a process has a file or a pipe open.
func hasOpen(pid int, name string) bool {
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return slices.ContainsFunc(all, func(fd string) bool {
		to, _ := os.Readlink(fd)
		return to == name
	})
}

// The lock is given back when the command has ended, also if the guard stands still.
func TestLockWithAStoppedGuard(t *testing.T) {
	s := newShell(t)
	p := s.start(t, "lock", "/l", "--", "sh", "-c", "echo ready; read line")
	assert.Equal(t, "ready", p.line())
	guard := childOf(t, p.Process.Pid, guardVerb, 0)
	require.NoError(t, syscall.Kill(guard, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(guard, syscall.SIGKILL) })
	require.NoError(t, p.in.Close())
	ended := make(chan int)
	go func() { code, _ := p.ends(); ended <- code }()
	select {
	case code := <-ended:
		assert.Equal(t, 1, code, "that of read at the end of its input")
	case <-time.After(kit.Patience):
		t.Fatal("it waits for its guard, and has the lock")
	}
	assert.Empty(t, kit.Children(t, s.client(t), "/l"))
}

// Another guard takes the place of one that is killed or stopped, so that nothing of the
// command goes on if paddock is killed as well.
func TestLockGetsAnotherGuard(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(sig.String(), func(t *testing.T) {
			s := newShell(t)
			p := s.start(t, "lock", "/l", "--", "sh", "-c", `sleep 100 >/dev/null & echo $!; wait`)
			grandchild := p.line()
			first := childOf(t, p.Process.Pid, guardVerb, 0)
			pipe, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", first))
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(first, sig))
			childOf(t, p.Process.Pid, guardVerb, first)
			assert.True(t, alive(t, grandchild))
			kit.Until(t, "the end of the first", func() bool { return !alive(t, strconv.Itoa(first)) })
			// The second has been told of the command before that.
			kit.Until(t, "the end of the first one's pipe", func() bool { return !hasOpen(p.Process.Pid, pipe) })
			require.NoError(t, p.Process.Kill())
			_ = p.Wait()
			diesSoon(t, grandchild)
		})
	}
}

// A guard that stands still reads nothing. Who minds the time must not wait for it.
func TestGuardThatReadsNothing(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _, _ = r.Close(), w.Close() }()
	g := &guardian{pipe: w}
	require.NoError(t, w.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	for err == nil {
		_, err = w.Write(make([]byte, 4096))
	}
	least := time.Hour
	for range 10 { // a busy machine is late as well, but not each time
		began := time.Now()
		g.say("left %d", time.Hour)
		least = min(least, time.Since(began))
	}
	assert.Less(t, least, leastMargin/2, "the command would be killed too late")
}

// The program may be replaced or removed while it waits.
func TestLockOfAProgramThatIsGone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says which program runs")
	}
	s := newShell(t)
	h := kit.Hold(t, locks.NewInterProcessMutex(s.client(t), "/l"))
	self, err := os.Executable()
	require.NoError(t, err)
	program, err := os.ReadFile(self)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "paddock")
	require.NoError(t, os.WriteFile(file, program, 0o700)) //nolint:gosec // it is run
	p := s.startProgram(t, file, "lock", "/l", "--", "echo", "ran")
	require.NoError(t, s.WaitChildren(t.Context(), "/l", 2))
	require.NoError(t, os.Remove(file))
	require.NoError(t, h.Release())
	code, out := p.ends()
	assert.Equal(t, 0, code, &p.errs)
	assert.Equal(t, []string{"ran"}, out)
}

// As process 1 of a container, paddock reaps what falls to it, and gives the lock back as
// soon as the command and what it has left are gone.
func TestLockAsProcessOne(t *testing.T) {
	unshare := []string{"unshare", "--pid", "--fork", "--mount-proc"}
	if err := exec.CommandContext(t.Context(), unshare[0], append(unshare[1:], "true")...).Run(); err != nil {
		t.Skip("no right to make a namespace of processes")
	}
	s := newShell(t)
	self, err := os.Executable()
	require.NoError(t, err)
	for name, tc := range map[string]struct{ does string }{
		"left behind": {does: `(sleep 100 >/dev/null 2>&1 &); echo; exit 3`},
		"orphans":     {does: `(sh -c 'exec setsid sleep 0' & sleep 0 &); sleep 0.3; cat /proc/[0-9]*/stat | grep ') Z '; echo; exit 3`},
	} {
		t.Run(name, func(t *testing.T) {
			p := s.startProgram(t, append(append([]string{}, unshare...), self, "lock", "/l", "--", "sh", "-c", tc.does)...)
			assert.Empty(t, p.line(), "a zombie that nobody reaps")
			began := time.Now() // the command ends
			code, _ := p.ends()
			assert.Equal(t, 3, code)
			assert.Less(t, time.Since(began), 2500*time.Millisecond, "the lock is held on")
		})
	}
}
