// Command clientgo shows a controller that was written for client-go's leaderelection, with
// its callbacks, on an election in ZooKeeper: elector.go is the adapter.
//
// It runs on a server of its own, or on yours with ZK_CONNECT_STRING=host:port,...
package main

import (
	"context"
	"errors"
	"log"
	"sync"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/leader"
)

func main() { playground.Main("clientgo", run) }

// run has two replicas of a controller lead one after the other.
func run(ctx context.Context, servers string, out *log.Logger) (err error) {
	for _, name := range []string{"controller-0", "controller-1"} {
		client, failed := framework.Connect(ctx, framework.Config{ConnectString: servers})
		if failed != nil {
			return failed
		}
		err = errors.Join(err, control(ctx, client, name, out), client.Close())
	}
	return err
}

// control is a replica, in the form that it has with client-go.
func control(ctx context.Context, client *framework.Client, name string, out *log.Logger) error {
	known := make(chan struct{})
	var once sync.Once
	e := &Elector{
		Latch: leader.NewLatch(client, "/controllers/shop", leader.ID(name)),
		Callbacks: Callbacks{
			OnStartedLeading: func(ctx context.Context) {
				select { // work, until ctx ends
				case <-known:
				case <-ctx.Done():
				}
			},
			OnStoppedLeading: func() { out.Println(name, "has stopped") },
			OnNewLeader: func(identity string) {
				out.Println("the leader is", identity)
				once.Do(func() { close(known) })
			},
		},
	}
	return e.Run(ctx)
}
