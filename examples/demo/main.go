// Command demo shows processes that share locks, and what becomes of the locks
// of one that dies.
//
// Several worker processes move money between accounts, which are znodes. For
// each transfer they take the locks of both accounts. One worker is killed while
// it holds its locks. In the end the total has to be what it was.
//
//	go run ./examples/demo            20 seconds of it
//	go run ./examples/demo -unlocked  the same without locks: the total breaks
//
// It runs on a ZooKeeper server of its own, or on yours with
// ZK_CONNECT=host:port,... The exit status is 0 if the money is all there, each
// worker that was left ended cleanly and no lock was left behind, and 1 if not.
//
// Read parent.go first, which tells the story, then worker.go and bank.go, which
// use the locks. The rest starts processes and draws.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/paddock-zk/paddock/examples/internal/playground"
)

func main() { os.Exit(start(os.Args[1:])) }

// start is main, and its result the exit status. In a process that this program
// has started it is the worker.
func start(args []string) int {
	if text, ok := os.LookupEnv(assignmentVariable); ok {
		return work(text)
	}
	cfg, err := parse(args, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal is final
	// A reader of our output that goes away, as head does, is a reason to end
	// tidily as well, and not to die on the spot.
	ctx, stop = signal.NotifyContext(ctx, syscall.SIGPIPE)
	defer stop()

	good, err := run(ctx, cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	if !good {
		return 1
	}
	return 0
}

// config is what the flags and the environment say.
type config struct {
	length         time.Duration
	workers        int
	accounts       int
	unlocked       bool
	seed           uint64
	sessionTimeout time.Duration
	servers        string // "" for a server of our own
}

// parse reads the command line. What is wrong with it has been printed when it
// returns an error.
func parse(args []string, errs io.Writer) (config, error) {
	cfg := config{servers: os.Getenv(playground.Variable)}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.DurationVar(&cfg.length, "for", 20*time.Second, "how long money is moved")
	flags.IntVar(&cfg.workers, "workers", 4, "number of worker processes")
	flags.IntVar(&cfg.accounts, "accounts", 8, "number of accounts")
	flags.BoolVar(&cfg.unlocked, "unlocked", false, "take no locks and check no versions, to see the total break")
	flags.Uint64Var(&cfg.seed, "seed", 0, "decides who pays whom how much, and who is killed; 0 for any")
	flags.DurationVar(&cfg.sessionTimeout, "session-timeout", 2*time.Second, "after how much silence ZooKeeper gives a worker's locks to others")
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	if err := cfg.check(flags.Args()); err != nil {
		_, _ = fmt.Fprintln(errs, "demo:", err)
		flags.Usage()
		return cfg, err
	}
	if cfg.seed == 0 {
		cfg.seed = rand.Uint64N(1e6) + 1
	}
	return cfg, nil
}

const (
	mostWorkers  = 32
	mostAccounts = 100
)

func (cfg config) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case cfg.length <= 0:
		return fmt.Errorf("-for is %v: it must be above 0", cfg.length)
	case cfg.workers < 1 || cfg.workers > mostWorkers:
		return fmt.Errorf("-workers is %d: it must be from 1 to %d", cfg.workers, mostWorkers)
	case cfg.accounts < 2 || cfg.accounts > mostAccounts:
		return fmt.Errorf("-accounts is %d: it must be from 2 to %d", cfg.accounts, mostAccounts)
	case cfg.sessionTimeout < 100*time.Millisecond || cfg.sessionTimeout > time.Minute:
		return fmt.Errorf("-session-timeout is %v: it must be from 100ms to 1m", cfg.sessionTimeout)
	}
	return nil
}
