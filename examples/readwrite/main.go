// Command readwrite shows a read/write lock: readers share it, a writer is
// alone, nobody overtakes, and a writer may stay on as a reader.
//
// It runs on a server of its own, or on yours with ZK_CONNECT_STRING=host:port,...
package main

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

func main() { playground.Main("readwrite", run) }

func run(ctx context.Context, servers string, out *log.Logger) (err error) {
	client, err := framework.Connect(ctx, framework.Config{ConnectString: servers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	catalog := locks.NewInterProcessReadWriteLock(client, "/locks/catalog")

	// The owner of a lock is the hold that a context comes from, so with the same
	// plain ctx these two are strangers, as two processes are.
	reader, err := catalog.ReadLock().Acquire(ctx)
	if err != nil {
		return err
	}
	written := make(chan error, 1)
	err = locks.Do(ctx, catalog.ReadLock(), func(inside context.Context) error {
		out.Println("two readers are in")

		// A writer queues behind them, and later readers behind the writer.
		go func() { written <- write(ctx, catalog, out) }()
		if err := untilQueued(ctx, catalog, 3); err != nil {
			return err
		}
		_, err := catalog.ReadLock().TryAcquire(ctx, 0)
		out.Println("a third reader has to wait for the writer:", errors.Is(err, locks.ErrNotAcquired))

		// A reader who wants to write would wait for itself, and is told so.
		_, err = catalog.WriteLock().Acquire(inside)
		out.Println("a reader cannot become the writer:", errors.Is(err, locks.ErrDeadlock))
		out.Println("the readers leave")
		return nil
	})
	if err != nil {
		return err
	}
	return errors.Join(reader.Release(), <-written)
}

// write takes the write side, and keeps the read side when it is done: nobody
// else writes between the two.
func write(ctx context.Context, catalog *locks.InterProcessReadWriteLock, out *log.Logger) error {
	var reader *locks.Hold
	err := locks.Do(ctx, catalog.WriteLock(), func(ctx context.Context) (err error) {
		out.Println("the writer is in, alone")
		reader, err = catalog.ReadLock().Acquire(ctx)
		return err
	})
	if err != nil {
		return err
	}
	out.Println("the writer has become a reader")
	return reader.Release()
}

// untilQueued waits until so many hold the lock or wait for it.
func untilQueued(ctx context.Context, catalog *locks.InterProcessReadWriteLock, n int) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		queue, err := catalog.ReadLock().Participants(ctx)
		if err != nil || len(queue) == n {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
