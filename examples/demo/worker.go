package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
)

const (
	// thinking is what lies between reading two balances and writing them: a
	// service would compute something, or ask another one.
	thinking = 10 * time.Millisecond
	// mostMoved is the largest sum of a transfer.
	mostMoved = 100
	// lastWords is how long a worker goes on that has lost its parent.
	lastWords = 5 * time.Second
)

// errOrphaned reports that the parent has died.
var errOrphaned = errors.New("the parent is gone")

// patience tries a transfer again after whatever may pass: no server answers,
// or the locks were lost before anything was written.
var patience = retry.Forever(100 * time.Millisecond).Named("transfer").WithClassifier(func(err error) retry.Decision {
	if errors.Is(err, locks.ErrLockLost) {
		return retry.Again
	}
	if d := framework.Classify(err); d != retry.Pass {
		return d
	}
	return retry.Stop
})

// worker is one process that moves money.
type worker struct {
	assignment
	bank  *bank
	rng   *rand.Rand
	stop  chan struct{} // closed when no further transfer shall begin
	pause atomic.Bool   // the next transfer waits while it holds

	mu  sync.Mutex // guards the fields below
	out *json.Encoder
}

// work is the main function of a worker, and its result the exit status.
func work(text string) int {
	// Ctrl-C reaches every process of a terminal. When to end is the parent's
	// business; that the parent has died shows by the end of our input. A report
	// that it does not read any more must not be the end of us before that.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	w := &worker{stop: make(chan struct{}), out: json.NewEncoder(os.Stdout)}
	if err := json.Unmarshal([]byte(text), &w.assignment); err != nil {
		fmt.Fprintln(os.Stderr, "assignment:", err)
		return 1
	}
	w.rng = rand.New(rand.NewPCG(w.Seed, uint64(w.Number)))
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go w.obey(os.Stdin, func() {
		cancel(errOrphaned)
		time.AfterFunc(lastWords, func() { os.Exit(1) }) // whatever we hang in
	})
	if err := w.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// obey does what the parent says, until there is no parent.
func (w *worker) obey(in io.Reader, orphaned func()) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch lines.Text() {
		case orderPause:
			w.pause.Store(true)
		case orderStop:
			close(w.stop)
		}
	}
	orphaned()
}

func (w *worker) run(ctx context.Context) (err error) {
	client, err := framework.Connect(ctx, framework.Config{
		ConnectString:  w.ConnectString,
		SessionTimeout: w.SessionTimeout,
		CloseTimeout:   lastWords / 2,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	remove := client.States().Listen(func(s listeners.State) { w.report(report{State: s.String()}) })
	defer remove()

	w.bank = &bank{client: client, accounts: w.Accounts}
	for !w.stopped() {
		from, to := w.twoAccounts()
		if err := retry.Do(ctx, patience, func(ctx context.Context) error { return w.transfer(ctx, from, to) }); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// twoAccounts picks two that differ.
func (w *worker) twoAccounts() (from, to int) {
	from, to = w.rng.IntN(w.Accounts), w.rng.IntN(w.Accounts-1)
	if to >= from {
		to++
	}
	return from + 1, to + 1
}

// transfer moves money from one account to another, under the locks of both.
// This is what the demo is about: without the locks, two workers read the same
// balance and the later one overwrites what the earlier one wrote.
func (w *worker) transfer(ctx context.Context, from, to int) error {
	if w.Unlocked {
		return w.move(ctx, from, to)
	}
	name := workerName(w.Number)
	both := locks.NewInterProcessMultiLock(w.bank.lock(from, name), w.bank.lock(to, name))
	return locks.Do(ctx, both, func(ctx context.Context) error { return w.move(ctx, from, to) })
}

func (w *worker) move(ctx context.Context, from, to int) error {
	payer, err := w.bank.read(ctx, from)
	if err != nil {
		return err
	}
	payee, err := w.bank.read(ctx, to)
	if err != nil {
		return err
	}
	if err := w.think(ctx, from, to); err != nil {
		return err
	}
	amount := min(1+w.rng.IntN(mostMoved), max(payer.balance, 0))
	payer.balance -= amount
	payee.balance += amount
	err = w.bank.write(ctx, !w.Unlocked, payer, payee)
	done := move{From: from, To: to, Amount: amount}
	switch {
	case err == nil:
		w.report(report{Moved: &done})
	case framework.Ambiguous(err):
		w.report(report{Doubtful: &done})
		return nil
	}
	return err
}

// think passes the time between reading and writing, or waits to be killed if
// that was asked for.
func (w *worker) think(ctx context.Context, from, to int) error {
	if w.pause.CompareAndSwap(true, false) {
		w.report(report{Paused: []int{from, to}})
		select {
		case <-w.stop: // it was not meant so
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	t := time.NewTimer(thinking)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// report tells the parent. If it cannot be told it is gone, which the end of
// our input says as well.
func (w *worker) report(r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(r)
}

func workerName(number int) string { return "worker " + strconv.Itoa(number) }
