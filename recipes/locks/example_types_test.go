package locks_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// exampleClient gives an example a client on a server of its own.
func exampleClient() (client *framework.Client, stop func()) {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	client, err = framework.Connect(context.Background(), framework.Config{ConnectString: srv.ConnectString()})
	if err != nil {
		log.Fatal(err)
	}
	return client, func() { _ = client.Close(); _ = srv.Close() }
}

func exampleHold(ctx context.Context, lock locks.Lock) *locks.Hold {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	return hold
}

// Any kind of lock can be passed to a function that needs one.
func ExampleLock() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	report := func(lock locks.Lock) error {
		return locks.Do(ctx, lock, func(context.Context) error {
			fmt.Println("reporting")
			return nil
		})
	}
	fmt.Println(report(locks.NewInterProcessMutex(client, "/locks/report")))
	fmt.Println(report(locks.NewInterProcessSemaphoreMutex(client, "/locks/other-report")))
	// Output:
	// reporting
	// <nil>
	// reporting
	// <nil>
}

// A mutex can be entered again with the context of its hold.
func ExampleInterProcessMutex() {
	client, stop := exampleClient()
	defer stop()

	mutex := locks.NewInterProcessMutex(client, "/locks/orders")
	outer := exampleHold(context.Background(), mutex)
	inner := exampleHold(outer.Context(), mutex) // the same node, no round trip
	fmt.Println(inner.Path() == outer.Path())
	fmt.Println(inner.Release(), outer.Release())
	// Output:
	// true
	// <nil> <nil>
}

// A semaphore mutex cannot be entered again: it says so and does not wait.
func ExampleInterProcessSemaphoreMutex() {
	client, stop := exampleClient()
	defer stop()

	mutex := locks.NewInterProcessSemaphoreMutex(client, "/locks/orders")
	hold := exampleHold(context.Background(), mutex)
	defer hold.Release()
	_, err := mutex.Acquire(hold.Context())
	fmt.Println(errors.Is(err, locks.ErrDeadlock))
	// Output: true
}

// The options of a lock say how it acquires.
func ExampleOption() {
	client, stop := exampleClient()
	defer stop()

	mutex := locks.NewInterProcessMutex(client, "/locks/orders",
		locks.NodeData([]byte("worker 7")), // for others to read
		locks.ReleaseWait(5*time.Second),   // wait so long for the servers to confirm a release
		locks.FailOnSessionLoss())          // do not queue again if the session expires
	hold := exampleHold(context.Background(), mutex)
	defer hold.Release()
	data, _, err := client.Get(context.Background(), hold.Path())
	fmt.Printf("%s %v\n", data, err)
	// Output: worker 7 <nil>
}

// Participants shows who holds a lock and who waits for it.
func ExampleParticipant() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	mutex := locks.NewInterProcessMutex(client, "/locks/orders", locks.NodeData([]byte("worker 7")))
	defer exampleHold(ctx, mutex).Release()
	queue, err := mutex.Participants(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range queue {
		fmt.Printf("%s holds it: %v; a session of ours: %v\n", p.Data, p.Holds, p.Session == client.SessionID())
	}
	// Output: worker 7 holds it: true; a session of ours: true
}

// Someone who has waited for long enough learns who was in the way.
func ExampleWaitError() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	mutex := locks.NewInterProcessMutex(client, "/locks/orders")
	hold := exampleHold(ctx, mutex)
	defer hold.Release()

	_, err := mutex.TryAcquire(ctx, 10*time.Millisecond)
	var wait *locks.WaitError
	if errors.As(err, &wait) {
		fmt.Println(wait.Lock, wait.Holder == hold.Path(), wait.Local, errors.Is(err, locks.ErrNotAcquired))
	}
	// Output: /locks/orders true true true
}

// A hold that is lost ends its context, and says why.
func ExampleLostError() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	hold := exampleHold(ctx, locks.NewInterProcessMutex(client, "/locks/orders"))
	if err := client.Delete(ctx, hold.Path(), framework.AnyVersion); err != nil { // as an operator might
		log.Fatal(err)
	}
	<-hold.Context().Done()
	cause := context.Cause(hold.Context())
	var lost *locks.LostError
	fmt.Println(errors.As(cause, &lost) && lost.Path == hold.Path(), errors.Is(cause, locks.ErrLockLost))
	fmt.Println(errors.Is(hold.Release(), locks.ErrLockLost))
	// Output:
	// true true
	// true
}

// Listen tells each change of a hold's state, and State tells the present one.
func ExampleHoldState() {
	client, stop := exampleClient()
	defer stop()

	hold := exampleHold(context.Background(), locks.NewInterProcessMutex(client, "/locks/orders"))
	fmt.Println(hold.State(), hold.Err())
	_ = hold.Release()
	fmt.Println(hold.State() == locks.Released)
	// Output:
	// HELD <nil>
	// true
}

// The servers apply a hold's transaction while the lock is held, or not at all.
func ExampleTransaction() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()
	if _, err := client.Create(ctx, "/account", []byte("100"), framework.Persistent); err != nil {
		log.Fatal(err)
	}

	hold := exampleHold(ctx, locks.NewInterProcessMutex(client, "/locks/account"))
	tx := hold.Transaction()
	tx.Set("/account", []byte("90"), framework.AnyVersion)
	_, err := tx.Commit(ctx)
	fmt.Println("applied:", err)

	if err := client.Delete(ctx, hold.Path(), framework.AnyVersion); err != nil { // the lock is gone
		log.Fatal(err)
	}
	tx = hold.Transaction()
	tx.Set("/account", []byte("80"), framework.AnyVersion)
	_, err = tx.Commit(ctx)
	data, _, _ := client.Get(ctx, "/account")
	fmt.Printf("refused: %v, the balance is %s\n", errors.Is(err, locks.ErrLockLost), data)
	// Output:
	// applied: <nil>
	// refused: true, the balance is 90
}

// A gate in front of a resource refuses holders that others have followed.
func ExampleGate() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	mutex := locks.NewInterProcessMutex(client, "/locks/orders")
	first := exampleHold(ctx, mutex)
	earlier := first.FencingToken()
	_ = first.Release()
	second := exampleHold(ctx, mutex)
	defer second.Release()

	var gate locks.Gate // in the resource
	fmt.Println(gate.Admit(second.FencingToken()))
	fmt.Println(errors.Is(gate.Admit(earlier), locks.ErrFenced))
	// Output:
	// <nil>
	// true
}
