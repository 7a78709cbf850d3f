package playground

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"

	zktest "github.com/paddock-zk/paddock/testing"
)

// Example is what the main of an example does: it connects to the servers
// named and writes to out what there is to see.
type Example func(ctx context.Context, servers string, out *log.Logger) error

// Main is the main function of an example. Ctrl-C ends it, tidily, and so does the end of
// its terminal. If nobody reads its output any more, it goes on and cleans up all the same.
// The options are for a server of its own.
func Main(name string, example Example, opts ...zktest.Option) {
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := Run(ctx, name, os.Getenv(Variable), log.New(os.Stdout, "", 0), example, opts...)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// Run runs an example in a playground of its own; see Open.
func Run(ctx context.Context, name, servers string, out *log.Logger, example Example, opts ...zktest.Option) (err error) {
	p, err := Open(ctx, name, servers, opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }() //nolint:contextcheck // also after ctx has ended
	return example(ctx, p.ConnectString, out)
}
