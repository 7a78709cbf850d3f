// Command mutex shows a lock between two instances of a service: how it is
// taken and given back, who waits, and how its holder learns that it is gone.
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

func main() { playground.Main("mutex", run) }

func run(ctx context.Context, servers string, out *log.Logger) (err error) {
	// Two clients have two sessions, as two processes would. One process needs
	// no more than one, for all of its goroutines.
	ann, err := framework.Connect(ctx, framework.Config{ConnectString: servers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ann.Close()) }()
	bob, err := framework.Connect(ctx, framework.Config{ConnectString: servers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bob.Close()) }()

	// A lock object is cheap and sends nothing, so make it where you need it.
	// What makes it the same lock is the path.
	annLock := locks.NewInterProcessMutex(ann, "/locks/nightly")
	bobLock := locks.NewInterProcessMutex(bob, "/locks/nightly")

	// Do takes the lock, calls the function, and gives the lock back.
	err = locks.Do(ctx, annLock, func(ctx context.Context) error {
		out.Println("Ann has the lock")

		// The argument of TryAcquire limits the wait; with Acquire, only the
		// context does.
		_, err := bobLock.TryAcquire(ctx, 50*time.Millisecond)
		out.Println("Bob has tried for 50ms, in vain:", errors.Is(err, locks.ErrNotAcquired))

		// A function called with this context has the lock already.
		return locks.Do(ctx, annLock, func(context.Context) error {
			out.Println("Ann has entered it a second time")
			return nil
		})
	})
	if err != nil {
		return err
	}

	// Acquire and Release are the two halves of Do.
	hold, err := bobLock.Acquire(ctx)
	if err != nil {
		return err
	}
	out.Println("Bob has the lock")

	// An operator removes Bob's node, or Bob's session ends, or no server
	// answers for too long: each ends the context that Bob works under.
	if err := ann.Delete(ctx, hold.Path(), framework.AnyVersion); err != nil {
		return err
	}
	<-hold.Context().Done()
	out.Println("Bob stops, since the lock is lost:", errors.Is(hold.Err(), locks.ErrLockLost))
	if err := hold.Release(); !errors.Is(err, locks.ErrLockLost) {
		return err
	}
	return nil
}
