//go:build realzk

package robustness

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/recipes/locks"
)

var commandRounds = flag.Int("rounds", 40, "how many increments TestCommandUnderFire counts")

// buildCommand builds cmd/paddock.
func buildCommand(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "paddock")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/paddock-zk/paddock/cmd/paddock").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// increment is what the command under the lock does: it adds one to a number in a file, and
// records which number that made. $1 is how long it takes.
const increment = `read n <n; sleep "$1"; n=$((n+1)); echo $n >n.$$; mv n.$$ n; echo $n >>done`

// battle is four shells that count in one file while processes and servers are killed.
type battle struct {
	t       *testing.T
	program string
	servers string
	dir     string
	mu      sync.Mutex     // guards the fields below
	killed  map[string]int // by what it was
	ends    map[int]int    // by exit code
}

// Four shells add to a number in a file under `paddock lock`. Processes and servers are
// killed meanwhile, and no increment is lost that a shell has recorded as done.
func TestCommandUnderFire(t *testing.T) {
	e := realzk.StartT(t, realzk.Options{Servers: 3, Tick: sessionTimeout / ticksOfT, MaxSessionTimeout: 10 * sessionTimeout})
	b := &battle{t: t, program: buildCommand(t), servers: e.ConnectString(), dir: t.TempDir(), killed: map[string]int{}, ends: map[int]int{}}
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "n"), []byte("0\n"), 0o600))
	began := time.Now()
	b.control()
	life, over := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	killer.Go(func() { b.killMembers(life, e) })
	b.count(*commandRounds)
	over()
	killer.Wait()

	recorded := b.numbers("done")
	final := b.numbers("n")[0]
	t.Logf("%d increments recorded, the file says %d, in %v; killed: %v; ends by exit code: %v",
		len(recorded), final, time.Since(began).Round(time.Second), b.killed, b.ends)
	assert.GreaterOrEqual(t, len(recorded), *commandRounds)
	assert.LessOrEqual(t, recorded[len(recorded)-1], final)
	assert.Zero(t, lost(recorded), "increments were lost: %v", recorded)
	for _, kind := range []string{"paddock", "stopped", "command", "guard", "server"} {
		if *commandRounds >= 1000 {
			assert.Positive(t, b.killed[kind], "no %s was killed", kind)
		}
	}
}

// control counts without a lock, where increments are lost. Then it begins anew.
func (b *battle) control() {
	program := b.program
	b.program = ""
	b.count(40)
	assert.Positive(b.t, lost(b.numbers("done")), "the control: nothing was lost without a lock")
	b.program, b.ends = program, map[int]int{}
	require.NoError(b.t, os.Remove(filepath.Join(b.dir, "done")))
	require.NoError(b.t, os.WriteFile(filepath.Join(b.dir, "n"), []byte("0\n"), 0o600))
}

// count has four shells count until there are so many rounds.
func (b *battle) count(rounds int) {
	var shells sync.WaitGroup
	var done atomic.Int64
	for range 4 {
		shells.Go(func() {
			for done.Load() < int64(rounds) {
				if b.round() {
					done.Add(1)
				}
			}
		})
	}
	shells.Wait()
}

// lost is how many numbers are not greater than the one before: a shell had read the
// number before another one wrote it.
func lost(recorded []int) (n int) {
	for i := 1; i < len(recorded); i++ {
		if recorded[i] <= recorded[i-1] {
			n++
		}
	}
	return n
}

// numbers are the lines of a file.
func (b *battle) numbers(file string) (all []int) {
	text, err := os.ReadFile(filepath.Join(b.dir, file))
	require.NoError(b.t, err)
	for line := range strings.Lines(string(text)) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		require.NoError(b.t, err, "%q", text)
		all = append(all, n)
	}
	return all
}

// killMembers kills a server every few seconds, and starts it again.
func (b *battle) killMembers(life context.Context, e *realzk.Ensemble) {
	for {
		select {
		case <-time.After(3*time.Second + rand.N(3*time.Second)):
		case <-life.Done():
			return
		}
		i := rand.IntN(e.Size())
		if assert.NoError(b.t, e.Kill(i)) {
			b.mu.Lock()
			b.killed["server"]++
			b.mu.Unlock()
			<-time.After(rand.N(time.Second))
			assert.NoError(b.t, e.Restart(b.t.Context(), i))
			assert.NoError(b.t, e.AwaitServing(b.t.Context()))
		}
	}
}

// round is one increment, or an attempt at it. In every second one a grandchild does the
// work, of whose parent's death the kernel tells nobody. Work that should be killed with its
// paddock takes longer than the session: it would undo what others have done since.
func (b *battle) round() (done bool) {
	victim := map[int]string{0: "paddock", 1: "paddock", 2: "stopped", 3: "stopped", 4: "command", 5: "command", 6: "guard"}[rand.IntN(40)]
	takes := rand.Float64() / 10
	if b.program != "" && (victim == "paddock" || victim == "stopped") {
		takes = 2 * sessionTimeout.Seconds()
	}
	script := `echo in; ` + increment
	if rand.IntN(2) == 0 {
		script = `sh -c '` + script + `' sh "$1" & wait $!`
	}
	args := []string{"sh", "-c", script, "sh", strconv.FormatFloat(takes, 'f', 3, 64)}
	if b.program != "" {
		args = append([]string{b.program, "--servers", b.servers, "--session-timeout", sessionTimeout.String(), "--timeout", "30s", "lock", "/count", "--"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // it ends by itself
	cmd.Dir = b.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // else a Ctrl-C meant for the test would reach it
	out, err := cmd.StdoutPipe()
	if !assert.NoError(b.t, err) || !assert.NoError(b.t, cmd.Start()) {
		return true
	}
	hit := false
	if s := bufio.NewScanner(out); s.Scan() && b.program != "" {
		<-time.After(rand.N(50 * time.Millisecond))
		hit = hurt(victim, cmd.Process.Pid)
	}
	if hit && victim == "stopped" {
		<-time.After(5 * sessionTimeout / 2) // until the work would be done
		_ = cmd.Process.Kill()
	}
	_, _ = io.Copy(io.Discard, out) // until the last process of the command has died
	_ = cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends[code]++
	if hit {
		b.killed[victim]++
	}
	return code == 0
}

// hurt kills or stops the paddock given, or kills its command or its guard. It reports
// whether it did.
func hurt(what string, paddock int) bool {
	victim, sig := paddock, syscall.SIGKILL
	switch what {
	case "":
		return false
	case "stopped":
		sig = syscall.SIGSTOP
	case "command", "guard":
		victim = childOf(paddock, what == "guard")
	}
	return victim > 0 && syscall.Kill(victim, sig) == nil
}

// childOf is a child of a paddock, 0 if it has none of that kind.
func childOf(paddock int, guard bool) int {
	out, _ := exec.Command("ps", "-o", "pid=,args=", "--ppid", strconv.Itoa(paddock)).Output() //nolint:noctx // takes no time
	for line := range strings.Lines(string(out)) {
		pid, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.Contains(args, "guard-of-lock") == guard {
			n, _ := strconv.Atoi(pid)
			return n
		}
	}
	return 0
}

// job is a command that ignores SIGTERM, and the next one in its queue.
type job struct {
	cmd     *exec.Cmd
	errs    bytes.Buffer
	alive   *os.File // ends when the last process of the command does
	dead    time.Time
	granted time.Time
	wg      sync.WaitGroup
}

// Twenty commands run under locks through one follower, which is cut off. Each command is
// dead before its lock is granted to another client.
func TestCommandCutOff(t *testing.T) {
	const jobs = 20
	e := realzk.StartT(t, realzk.Options{
		Servers: 3, Tick: sessionTimeout / ticksOfT, SyncLimit: ticksOfSync, Partitions: true, MaxSessionTimeout: 10 * sessionTimeout,
	})
	program := buildCommand(t)
	var margins []time.Duration
	for void := 0; margins == nil; void++ {
		require.Less(t, void, 5, "holds end before anything is broken: too busy a machine")
		margins = cutCommandsOff(t, e, program, jobs)
	}
	t.Logf("follower cut off, session timeout %v, %d commands: %s", sessionTimeout, len(margins), spread(margins))
	assert.Len(t, margins, jobs)
	assert.Positive(t, slices.Min(margins), "a command goes on beside the next one")
}

// cutCommandsOff returns how long after the death of each command its lock was granted to
// another client. It is nil if a command ended before anything was broken.
func cutCommandsOff(t *testing.T, e *realzk.Ensemble, program string, n int) (margins []time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	leads, err := e.Leader(ctx)
	require.NoError(t, err)
	follower := (leads + 1) % 3
	next := kit.Connect(t, e, func(cfg *framework.Config) {
		cfg.ConnectString, cfg.SessionTimeout = e.Addr((leads+2)%3), 8*sessionTimeout
	})
	defer next.Close()
	all := make([]*job, n)
	for i := range all {
		path := fmt.Sprintf("/cut/%d", i)
		all[i] = startJob(ctx, t, program, e.Addr(follower), path)
		all[i].wg.Go(func() {
			hold, err := locks.NewInterProcessMutex(next, path).Acquire(ctx)
			all[i].granted = time.Now()
			if err == nil {
				_ = hold.Release()
			}
		})
		<-time.After(rand.N(sessionTimeout / 10)) // each at another moment of its lease
	}
	<-time.After(sessionTimeout)
	void := false
	for _, j := range all {
		void = void || syscall.Kill(j.cmd.Process.Pid, 0) != nil
	}
	cut := time.Now()
	if void {
		cancel()
	} else {
		require.NoError(t, e.Partition(follower))
	}
	for _, j := range all {
		if void {
			_ = j.cmd.Process.Kill()
		}
		j.wg.Wait()
		if !void {
			assert.Equal(t, 76, j.cmd.ProcessState.ExitCode(), j.errs.String())
		}
		margins = append(margins, j.granted.Sub(j.dead))
	}
	if void {
		return nil
	}
	t.Logf("the first one died %v after the cut", ms(all[0].dead.Sub(cut)))
	require.NoError(t, e.Heal(follower))
	return margins
}

// startJob returns when the command runs.
func startJob(ctx context.Context, t *testing.T, program, server, path string) *job {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "alive")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	j := &job{cmd: exec.CommandContext(ctx, program, "--servers", server, "--session-timeout", sessionTimeout.String(), "lock", path, "--",
		"sh", "-c", `exec 3>"$1"; trap : TERM; echo >&3; while :; do sleep 0.2; done`, "sh", fifo)}
	j.cmd.Stderr = &j.errs
	require.NoError(t, j.cmd.Start())
	var err error
	j.alive, err = os.Open(fifo) // waits for the command
	require.NoError(t, err)
	one := make([]byte, 1)
	_, err = j.alive.Read(one)
	require.NoError(t, err)
	j.wg.Go(func() {
		_, _ = j.alive.Read(one)
		j.dead = time.Now()
		_ = j.alive.Close()
		_ = j.cmd.Wait()
	})
	return j
}
