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
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

func main() { os.Exit(start(os.Args[1:])) }

// start is main, and its result the exit status.
func start(args []string) int {
	var s settings
	var length time.Duration
	var workers int
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.DurationVar(&length, "for", 20*time.Second, "how long money is moved")
	flags.IntVar(&workers, "workers", 4, "number of worker processes, from 1 to 32")
	flags.BoolVar(&s.unlocked, "unlocked", false, "take no locks, to see the total break")
	flags.DurationVar(&s.sessionTimeout, "session-timeout", 2*time.Second, "after how much silence ZooKeeper gives a worker's locks to others, from 1s to 1m")
	flags.StringVar(&s.servers, "work-for", "", "be a worker on these servers, as the demo starts them")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 || length <= 0 || workers < 1 || workers > 32 || s.sessionTimeout < time.Second || s.sessionTimeout > time.Minute {
		fmt.Fprintf(os.Stderr, "demo: no such argument, or a value out of its range: %q\n", args)
		flags.Usage()
		return 2
	}
	if s.servers != "" {
		return status(work(s))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	return status(run(ctx, s, workers, length))
}

func status(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	return 0
}

// demo is the parent of the workers.
type demo struct {
	settings
	bank    bank
	workers []*process
	began   time.Time
}

// process is a worker as its parent sees it.
type process struct {
	cmd    *exec.Cmd
	orders io.WriteCloser // its standard input: a line means to hold on to its locks, the end of it to stop
	moved  atomic.Int64   // transfers
	held   chan [2]int    // the accounts whose locks it holds on to
	ended  chan error     // gets one value
	killed bool
}

// run returns nil if all was well.
func run(ctx context.Context, s settings, workers int, length time.Duration) (err error) {
	place, err := playground.Open(ctx, "demo", os.Getenv(playground.Variable), zktest.Tick(s.sessionTimeout/4))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }() //nolint:contextcheck // also after ctx has ended
	s.servers = place.ConnectString
	client, err := framework.Connect(ctx, framework.Config{ConnectString: s.servers, SessionTimeout: s.sessionTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	d := &demo{settings: s, bank: bank{client}, began: time.Now()}
	if err := d.bank.open(ctx); err != nil {
		return err
	}
	fmt.Printf("%d worker processes move money between %d accounts of %d each,\non %s.\n", workers, accounts, opening, place.Where())
	if s.unlocked {
		fmt.Printf("There are NO locks (-unlocked): transfers overwrite each other.\n\n")
	} else {
		fmt.Printf("Each transfer is made under the locks of both accounts, so the total stays %d.\n"+
			"One process will be killed while it holds its locks. They pass on when its\nsession ends, after %v of silence.\n\n", opening*accounts, client.SessionTimeout())
	}
	defer d.killAll()
	for range workers {
		if err := d.startWorker(); err != nil {
			return err
		}
	}
	d.watch(ctx, length/4)
	if !s.unlocked && ctx.Err() == nil {
		if err := d.killOne(ctx); err != nil {
			return err
		}
	}
	d.watch(ctx, length-time.Since(d.began))
	if ctx.Err() != nil {
		d.say("interrupted")
	}
	ctx = context.WithoutCancel(ctx)
	return errors.Join(d.stopWorkers(), d.verdict(ctx))
}

// say writes what has happened, with the time.
func (d *demo) say(format string, args ...any) {
	fmt.Printf("%5.1fs  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

// startWorker starts this program as a worker.
func (d *demo) startWorker() error {
	p := &process{held: make(chan [2]int, 1), ended: make(chan error, 1)}
	p.cmd = exec.Command(os.Args[0], "-work-for", d.servers, "-session-timeout", d.sessionTimeout.String(), fmt.Sprint("-unlocked=", d.unlocked)) //nolint:gosec,noctx // itself; killAll ends it
	p.cmd.Stderr = os.Stderr
	orders, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	reports, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.orders = orders
	d.workers = append(d.workers, p)
	go func() {
		for lines := bufio.NewScanner(reports); lines.Scan(); {
			var held [2]int
			if n, _ := fmt.Sscanf(lines.Text(), "held %d %d", &held[0], &held[1]); n == 2 {
				p.held <- held
			} else {
				p.moved.Add(1)
			}
		}
		p.ended <- p.cmd.Wait()
	}()
	return nil
}

// watch shows how things stand, twice a second.
func (d *demo) watch(ctx context.Context, length time.Duration) {
	for end := time.Now().Add(length); time.Now().Before(end); {
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
	if _, err := fmt.Fprintln(victim.orders, "hold"); err != nil {
		return err
	}
	var held [2]int
	select {
	case held = <-victim.held:
	case <-time.After(10 * time.Second):
		return errors.New("a worker did not come to hold its locks")
	case <-ctx.Done():
		return nil
	}
	victim.killed = true
	if err := victim.cmd.Process.Kill(); err != nil {
		return err
	}
	began := time.Now()
	d.say("KILLED worker 1 (SIGKILL) while it held accounts %d and %d", held[0], held[1])
	hold, err := d.bank.locks(held[0], held[1]).TryAcquire(ctx, 3*d.sessionTimeout+10*time.Second)
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

// stopWorkers lets the workers end, and returns an error if one does not end cleanly.
func (d *demo) stopWorkers() (err error) {
	for _, p := range d.workers {
		_ = p.orders.Close()
	}
	late := time.After(d.sessionTimeout + 10*time.Second)
	for i, p := range d.workers {
		select {
		case end := <-p.ended:
			p.ended <- end
			if end != nil && !p.killed {
				err = errors.Join(err, fmt.Errorf("worker %d ended badly: %w", i+1, end))
			}
		case <-late:
			return errors.Join(err, fmt.Errorf("worker %d did not end", i+1))
		}
	}
	return err
}

// killAll ends what is left of the workers, and waits for them.
func (d *demo) killAll() {
	for _, p := range d.workers {
		_ = p.cmd.Process.Kill()
		<-p.ended //nolint:errcheck // stopWorkers has seen it
	}
}

// verdict says whether the money is all there, and returns an error if it is not.
func (d *demo) verdict(ctx context.Context) error {
	total, err := d.bank.total(ctx)
	if err != nil {
		return err
	}
	left, err := d.bank.locksLeft(ctx)
	if err != nil {
		return err
	}
	var moved int64
	for _, w := range d.workers {
		moved += w.moved.Load()
	}
	const before = opening * accounts
	fmt.Printf("\ntransfers   %d\nlocks left  %d\ntotal       %d before, %d after\n\n", moved, left, before, total)
	switch {
	case total != before:
		return errors.New("BROKEN: the total is not what it was")
	case left > 0 || moved == 0:
		return errors.New("FAILED: locks were left, or nothing was moved")
	}
	fmt.Println("BALANCED: the total is what it was.")
	return nil
}
