package locks_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// server is a ZooKeeper for the examples; yours has an address of its own.
func server() (connectString string, stop func()) {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	return srv.ConnectString(), func() { _ = srv.Close() }
}

// A service takes a lock, works under it, and knows at once when it is gone.
func Example() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()

	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	hold, err := locks.NewInterProcessMutex(client, "/locks/orders").Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer hold.Release()

	work := func(ctx context.Context) error { // ctx ends when the lock may be gone
		fmt.Println("working")
		return ctx.Err()
	}
	fmt.Println(work(hold.Context()))
	// Output:
	// working
	// <nil>
}

func ExampleDo() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	mutex := locks.NewInterProcessMutex(client, "/locks/orders")
	var inner = func(ctx context.Context) error {
		return locks.Do(ctx, mutex, func(context.Context) error { // re-enters, without network
			fmt.Println("still ours")
			return nil
		})
	}
	fmt.Println(locks.Do(ctx, mutex, inner))
	// Output:
	// still ours
	// <nil>
}

func ExampleTryDo() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	mutex := locks.NewInterProcessMutex(client, "/locks/nightly")
	hold, err := mutex.Acquire(ctx) // somebody has it
	if err != nil {
		log.Fatal(err)
	}
	defer hold.Release()

	err = locks.TryDo(ctx, mutex, 10*time.Millisecond, func(context.Context) error {
		fmt.Println("never")
		return nil
	})
	switch {
	case errors.Is(err, locks.ErrNotAcquired):
		fmt.Println("somebody else is at it")
	case errors.Is(err, framework.ErrNotConnected):
		fmt.Println("no server could be asked")
	}
	// Output: somebody else is at it
}

func ExampleInterProcessReadWriteLock() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	lock := locks.NewInterProcessReadWriteLock(client, "/locks/catalogue")
	write, err := lock.WriteLock().Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("alone")

	// Go on reading, with no other writer in between.
	read, err := lock.ReadLock().Acquire(write.Context())
	if err != nil {
		log.Fatal(err)
	}
	write.Release()
	other, err := lock.ReadLock().Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("together")

	_, err = lock.WriteLock().Acquire(read.Context())
	fmt.Println(errors.Is(err, locks.ErrDeadlock))
	other.Release()
	read.Release()
	// Output:
	// alone
	// together
	// true
}

func ExampleInterProcessSemaphore() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	printers := locks.NewInterProcessSemaphore(client, "/printers", 3)
	two, err := printers.AcquireN(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer two.Release()
	one, err := printers.TryAcquire(ctx, 0)
	fmt.Println("the third:", err)
	defer one.Release()
	_, err = printers.TryAcquire(ctx, 0)
	fmt.Println("a fourth:", errors.Is(err, locks.ErrNotAcquired))
	// Output:
	// the third: <nil>
	// a fourth: true
}

func ExampleInterProcessMultiLock() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	account := func(id string) *locks.InterProcessMutex {
		return locks.NewInterProcessMutex(client, "/locks/accounts/"+id)
	}
	both := locks.NewInterProcessMultiLock(account("ann"), account("bob"))
	err = locks.Do(ctx, both, func(ctx context.Context) error {
		fmt.Println(account("ann").HeldBy(ctx), account("bob").HeldBy(ctx), account("eve").HeldBy(ctx))
		return nil
	})
	fmt.Println(err)
	// Output:
	// true true false
	// <nil>
}

// A leader serves requests whose contexts do not come from the one that it
// acquired with.
func ExampleHold_Bind() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	leader := locks.NewInterProcessMutex(client, "/leader")
	hold, err := leader.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer hold.Release()

	request, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	request, cancel := hold.Bind(request) // ends with the request, and with the lock
	defer cancel()
	fmt.Println(leader.HeldBy(request))
	// Output: true
}

// Two locks are taken hand over hand. The context of the second hold would end with the
// first one, under which it was acquired. Bind gives it one of its own.
func ExampleHold_Bind_handOverHand() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	first, err := locks.NewInterProcessMutex(client, "/list/1").Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer first.Release()
	second, err := locks.NewInterProcessMutex(client, "/list/2").Acquire(first.Context())
	if err != nil {
		log.Fatal(err)
	}
	defer second.Release()
	onSecond, cancel := second.Bind(ctx)
	defer cancel()
	fmt.Println(first.Release())
	fmt.Println("acquired under the first:", second.Context().Err())
	fmt.Println("bound:", onSecond.Err(), second.State())
	// Output:
	// <nil>
	// acquired under the first: context canceled
	// bound: <nil> HELD
}

func ExampleAttemptRevoke() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	mutex := locks.NewInterProcessMutex(client, "/locks/report", locks.Revocable())
	hold, err := mutex.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	all, err := mutex.Participants(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range all {
		if p.Holds {
			fmt.Println("asking:", locks.AttemptRevoke(ctx, client, p.Path))
		}
	}
	<-hold.Revoked()
	fmt.Println("giving way:", hold.Release())
	// Output:
	// asking: <nil>
	// giving way: <nil>
}

// An election is a mutex with the nodes of Curator's recipe. Package recipes/leader is built on it.
func ExampleNewElection() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	election := locks.NewElection(client, monitor.Latch, "/app/leader", locks.NodeData([]byte("replica-1")))
	term, err := election.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer term.Release()
	leads, err := election.First(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(election, leads == term.Path())
	// Output: latch /app/leader true
}
