// Command demo shows processes that share locks, and what becomes of the locks of one
// that is killed.
//
// Worker processes move money between accounts, which are nodes. For each transfer a
// worker takes the locks of both accounts. One worker is killed while it holds its
// locks. In the end the total has to be what it was.
//
//	go run ./examples/demo            20 seconds of it
//	go run ./examples/demo -unlocked  the same without locks: the total breaks
//
// It runs on a ZooKeeper server of its own, or on yours with ZK_CONNECT=host:port,... The
// exit status is 0 if the money is all there, each worker that was left ended cleanly
// and no lock was left behind, and 1 if not.
//
// This file is the parent, worker.go is what a worker does, and bank.go uses the locks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

func main() { os.Exit(start(os.Args[1:])) }

// start is main, and its result the exit status.
func start(args []string) int {
	if settings, ok := os.LookupEnv(workerVariable); ok {
		return work(settings)
	}
	cfg, err := parse(args, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	good, err := run(ctx, cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	if err != nil || !good {
		return 1
	}
	return 0
}

// config is what the flags say.
type config struct {
	length, sessionTimeout time.Duration
	workers, accounts      int
	unlocked               bool
}

func parse(args []string, errs io.Writer) (cfg config, err error) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.DurationVar(&cfg.length, "for", 20*time.Second, "how long money is moved")
	flags.IntVar(&cfg.workers, "workers", 4, "number of worker processes")
	flags.IntVar(&cfg.accounts, "accounts", 8, "number of accounts")
	flags.BoolVar(&cfg.unlocked, "unlocked", false, "take no locks, to see the total break")
	flags.DurationVar(&cfg.sessionTimeout, "session-timeout", 2*time.Second, "after how much silence ZooKeeper gives a worker's locks to others")
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case cfg.length <= 0:
		err = fmt.Errorf("-for is %v: it must be above 0", cfg.length)
	case cfg.workers < 1 || cfg.workers > 32:
		err = fmt.Errorf("-workers is %d: it must be from 1 to 32", cfg.workers)
	case cfg.accounts < 2 || cfg.accounts > 100:
		err = fmt.Errorf("-accounts is %d: it must be from 2 to 100", cfg.accounts)
	case cfg.sessionTimeout < time.Second || cfg.sessionTimeout > time.Minute:
		err = fmt.Errorf("-session-timeout is %v: it must be from 1s to 1m", cfg.sessionTimeout)
	}
	if err != nil {
		_, _ = fmt.Fprintln(errs, "demo:", err)
		flags.Usage()
	}
	return cfg, err
}

// demo is the parent of the workers.
type demo struct {
	config
	bank    *bank
	servers string
	workers []*process
	began   time.Time
	failed  bool
}

// run plays the demo and says whether all was well.
func run(ctx context.Context, cfg config) (good bool, err error) {
	place, err := playground.Open(ctx, "demo", os.Getenv(playground.Variable), zktest.Tick(cfg.sessionTimeout/4))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, place.Close()) }() //nolint:contextcheck // also after ctx has ended
	client, err := framework.Connect(ctx, framework.Config{ConnectString: place.ConnectString, SessionTimeout: cfg.sessionTimeout})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()

	d := &demo{config: cfg, bank: &bank{client: client, accounts: cfg.accounts}, servers: place.ConnectString, began: time.Now()}
	if err := d.bank.open(ctx); err != nil {
		return false, err
	}
	fmt.Printf("%d worker processes move money between %d accounts of %d each,\non %s.\n", cfg.workers, cfg.accounts, opening, place.Where())
	if cfg.unlocked {
		fmt.Printf("There are NO locks (-unlocked): transfers overwrite each other.\n\n")
	} else {
		fmt.Printf("Each transfer is made under the locks of both accounts, so the total stays %d.\n"+
			"One process will be killed while it holds its locks. They pass on when its\nsession ends, after %v of silence.\n\n", opening*cfg.accounts, client.SessionTimeout())
	}
	defer d.killAll()
	for range cfg.workers {
		if err := d.startWorker(); err != nil {
			return false, err
		}
	}
	d.watch(ctx, cfg.length/4)
	if !cfg.unlocked && ctx.Err() == nil {
		if err := d.killOne(ctx); err != nil {
			return false, err
		}
	}
	d.watch(ctx, cfg.length-time.Since(d.began))
	if ctx.Err() != nil {
		d.say("interrupted")
	}
	d.stopAll()
	return d.verdict(context.WithoutCancel(ctx))
}

// say writes what has happened, with the time.
func (d *demo) say(format string, args ...any) {
	fmt.Printf("%5.1fs  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

// watch shows how things stand, twice a second.
func (d *demo) watch(ctx context.Context, length time.Duration) {
	for end := time.Now().Add(length); time.Now().Before(end) && ctx.Err() == nil; {
		select {
		case <-time.After(min(time.Until(end), 500*time.Millisecond)):
		case <-ctx.Done():
			return
		}
		total, err := d.bank.total(ctx)
		if err != nil {
			d.say("total unknown: %v", err)
			continue
		}
		line := fmt.Sprintf("total %d  transfers", total)
		for i, w := range d.workers {
			line += fmt.Sprintf("  w%d %d", i+1, w.moved.Load())
			if w.killed {
				line += " (dead)"
			}
		}
		d.say("%s", line)
	}
}

// killOne kills a worker that holds two locks, waits until they have passed on, and starts
// another worker.
func (d *demo) killOne(ctx context.Context) error {
	victim := d.workers[0]
	held, err := victim.holdOn(ctx)
	if err != nil {
		return err
	}
	if err := victim.kill(); err != nil {
		return err
	}
	began := time.Now()
	d.say("KILLED worker 1 (SIGKILL) while it held accounts %d and %d", held[0], held[1])
	both := d.bank.locks(held[0], held[1])
	hold, err := both.TryAcquire(ctx, 3*d.sessionTimeout+10*time.Second)
	if err != nil {
		return fmt.Errorf("its locks did not pass on: %w", err)
	}
	if err := hold.Release(); err != nil {
		return err
	}
	d.say("its locks passed on after %.1f s", time.Since(began).Seconds())
	if err := d.startWorker(); err != nil {
		return err
	}
	d.say("worker %d starts in its place", len(d.workers))
	return nil
}

// verdict says whether all is as it should be.
func (d *demo) verdict(ctx context.Context) (bool, error) {
	total, err := d.bank.total(ctx)
	if err != nil {
		return false, err
	}
	left, err := d.bank.locksLeft(ctx)
	if err != nil {
		return false, err
	}
	var moved int64
	for _, w := range d.workers {
		moved += w.moved.Load()
	}
	before := opening * d.accounts
	fmt.Printf("\ntransfers   %d\nlocks left  %d\ntotal       %d before, %d after\n\n", moved, left, before, total)
	switch {
	case total != before:
		fmt.Printf("BROKEN: the total is not what it was.\n")
		return false, nil
	case left > 0 || d.failed || moved == 0:
		fmt.Printf("FAILED: the total is what it was, but see above.\n")
		return false, nil
	}
	fmt.Printf("BALANCED: the total is what it was.\n")
	return true, nil
}
