//go:build unix

// Command zkensemble runs real ZooKeeper servers on loopback until it is
// interrupted, and prints how to connect to them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/paddock-zk/paddock/internal/test/realzk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "zkensemble:", err)
		}
		os.Exit(1)
	}
}

// checkLimit bounds the start of a server whose version is asked for.
const checkLimit = time.Minute

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	var opts realzk.Options
	flags := flag.NewFlagSet("zkensemble", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.IntVar(&opts.Servers, "servers", 1, "run `n` servers: 1, 3 or 5")
	flags.DurationVar(&opts.Tick, "tick", 0, "the servers' unit of time (default 500ms)")
	flags.StringVar(&opts.Suite, "suite", "", "run the ZooKeeper of a Debian `suite`, such as trixie, that was fetched (default ZK_SUITE, or else what is installed)")
	fetch := flags.Bool("fetch", false, "only download and unpack the suite's ZooKeeper and Curator; nothing is installed")
	check := flags.Bool("check", false, "only say whether Java and ZooKeeper are there, and which")
	version := flags.Bool("version", false, "only start a server and print its version")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected %q", flags.Arg(0))
	}
	switch {
	case *fetch:
		got, err := realzk.Fetch(ctx, opts.Suite)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, got)
		return err
	case *check:
		install, err := realzk.Find(opts.Suite)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "java: %s\nclass path: %s\n", install.Java, install.ClassPath)
		return err
	}
	e, err := realzk.Start(ctx, opts)
	if err != nil {
		return err
	}
	if *version {
		ctx, cancel := context.WithTimeout(ctx, checkLimit)
		defer cancel()
		version, err := e.Version(ctx)
		if err == nil {
			_, err = fmt.Fprintln(out, version)
		}
		return errors.Join(err, e.Close())
	}
	_, err = fmt.Fprintln(out, e.ConnectString())
	if err == nil {
		_, err = fmt.Fprintln(errs, "data and logs are in", e.Dir(), "until this ends; press Ctrl-C")
	}
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, e.Close())
}
