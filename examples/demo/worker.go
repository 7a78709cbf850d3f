package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
)

// workerVariable makes this program a worker, with settings as JSON.
const workerVariable = "PADDOCK_DEMO_WORKER"

type settings struct {
	Servers        string
	SessionTimeout time.Duration
	Accounts       int
	Unlocked       bool
}

// again tries a transfer once more after whatever may pass: no server answers, or the
// locks were lost before anything was written.
var again = retry.Forever(100 * time.Millisecond).WithClassifier(func(err error) retry.Decision {
	if errors.Is(err, locks.ErrLockLost) {
		return retry.Again
	}
	return framework.Classify(err)
})

// work is the main function of a worker, and its result the exit status.
func work(text string) int {
	// Ctrl-C reaches every process of a terminal. When to end is the parent's business.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	w := &worker{stop: make(chan struct{})}
	err := json.Unmarshal([]byte(text), &w.settings)
	if err == nil {
		err = w.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	return 0
}

type worker struct {
	settings
	bank *bank
	stop chan struct{} // closed when the parent wants it, or is gone
	hold atomic.Bool   // keep the next locks
}

func (w *worker) run() (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			w.hold.Store(true)
		}
		close(w.stop)
		time.AfterFunc(5*time.Second, cancel) // whatever it waits for
	}()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: w.Servers, SessionTimeout: w.SessionTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	w.bank = &bank{client: client, accounts: w.Accounts}
	for {
		select {
		case <-w.stop:
			return nil
		default:
		}
		from := 1 + rand.IntN(w.Accounts)
		to := 1 + (from+rand.IntN(w.Accounts-1))%w.Accounts
		if err := retry.Do(ctx, again, func(ctx context.Context) error { return w.transfer(ctx, from, to) }); err != nil {
			return err
		}
		fmt.Println("moved")
	}
}

// transfer moves money under the locks of both accounts. Without them, two workers read the
// same balance, and the later one overwrites what the earlier one wrote.
func (w *worker) transfer(ctx context.Context, from, to int) error {
	if w.Unlocked {
		return w.bank.move(ctx, w.bank.client.Transaction(), from, to)
	}
	hold, err := w.bank.locks(from, to).Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = hold.Release() }()
	if w.hold.Load() {
		fmt.Println("held", from, to)
		<-w.stop // or to be killed
		return nil
	}
	return w.bank.move(hold.Context(), hold.Transaction(), from, to) //nolint:contextcheck // it is a child of ctx
}
