package main

import (
	"bufio"
	"context"
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

// settings are what the parent tells its workers.
type settings struct {
	servers        string
	sessionTimeout time.Duration
	unlocked       bool
}

// again tries a transfer once more after whatever may pass: no server answers, or the
// locks were lost before anything was written.
var again = retry.Forever(100 * time.Millisecond).WithClassifier(func(err error) retry.Decision {
	if errors.Is(err, locks.ErrLockLost) {
		return retry.Again
	}
	return framework.Classify(err)
})

// work moves money until the parent closes our standard input, or is gone.
func work(s settings) (err error) {
	// Ctrl-C reaches every process of a terminal. When to end is the parent's business.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := make(chan struct{})
	var holdOn atomic.Bool
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			holdOn.Store(true)
		}
		close(stop)
		time.AfterFunc(5*time.Second, cancel) // whatever it waits for
	}()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: s.servers, SessionTimeout: s.sessionTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	b := bank{client}
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		from := 1 + rand.IntN(accounts)
		to := 1 + (from+rand.IntN(accounts-1))%accounts
		err := retry.Do(ctx, again, func(ctx context.Context) error {
			if s.unlocked {
				return b.move(ctx, client.Transaction(), from, to)
			}
			hold, err := b.locks(from, to).Acquire(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = hold.Release() }()
			if holdOn.Load() {
				fmt.Println("held", from, to)
				<-stop // or to be killed
				return nil
			}
			return b.move(hold.Context(), hold.Transaction(), from, to) //nolint:contextcheck // it is a child of ctx
		})
		if err != nil {
			return err
		}
		fmt.Println("moved")
	}
}
