// Command paddock shows and breaks the locks and elections of a ZooKeeper ensemble, and
// runs commands under locks. It is for people and scripts. docs/command.md is its manual.
//
//	paddock --servers zk1:2181,zk2:2181 who /locks/orders
//	paddock --servers zk1:2181,zk2:2181 lock /locks/orders -- ./import-orders.sh
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/lockview"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// Exit codes. Those from 65 on are the ones of sysexits.h that come nearest.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNoLock      = 65
	exitNotFound    = 66
	exitUnreachable = 69
	exitBusy        = 75
	exitLost        = 76
	exitRefused     = 77
	exitInterrupted = 130

	exitNotExecutable = 126
	exitNoCommand     = 127
)

// guardVerb is what the guard of a command under a lock is started with.
const guardVerb = "guard-of-lock"

func main() {
	if len(os.Args) == 2 && os.Args[1] == guardVerb {
		os.Exit(guard())
	}
	os.Exit(run(untilSignal(), os.Args[1:], system{os.Stdin, os.Stdout, os.Stderr, os.Getenv}))
}

// untilSignal is a context that ends with the first signal that ends a process, so that the
// session is closed and no node stays behind. The second such signal ends the process.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		s := <-signals
		signal.Stop(signals)
		cancel(&signalError{s})
	}()
	return ctx
}

// notify is signal.Notify but for signals that were ignored when this process was started,
// as nohup and the background jobs of scripts do. Go knows this of HUP and INT.
func notify(c chan<- os.Signal, signals ...os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
}

// signalError is the cause of the end of a run by a signal.
type signalError struct{ signal os.Signal }

// Error implements error.
func (e *signalError) Error() string { return e.signal.String() }

// code is the exit code that shells give to a process that a signal has ended.
func (e *signalError) code() int {
	if s, is := e.signal.(syscall.Signal); is {
		return 128 + int(s)
	}
	return exitFailed
}

// system is what a run has of its surroundings.
type system struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
}

// complain writes a line to the standard error, which nobody may be reading.
func (s system) complain(line string) { _, _ = fmt.Fprintln(s.err, line) }

// run does what the arguments say and returns the exit code.
func run(ctx context.Context, args []string, sys system) int {
	inv, err := parse(args, sys.getenv)
	if err == nil {
		inv.sys = sys
		err = inv.verb.run(ctx, inv)
	}
	code := exitCode(err)
	if ended := (*signalError)(nil); errors.As(context.Cause(ctx), &ended) && errors.Is(err, context.Canceled) {
		return ended.code() // who has sent the signal knows
	}
	if err != nil && err.Error() != "" {
		sys.complain("paddock: " + lockview.Printable(err.Error()))
	}
	if wrong := (*usageError)(nil); errors.As(err, &wrong) {
		sys.complain("usage: " + wrong.usage)
	}
	return code
}

// exitCode is what an error ends the process with.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if errors.As(err, new(*usageError)) || errors.As(err, new(*framework.ConfigError)) {
		return exitUsage
	}
	if ended := (*codeError)(nil); errors.As(err, &ended) {
		return ended.code
	}
	for _, c := range []struct {
		match error
		code  int
	}{
		{framework.ErrInvalidPath, exitUsage},
		{locks.ErrNotAcquired, exitBusy},
		{locks.ErrLockLost, exitLost},
		{framework.ErrNotConnected, exitUnreachable}, // before the end of a context, which comes with it
		{context.Canceled, exitInterrupted},
		{context.DeadlineExceeded, exitUnreachable},
		{framework.ErrNoAuth, exitRefused},
		{framework.ErrAuthFailed, exitRefused},
		{framework.ErrNoNode, exitNotFound},
		{lockview.ErrNoLock, exitNoLock},
		{locks.ErrInvalidLock, exitNoLock},
	} {
		if errors.Is(err, c.match) {
			return c.code
		}
	}
	return exitFailed
}

// codeError ends with an exit code of its own, as that of a command that was run under
// a lock.
type codeError struct {
	code int
	text string // "" if all is said
}

// Error implements error.
func (e *codeError) Error() string { return e.text }

// usageError is a wrong use, with the line that says what is right.
type usageError struct {
	text, usage string
}

// Error implements error.
func (e *usageError) Error() string { return e.text }

// misuse is a wrong use of a verb.
func (v *verb) misuse(format string, args ...any) error {
	usage := strings.TrimSpace("paddock "+v.name+" "+v.args) + " (paddock help " + v.name + " has more)"
	if v.name == helpVerb().name {
		usage = "paddock VERB [FLAG...] [ARGUMENT...] (paddock help has more)"
	}
	return &usageError{fmt.Sprintf(format, args...), usage}
}
