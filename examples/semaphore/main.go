// Command semaphore shows leases: six downloads, of which no more than two run
// at a time, however many processes they are spread over.
//
// It runs on a server of its own, or on yours with ZK_CONNECT_STRING=host:port,...
package main

import (
	"context"
	"errors"
	"log"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

const (
	downloads = 6
	leases    = 2
)

func main() { playground.Main("semaphore", run) }

func run(ctx context.Context, servers string, out *log.Logger) (err error) {
	client, err := framework.Connect(ctx, framework.Config{ConnectString: servers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()

	// Every process has to state the same number of leases.
	slots := locks.NewInterProcessSemaphore(client, "/locks/downloads", leases)
	var running, most atomic.Int32
	done := make(chan error, downloads)
	for range downloads {
		go func() {
			done <- locks.Do(ctx, slots, func(ctx context.Context) error {
				defer running.Add(-1)
				raise(&most, running.Add(1))
				return download(ctx)
			})
		}()
	}
	for range downloads {
		err = errors.Join(err, <-done)
	}
	if err != nil {
		return err
	}
	out.Printf("%d downloads are done, at most %d ran at a time", downloads, most.Load())

	// Several leases can be taken as one, all or none, and given back one by one.
	both, err := slots.AcquireN(ctx, leases)
	if err != nil {
		return err
	}
	_, err = slots.TryAcquire(ctx, 0)
	out.Println("one caller has both leases, there is no third:", errors.Is(err, locks.ErrNotAcquired))
	if err := both.Members()[0].Release(); err != nil {
		return errors.Join(err, both.Release())
	}
	one, err := slots.Acquire(ctx)
	if err != nil {
		return errors.Join(err, both.Release())
	}
	out.Println("it gave one back, and somebody else has it")
	return errors.Join(one.Release(), both.Release())
}

// download stands for work that notices when its context ends.
func download(ctx context.Context) error {
	t := time.NewTimer(20 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// raise makes most at least n.
func raise(most *atomic.Int32, n int32) {
	for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
	}
}
