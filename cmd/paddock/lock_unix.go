//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// command is what runs under a lock. It has a process group of its own, so that what it
// starts is stopped with it.
//
// This process tells the command to end when the session lease has no more left than the
// grace and a margin. It kills the command when no more than the margin is left. A second
// process, the guard, kills it too: when this process is gone, or stands still for so
// long that the lease is about to end.
type command struct {
	path  string
	args  []string
	files []*os.File
	env   []string
	grace time.Duration

	pid      int // and the id of its process group
	terminal *terminal
	guard    *guardian
	waits    chan syscall.WaitStatus
}

// newCommand finds the program.
func newCommand(inv *invocation) (*command, error) {
	args := inv.args[inv.split:]
	path, err := exec.LookPath(args[0])
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, &codeError{exitNotExecutable, err.Error()}
	case err != nil:
		return nil, &codeError{exitNoCommand, err.Error()}
	}
	c := &command{path: path, args: args, waits: make(chan syscall.WaitStatus)}
	for i, stream := range []any{inv.sys.in, inv.sys.out, inv.sys.err} {
		file, is := stream.(*os.File)
		if !is {
			file = []*os.File{os.Stdin, os.Stdout, os.Stderr}[i]
		}
		c.files = append(c.files, file)
	}
	return c, nil
}

// passedOn are the signals that the command gets in place of this process.
var passedOn = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGCONT, syscall.SIGWINCH,
}

// run runs the command for as long as the lock is held. It returns when nothing of the
// command is left. lost is told why the command has to end. The end of ctx is a signal that
// came before signals were passed on.
func (c *command) run(ctx context.Context, client *framework.Client, hold *locks.Hold, lost func(error)) error {
	// The kernel kills the command when the thread ends that has started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 16)
	notify(signals, passedOn...)
	defer signal.Stop(signals)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	states := make(chan locks.HoldState, 8)
	defer hold.Listen(func(s locks.HoldState) {
		if s == locks.Lost {
			states <- s
		}
	})()
	if err := c.start(); err != nil {
		return err
	}
	w := &supervisor{command: c, client: client, hold: hold, tell: lost}
	status := w.watch(signals, states)
	c.sweep()
	c.guard.done()
	c.terminal.restore(c.pid)
	switch {
	case w.lost != nil:
		return &codeError{exitLost, w.lost.Error()}
	case status.Signaled():
		return &codeError{128 + int(status.Signal()), ""}
	case status.ExitStatus() != 0:
		return &codeError{status.ExitStatus(), ""}
	}
	return nil
}

// start starts the guard, then the command.
func (c *command) start() (err error) {
	if c.guard, err = startGuard(); err != nil {
		return fmt.Errorf("start the guard: %w", err)
	}
	c.terminal = terminalOf(c.files[0])
	attr := &syscall.SysProcAttr{Setpgid: true}
	killWithParent(attr)
	c.terminal.giveTo(attr)
	p, err := os.StartProcess(c.path, c.args, &os.ProcAttr{Files: c.files, Env: c.env, Sys: attr})
	if err != nil {
		c.guard.done()
		return &codeError{exitNotExecutable, err.Error()}
	}
	c.terminal.lent()
	c.pid = p.Pid
	_ = p.Release() // wait4 is called here, as it tells of stops too
	c.guard.say("group %d", c.pid)
	whom := c.pid
	if isInit {
		whom = -1 // what falls to process 1 is reaped here as well
	}
	go func() {
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(whom, &status, syscall.WUNTRACED, nil)
			if errors.Is(err, syscall.EINTR) || err == nil && pid != c.pid {
				continue
			}
			c.waits <- status
			if err != nil || status.Exited() || status.Signaled() {
				return
			}
		}
	}()
	return nil
}

// isInit is whether this is process 1, as in a container. Processes whose parents have ended
// are its children then.
var isInit = os.Getpid() == 1

// signal signals the process group.
func (c *command) signal(s syscall.Signal) { _ = syscall.Kill(-c.pid, s) }

// sweep ends what the command has left behind in its group: the lock is about to be given
// back. Processes that nobody reaps are not waited for.
func (c *command) sweep() {
	gone := func() bool {
		for pid := 1; isInit && pid > 0; {
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		return errors.Is(syscall.Kill(-c.pid, 0), syscall.ESRCH)
	}
	if gone() {
		return
	}
	c.signal(syscall.SIGTERM)
	c.signal(syscall.SIGCONT)
	for until := time.Now().Add(c.grace); !gone() && time.Now().Before(until); {
		<-time.After(sweepPause)
	}
	c.signal(syscall.SIGKILL)
	for until := time.Now().Add(mostSweep); !gone() && time.Now().Before(until); {
		<-time.After(sweepPause)
	}
}

const (
	sweepPause = 5 * time.Millisecond
	mostSweep  = time.Second
)

// supervisor minds the time while a command runs.
type supervisor struct {
	command *command
	client  *framework.Client
	hold    *locks.Hold
	tell    func(error)

	lost   error // why the command has to end, nil while it may go on
	told   time.Time
	killed bool
}

// lookAgain is how often the lease is looked at in any case: timers stand still while the
// machine sleeps.
const lookAgain = time.Second

// watch returns how the command has ended.
func (w *supervisor) watch(signals <-chan os.Signal, states <-chan locks.HoldState) syscall.WaitStatus {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-states:
		case s := <-signals:
			w.pass(s)
		case status := <-w.command.waits:
			if !status.Stopped() {
				return status
			}
			w.stopped(signals)
		}
		timer.Reset(w.look())
	}
}

func (w *supervisor) pass(s os.Signal) {
	if s, is := s.(syscall.Signal); is {
		w.command.signal(s)
	}
}

// look does what is due, and returns when to look again.
func (w *supervisor) look() time.Duration {
	timeout := w.client.SessionTimeout()
	margin := marginOf(timeout)
	left := w.client.Stats().LeaseLeft
	over := w.hold.State() == locks.Lost
	w.command.renewGuard()
	if !over {
		w.command.guard.say("left %d", left-margin/2)
	}
	warn := left - w.command.grace - margin
	switch {
	case w.killed:
		return lookAgain
	case w.lost == nil && (over || warn <= 0):
		w.lost = w.hold.Err()
		if w.lost == nil {
			w.lost = fmt.Errorf("the lock is about to be lost, as no server confirms the session: %v are left", left.Round(time.Millisecond))
		}
		w.told = time.Now()
		w.tell(w.lost)
		w.command.signal(syscall.SIGTERM)
		w.command.signal(syscall.SIGCONT)
	}
	if w.lost == nil {
		return min(warn, lookAgain)
	}
	rest := time.Until(w.told.Add(w.command.grace))
	if !over {
		rest = min(rest, left-margin)
	}
	if rest > 0 {
		return min(rest, lookAgain)
	}
	w.killed = true
	w.command.signal(syscall.SIGKILL)
	return lookAgain
}

// stopped stops this process, too, when a user has stopped the command at a terminal, so
// that the shell gets the terminal. The lease goes on meanwhile. When it ends, the guard
// kills the command.
func (w *supervisor) stopped(signals <-chan os.Signal) {
	t, pid := w.command.terminal, w.command.pid
	if t == nil {
		return
	}
	t.move(pid, t.own)
	_ = syscall.Kill(0, syscall.SIGSTOP)
	for s := range signals { // the stop need not come at once, so what follows waits for its end
		if s == syscall.SIGCONT {
			break
		}
		w.pass(s) // as of kill %1, which sends SIGCONT behind it
	}
	t.move(t.own, pid)
	if w.look(); w.lost == nil {
		w.command.signal(syscall.SIGCONT)
	}
}

// guardian is the guard as this process sees it.
type guardian struct {
	process *os.Process
	pipe    *os.File
}

// startGuard starts this program as a guard.
func startGuard() (*guardian, error) {
	self, err := itself()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	defer func() { _ = null.Close() }()
	p, err := os.StartProcess(self, []string{self, guardVerb}, &os.ProcAttr{
		Files: []*os.File{r, null, null}, Env: []string{}, Sys: &syscall.SysProcAttr{Setsid: true}, // no signal of a terminal reaches it
	})
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	return &guardian{p, w}, nil
}

// renewGuard puts another guard in place of one that has ended or stands still. Else the
// command would go on if this process were killed, too.
func (c *command) renewGuard() {
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(c.guard.process.Pid, &status, syscall.WNOHANG|syscall.WUNTRACED, nil); pid == 0 || errors.Is(err, syscall.EINTR) {
		return
	}
	guard, err := startGuard()
	if err != nil {
		return // this process still minds the time
	}
	guard.say("group %d", c.pid)
	if status.Stopped() {
		c.guard.done()
	} else {
		_ = c.guard.pipe.Close()
	}
	c.guard = guard
}

// say tells the guard something. That it has gone is no reason to stop: this process
// minds the time as well, and must not wait for a guard that stands still.
func (g *guardian) say(format string, args ...any) {
	_ = g.pipe.SetWriteDeadline(time.Now().Add(leastMargin / 10))
	_, _ = fmt.Fprintf(g.pipe, format+"\n", args...)
}

// done ends the guard, also one that stands still: the lock is given back after that. It
// must be gone before the pipe ends, which would let it kill.
func (g *guardian) done() {
	_ = g.process.Kill()
	_, _ = g.process.Wait()
	_ = g.pipe.Close()
}

// guard is the guard process. It kills the command's group when the pipe ends, or when the
// time is up that was told last.
func guard() int {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	return guardBy(lines, func(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) })
}

// guardBy is a guard that hears lines.
func guardBy(lines <-chan string, kill func(group int)) int {
	group := 0
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	for {
		select {
		case <-timer.C:
			if group > 0 {
				kill(group)
			}
		case line, more := <-lines:
			var left time.Duration
			switch {
			case !more:
				if group > 0 {
					kill(group)
				}
				return exitOK
			case strings.HasPrefix(line, "group "):
				_, _ = fmt.Sscanf(line, "group %d", &group)
			default:
				if _, err := fmt.Sscanf(line, "left %d", &left); err == nil || errors.Is(err, io.EOF) {
					timer.Reset(max(0, left))
				}
			}
		}
	}
}
