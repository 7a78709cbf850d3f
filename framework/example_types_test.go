package framework_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/paddock-zk/paddock/framework"
)

func exampleClient() (client *framework.Client, stop func()) {
	zk, stopServer := server()
	client, err := framework.Connect(context.Background(), framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	return client, func() { _ = client.Close(); stopServer() }
}

// A wrong configuration is refused before anything is sent.
func ExampleConfigError() {
	_, err := framework.Connect(context.Background(), framework.Config{ConnectString: "zk1:2181", SessionTimeout: -time.Second})
	var wrong *framework.ConfigError
	if errors.As(err, &wrong) {
		fmt.Println(wrong.Field)
	}
	// Output: SessionTimeout
}

// The error of a call has the operation, the path and the reason.
func ExampleOpError() {
	client, stop := exampleClient()
	defer stop()

	_, _, err := client.Get(context.Background(), "/app/config")
	var op *framework.OpError
	if errors.As(err, &op) {
		fmt.Println(op.Op, op.Path, errors.Is(err, framework.ErrNoNode))
	}
	// Output: get /app/config true
}

// Modes say how long a node lives, and who names it.
func ExampleMode() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	first, err := client.Create(ctx, "/job-", nil, framework.PersistentSequential)
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Create(ctx, "/alive", nil, framework.Ephemeral) // goes with the session
	fmt.Println(first, err)
	// Output: /job-0000000000 <nil>
}

// A stat has what is known of a node besides its data.
func ExampleStat() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	if _, err := client.Create(ctx, "/config", []byte("blue"), framework.Persistent); err != nil {
		log.Fatal(err)
	}
	stat, err := client.Set(ctx, "/config", []byte("green"), 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stat.Version, stat.DataLength, stat.NumChildren, stat.EphemeralOwner)
	// Output: 1 5 0 0
}

// A transaction is applied as a whole, or its error names the operation that
// was refused.
func ExampleTransactionError() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	tx := client.Transaction()
	tx.Create("/a", nil, framework.Persistent)
	tx.Check("/b", 3)
	_, err := tx.Commit(ctx)
	var refused *framework.TransactionError
	if errors.As(err, &refused) {
		fmt.Println(refused.Index, refused.Path, errors.Is(err, framework.ErrNoNode))
	}
	exists, _, _ := client.Exists(ctx, "/a")
	fmt.Println("made /a:", exists)
	// Output:
	// 1 /b true
	// made /a: false
}

// An event says what has happened to a node that is watched.
func ExampleEvent() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	_, _, watch, err := client.ExistsW(ctx, "/ready")
	if err != nil {
		log.Fatal(err)
	}
	defer watch.Stop()
	if _, err := client.Create(ctx, "/ready", nil, framework.Persistent); err != nil {
		log.Fatal(err)
	}
	event := <-watch.C
	fmt.Println(event.Type, event.Path, event.Err)
	// Output: NodeCreated /ready <nil>
}

// A credential is printed without its data.
func ExampleAuth() {
	fmt.Println(framework.Auth{Scheme: "digest", Data: []byte("ann:secret")})
	// Output: digest:***
}
