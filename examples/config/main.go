// Command config shows a service that follows its configuration, which somebody changes while
// it runs. settings.go is all that the service needs for it.
//
// It runs on a server of its own, or on yours with ZK_CONNECT_STRING=host:port,...
package main

import (
	"context"
	"errors"
	"log"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/cache"
)

const workers, timeout = "/config/workers", "/config/timeout"

func main() { playground.Main("config", run) }

func run(ctx context.Context, servers string, out *log.Logger) (err error) {
	client, err := framework.Connect(ctx, framework.Config{ConnectString: servers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if _, err := client.Create(ctx, workers, []byte("4"), framework.Persistent, framework.Parents()); err != nil {
		return err
	}

	service, err := follow(client, "/config") //nolint:contextcheck // it lives until Close
	if err != nil {
		return err
	}
	defer service.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reloaded := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- service.reload(ctx, func(now *cache.Snapshot[int]) {
			out.Printf("%d workers, timeout %d", service.get(workers, 1), service.get(timeout, 30))
			for e := range now.All() {
				if e.Err != nil {
					out.Printf("%s is left as it was: %v", e.Path, e.Err)
				}
			}
			select {
			case reloaded <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}()

	// Somebody changes the configuration.
	for _, change := range []func() error{
		func() error {
			_, err := client.Set(ctx, workers, []byte("8"), framework.AnyVersion)
			return err
		},
		func() error { // both at once, or none
			tx := client.Transaction()
			tx.Set(workers, []byte("16"), framework.AnyVersion)
			tx.Create(timeout, []byte("5"), framework.Persistent)
			_, err := tx.Commit(ctx)
			return err
		},
		func() error {
			_, err := client.Set(ctx, workers, []byte("many"), framework.AnyVersion)
			return err
		},
	} {
		select {
		case <-reloaded:
		case err := <-done:
			return err
		}
		if err := change(); err != nil {
			return err
		}
	}
	<-reloaded
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
