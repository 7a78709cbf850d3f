package playground

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
)

// Example is what the main of an example does: it connects to the servers
// named and writes to out what there is to see.
type Example func(ctx context.Context, servers string, out *log.Logger) error

// Main is the main function of an example. SIGINT ends it, tidily.
func Main(name string, example Example) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := Run(ctx, name, os.Getenv(Variable), log.New(os.Stdout, "", 0), example)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// Run runs an example in a playground of its own; see Open.
func Run(ctx context.Context, name, servers string, out *log.Logger, example Example) (err error) {
	p, err := Open(ctx, name, servers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }() //nolint:contextcheck // also after ctx has ended
	return example(ctx, p.ConnectString, out)
}
