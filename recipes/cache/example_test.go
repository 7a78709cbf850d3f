package cache_test

import (
	"context"
	"fmt"
	"log"
	"strconv"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/cache"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A service that follows its configuration: each key is a node, whose data is a number.
func Example() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: srv.ConnectString()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Create(ctx, "/config/workers", []byte("4"), framework.Persistent, framework.Parents()); err != nil {
		log.Fatal(err)
	}

	number := func(path string, data []byte) (int, error) {
		if path == "/config" {
			return 0, nil
		}
		return strconv.Atoi(string(data))
	}
	config, err := cache.Start(client, "/config", number, cache.Depth(1))
	if err != nil {
		log.Fatal(err)
	}
	defer config.Close()

	for step, err := range config.Steps(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if step.Restart != nil {
			for entry := range step.Restart.Children("/config") {
				fmt.Println(entry.Path, "is", entry.Value)
			}
			if _, err := client.Set(ctx, "/config/workers", []byte("8"), framework.AnyVersion); err != nil {
				log.Fatal(err)
			}
			continue
		}
		for _, change := range step.Changes {
			fmt.Println(change.Path, "was", change.Old.Value, "and is", change.New.Value)
		}
		break
	}
	// Output:
	// /config/workers is 4
	// /config/workers was 4 and is 8
}
