// Command unittest is a small application with unit tests that need no ZooKeeper.
// nightly.go is what it does. nightly_test.go and nightly_time_test.go test it, and
// this file only runs it.
//
// It runs on a server of its own, or on yours with ZK_CONNECT_STRING=host:port,...
package main

import (
	"context"
	"errors"
	"log"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/framework"
)

func main() { playground.Main("unittest", run) }

func run(ctx context.Context, servers string, out *log.Logger) (err error) {
	client, err := framework.Connect(ctx, framework.Config{ConnectString: servers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()

	report := &Nightly{Client: client, Work: func(context.Context) error {
		out.Println("the report is being written")
		return nil
	}}
	for _, day := range []string{"monday", "monday", "tuesday"} {
		did, err := report.Run(ctx, day)
		if err != nil {
			return err
		}
		out.Printf("%s: done now %t", day, did)
	}
	return nil
}
