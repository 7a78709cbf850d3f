package framework_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/retry"
)

// Listeners of the breaker's states do not hear of short outages.
func ExampleCircuitBreaker() {
	client, stop := exampleClient()
	defer stop()

	breaker := framework.NewCircuitBreaker(client.States(), retry.Forever(10*time.Second))
	defer breaker.Close()
	states := breaker.States().Subscribe()
	defer states.Stop()
	fmt.Println(<-states.C)
	// Output: CONNECTED
}

// A client writes and reads compressed nodes in calls that have the option Compressed.
func ExampleCompression() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk, Compression: framework.Gzip()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	if _, err := client.Create(ctx, "/page", []byte("hello"), framework.Persistent, framework.Compressed()); err != nil {
		log.Fatal(err)
	}
	stored, _, _ := client.Get(ctx, "/page")
	page, _, err := client.Get(ctx, "/page", framework.Compressed())
	fmt.Println(string(stored) == "hello", string(page), err)
	// Output: false hello <nil>
}

// One option makes Create, Set and Get compress.
func ExampleCompressedOption() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	compressed := framework.Compressed()
	if _, err := client.Create(ctx, "/page", []byte("one"), framework.Persistent, compressed); err != nil {
		log.Fatal(err)
	}
	if _, err := client.Set(ctx, "/page", []byte("two"), framework.AnyVersion, compressed); err != nil {
		log.Fatal(err)
	}
	page, _, err := client.Get(ctx, "/page", compressed)
	fmt.Println(string(page), err)
	// Output: two <nil>
}

// Options of Delete can be combined.
func ExampleDeleteOption() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	if _, err := client.Create(ctx, "/jobs/1/log", nil, framework.Persistent, framework.Parents()); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		fmt.Println(client.Delete(ctx, "/jobs", framework.AnyVersion, framework.Recursive(), framework.IfExists()))
	}
	// Output:
	// <nil>
	// <nil>
}

// Get takes the options that say how data is read.
func ExampleGetOption() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	read := []framework.GetOption{framework.Compressed()}
	_, _, err := client.Get(ctx, "/page", read...)
	fmt.Println(errors.Is(err, framework.ErrNoNode))
	// Output: true
}

// Set takes the options that say how data is written.
func ExampleSetOption() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	if _, err := client.Create(ctx, "/mode", nil, framework.Persistent); err != nil {
		log.Fatal(err)
	}
	write := []framework.SetOption{framework.Idempotent()}
	stat, err := client.Set(ctx, "/mode", []byte("blue"), framework.AnyVersion, write...)
	fmt.Println(stat.Version, err)
	// Output: 1 <nil>
}

// A write that may be repeated is repeated after a lost reply, instead of ErrOutcomeUnknown.
func ExampleIdempotentOption() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	again := framework.Idempotent()
	path, err := client.Create(ctx, "/ready", nil, framework.Persistent, again)
	fmt.Println(path, err, client.Delete(ctx, "/ready", framework.AnyVersion, again))
	// Output: /ready <nil> <nil>
}

// Commit takes the options that say what a lost reply means.
func ExampleCommitOption() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	tx := client.Transaction()
	tx.Create("/account", []byte("0"), framework.Persistent)
	results, err := tx.Commit(ctx, framework.Idempotent())
	fmt.Println(len(results), err)
	// Output: 1 <nil>
}

// Functions that add writes to a transaction take its Ops.
func ExampleOps() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	queue := func(ops *framework.Ops, jobs ...string) {
		for _, job := range jobs {
			ops.Create("/"+job, nil, framework.Persistent)
		}
	}
	tx := client.Transaction()
	queue(&tx.Ops, "print", "mail")
	results, err := tx.Commit(ctx)
	fmt.Println(len(results), err)
	// Output: 2 <nil>
}

// The lease by quorum, the default, also holds where a server is cut off from its leader.
func ExampleSessionLease() {
	zk, stop := server()
	defer stop()
	client, err := framework.Connect(context.Background(), framework.Config{ConnectString: zk, SessionLease: framework.LeaseByQuorum})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	fmt.Println(client.State())
	// Output: CONNECTED
}
