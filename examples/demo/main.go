// Command demo shows processes that share locks, and what becomes of the locks of one
// that is killed.
//
// Worker processes move money between accounts, which are nodes. For each transfer a
// worker takes the locks of both accounts. One worker kills itself with SIGKILL while it
// holds two locks. In the end the total has to be what it was.
//
//	go run ./examples/demo            20 seconds of it
//	go run ./examples/demo -unlocked  the same without locks: the total breaks
//
// It runs on a ZooKeeper server of its own, or on yours with ZK_CONNECT_STRING=host:port,... The
// exit status is 0 if the money is all there, all locks are free, and each worker that was
// left ended cleanly. Otherwise it is 1, or 2 after a wrong flag.
//
// This file has the processes, and bank.go uses the locks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

const (
	workers        = 4
	sessionTimeout = 2 * time.Second  // after so much silence ZooKeeper gives a worker's locks to others
	endTimeout     = 15 * time.Second // when to give up on servers that do not answer in the end
)

var (
	length    = flag.Duration("for", 20*time.Second, "how long money is moved")
	unlocked  = flag.Bool("unlocked", false, "take no locks, to see the total break")
	workFor   = flag.String("work-for", "", "be a worker on these servers, as the demo starts them")
	killAfter = flag.Duration("kill-after", 0, "as a worker, die in a transfer after so long")
)

func main() {
	flag.Parse()
	log.SetFlags(0)
	if *workFor == "" {
		playground.Main("demo", run, zktest.Tick(sessionTimeout/4))
	} else if err := work(); err != nil {
		log.Fatal("worker: ", err)
	}
}

// demo is the parent of the workers.
type demo struct {
	servers string
	out     *log.Logger
	bank    bank
}

// run returns nil if all was well.
func run(ctx context.Context, servers string, out *log.Logger) (err error) {
	client, err := framework.Connect(ctx, framework.Config{ConnectString: servers, SessionTimeout: sessionTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	d := demo{servers, out, bank{client}}
	if err := d.bank.open(ctx); err != nil {
		return err
	}
	out.Printf("%d processes move money between %d accounts of %d each, on %s.\n\n", workers, len(allAccounts), opening, servers)
	if *unlocked {
		out.Print("There are NO locks (-unlocked): transfers overwrite each other.\n\n")
	}
	err = d.moveMoney(ctx)

	// The total takes the locks of all accounts. So it also shows that the workers have left none.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	total, transfers, totalErr := d.bank.total(ctx)
	if totalErr != nil {
		return errors.Join(err, totalErr)
	}
	before := opening * len(allAccounts)
	out.Printf("\ntransfers  %d\ntotal      %d before, %d after\n\n", transfers, before, total)
	if total != before {
		return errors.Join(err, errors.New("BROKEN: the total is not what it was"))
	}
	out.Print("BALANCED: the total is what it was.")
	return err
}

// moveMoney runs the workers for a while, and shows the total twice a second.
func (d demo) moveMoney(ctx context.Context) (err error) {
	began := time.Now()
	ctx, stop := context.WithTimeout(ctx, *length)
	defer stop()
	ended := make(chan error, workers)
	for n := range workers {
		go func() {
			if n == 0 && !*unlocked {
				d.runVictim(ctx, *length/4)
			}
			ended <- d.runWorker(ctx, 0)
		}()
	}
	for ctx.Err() == nil {
		<-time.After(500 * time.Millisecond)
		if total, transfers, err := d.bank.total(ctx); err == nil {
			d.out.Printf("%5.1fs  total %d  transfers %d", time.Since(began).Seconds(), total, transfers)
		}
	}
	for range workers {
		if end := <-ended; end != nil {
			err = errors.Join(err, fmt.Errorf("FAILED: a worker ended badly: %w", end))
		}
	}
	return err
}

// runVictim runs a worker that dies, and waits until its locks have passed on.
func (d demo) runVictim(ctx context.Context, after time.Duration) {
	death := d.runWorker(ctx, after)
	began := time.Now()
	if _, _, err := d.bank.total(ctx); err == nil { // it waits for the locks of all accounts
		d.out.Printf("It is dead (%v). Its session has ended, and its locks passed on after %.1f s.", death, time.Since(began).Seconds())
	}
}

// runWorker runs this program as a worker until ctx ends.
func (d demo) runWorker(ctx context.Context, after time.Duration) error {
	cmd := exec.CommandContext(ctx, os.Args[0], "-work-for", d.servers, "-kill-after", after.String(), fmt.Sprint("-unlocked=", *unlocked))
	cmd.Stdout, cmd.Stderr = d.out.Writer(), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Cancel = stdin.Close   // which ends the worker,
	cmd.WaitDelay = endTimeout // unless it hangs
	if err := cmd.Run(); !errors.Is(err, ctx.Err()) {
		return err
	}
	return nil // it has ended cleanly, when ctx did
}

// work moves money until the parent closes our standard input, or is gone.
func work() (err error) {
	// Ctrl-C reaches every process of a terminal. When to end is the parent's business.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	client, err := framework.Start(framework.Config{ConnectString: *workFor, SessionTimeout: sessionTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	bank := bank{client}
	for began := time.Now(); ctx.Err() == nil; {
		two := rand.Perm(len(allAccounts))
		from, to := allAccounts[two[0]], allAccounts[two[1]]
		err := bank.move(ctx, from, to, func() {
			<-time.After(10 * time.Millisecond) // a service would compute something here, or ask another one
			if *killAfter > 0 && time.Since(began) > *killAfter {
				fmt.Printf("A worker KILLS ITSELF (SIGKILL) while it holds the locks of accounts %s and %s.\n", from, to)
				self, _ := os.FindProcess(os.Getpid())
				_ = self.Kill()
				select {} // until it is dead
			}
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}
