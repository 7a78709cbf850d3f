package framework_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sort"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/retry"
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

func Example() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()

	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	if _, err := client.Create(ctx, "/app/config", []byte("blue"), framework.Persistent, framework.Parents()); err != nil {
		log.Fatal(err)
	}
	data, stat, err := client.Get(ctx, "/app/config")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s at version %d\n", data, stat.Version)
	_, err = client.Set(ctx, "/app/config", []byte("green"), 7)
	fmt.Println(errors.Is(err, framework.ErrBadVersion))
	// Output:
	// blue at version 0
	// true
}

func ExampleClient_States() {
	zk, stop := server()
	defer stop()
	client, err := framework.Connect(context.Background(), framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	states := client.States().Subscribe()
	defer states.Stop()
	switch s := <-states.C; s {
	case listeners.Connected, listeners.Reconnected:
		fmt.Println(s, "go on")
	case listeners.Suspended:
		fmt.Println(s, "slow down")
	case listeners.Lost:
		fmt.Println(s, "ephemeral nodes and locks are gone")
	}
	// Output: CONNECTED go on
}

func ExampleClient_GetW() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Create(ctx, "/config", []byte("blue"), framework.Persistent); err != nil {
		log.Fatal(err)
	}

	data, _, watch, err := client.GetW(ctx, "/config")
	if err != nil {
		log.Fatal(err)
	}
	defer watch.Stop()
	fmt.Printf("%s\n", data)
	if _, err := client.Set(ctx, "/config", []byte("green"), framework.AnyVersion); err != nil {
		log.Fatal(err)
	}
	event := <-watch.C
	fmt.Println(event.Type, event.Path)
	// Output:
	// blue
	// NodeDataChanged /config
}

func ExampleClient_ReadAll() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Create(ctx, "/app/a", []byte("blue"), framework.Persistent, framework.Parents()); err != nil {
		log.Fatal(err)
	}

	results, err := client.ReadAll(ctx, framework.Read{Path: "/app", Children: true}, framework.Read{Path: "/app/a"}, framework.Read{Path: "/app/b"})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Printf("%s: %q %s %v\n", r.Path, r.Names, r.Data, r.Err)
	}
	// Output:
	// /app: ["a"]  <nil>
	// /app/a: [] blue <nil>
	// /app/b: []  get /app/b: zk: node does not exist
}

func ExampleClient_Keep() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	node, err := client.Keep(ctx, "/workers/a", []byte("10.0.0.7:8080"), framework.Parents())
	if err != nil {
		log.Fatal(err)
	}
	// From here on the node is there, in each session of the client.
	workers, _, err := client.Children(ctx, "/workers")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(workers, node.Err())
	if err := node.Remove(ctx); err != nil {
		log.Fatal(err)
	}
	workers, _, err = client.Children(ctx, "/workers")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(workers)
	// Output:
	// [a] <nil>
	// []
}

// A background goroutine that the client's Close waits for.
func ExampleClient_Go() {
	zk, stop := server()
	defer stop()
	client, err := framework.Connect(context.Background(), framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Go(func(ctx context.Context) {
		<-ctx.Done() // it would do something until then
		fmt.Println("work ends:", context.Cause(ctx))
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("closed")
	// Output:
	// work ends: client is closed
	// closed
}

// What a recipe shows is in metrics and on the page of recipes/lockpage, too.
func ExampleClient_Show() {
	zk, stop := server()
	defer stop()
	client, err := framework.Connect(context.Background(), framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	shown, err := client.Show("/party", func() monitor.Entry {
		return monitor.Entry{Kind: "party", State: "open", Numbers: map[string]int64{"guests": 71}}
	})
	if err != nil {
		log.Fatal(err)
	}
	defer shown.Remove()
	for _, e := range client.Entries() {
		fmt.Println(e.Kind, e.Path, e.State, e.Numbers)
	}
	// Output: party /party open map[guests:71]
}

func ExampleClient_Subscribe() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	sub, err := client.Subscribe(ctx, "/app", framework.Subtree())
	if err != nil {
		log.Fatal(err)
	}
	defer sub.Stop()
	if _, err := client.Create(ctx, "/app/config", []byte("blue"), framework.Persistent, framework.Parents()); err != nil {
		log.Fatal(err)
	}
	for event, err := range sub.Events(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		switch event.Type {
		case framework.Established:
			fmt.Println("read what is there now")
		case framework.Gap:
			fmt.Println("changes may be missed:", event.Err)
		default:
			fmt.Println(event.Type, event.Path)
		}
		if event.Path == "/app/config" {
			break
		}
	}
	// Output:
	// read what is there now
	// NodeCreated /app
	// NodeCreated /app/config
}

func ExampleClient_Transaction() {
	zk, stop := server()
	defer stop()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: zk})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Create(ctx, "/a", []byte("10"), framework.Persistent); err != nil {
		log.Fatal(err)
	}

	tx := client.Transaction()
	tx.Create("/b", []byte("5"), framework.Persistent)
	tx.Set("/a", []byte("5"), 3) // somebody else's version
	_, err = tx.Commit(ctx)
	var refused *framework.TransactionError
	if errors.As(err, &refused) {
		fmt.Println("operation", refused.Index, "was refused:", errors.Is(err, framework.ErrBadVersion))
	}
	names, _, err := client.Children(ctx, "/")
	if err != nil {
		log.Fatal(err)
	}
	sort.Strings(names)
	fmt.Println(names)
	// Output:
	// operation 1 was refused: true
	// [a zookeeper]
}

func ExampleConfig_retry() {
	zk, stop := server()
	defer stop()
	client, err := framework.Connect(context.Background(), framework.Config{
		ConnectString: zk,
		Namespace:     "shop",
		Retry:         retry.NTimes(3, 0).Named("zookeeper"),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	path, err := client.Create(context.Background(), "/orders", nil, framework.Persistent)
	fmt.Println(path, err)
	// Output: /orders <nil>
}
