//go:build unix

// Command zkensemble runs real ZooKeeper servers on loopback until it is
// interrupted, and prints how to connect to them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/paddock-zk/paddock/internal/realzk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "zkensemble:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var opts realzk.Options
	flags := flag.NewFlagSet("zkensemble", flag.ContinueOnError)
	flags.IntVar(&opts.Servers, "servers", 1, "run `n` servers: 1, 3 or 5")
	flags.DurationVar(&opts.Tick, "tick", 0, "the servers' unit of time (default 500ms)")
	check := flags.Bool("check", false, "only say whether Java and ZooKeeper are there")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *check {
		install, err := realzk.Find()
		if err != nil {
			return err
		}
		fmt.Printf("java: %s\nclass path: %s\n", install.Java, install.ClassPath)
		return nil
	}
	e, err := realzk.Start(ctx, opts)
	if err != nil {
		return err
	}
	fmt.Println(e.ConnectString())
	fmt.Fprintln(os.Stderr, "data and logs are in", e.Dir(), "until this ends; press Ctrl-C")
	<-ctx.Done()
	return e.Close()
}
