package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/leader"
	zktest "github.com/paddock-zk/paddock/testing"
)

// client is a client of a ZooKeeper for the examples; yours has an address of its own.
func client() (c *framework.Client, stop func()) {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	c, err = framework.Connect(context.Background(), framework.Config{ConnectString: srv.ConnectString()})
	if err != nil {
		log.Fatal(err)
	}
	return c, func() {
		_ = c.Close()
		_ = srv.Close()
	}
}

// A process runs a function in each term in which it leads.
func ExampleLatch() {
	zk, stop := client()
	defer stop()
	latch := leader.NewLatch(zk, "/app/leader", leader.ID("one"))
	terms := 0
	err := latch.Run(context.Background(), func(ctx context.Context, term *leader.Term) error {
		terms++
		fmt.Println(latch.ID(), "leads for the", terms, "time:", term.State())
		if terms == 2 {
			return leader.ErrLeave
		}
		return nil // stand again
	})
	fmt.Println(err)
	// Output:
	// one leads for the 1 time: HELD
	// one leads for the 2 time: HELD
	// <nil>
}

// Candidates on the nodes of Curator's LeaderSelector, listed in order.
func ExampleSelector() {
	zk, stop := client()
	defer stop()
	ctx := context.Background()
	term, err := leader.NewSelector(zk, "/app/selected", leader.ID("one")).Await(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer term.Release()
	all, err := leader.NewSelector(zk, "/app/selected").Participants(ctx)
	for _, p := range all {
		fmt.Println(p.ID, p.Leads, p.Number == term.Number(), err)
	}
	// Output: one true true <nil>
}

// A term is a hold: its transactions are applied only while it lasts.
func ExampleTerm() {
	zk, stop := client()
	defer stop()
	ctx := context.Background()
	for term, err := range leader.NewLatch(zk, "/app/leader").Terms(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		tx := term.Transaction()
		tx.Create("/schedule", []byte("done"), framework.Persistent)
		_, err = tx.Commit(term.Context())
		fmt.Println(term.State(), err)

		term.GiveWay(time.Minute)
		fmt.Println(errors.Is(context.Cause(term.Context()), leader.ErrSteppedDown))
		break // leaves the election
	}
	// Output:
	// HELD <nil>
	// true
}

// A process that does not stand asks who leads.
func ExampleObservation() {
	zk, stop := client()
	defer stop()
	ctx := context.Background()
	term, err := leader.NewLatch(zk, "/app/leader", leader.ID("one")).Await(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for now, err := range leader.NewLatch(zk, "/app/leader").Observe(ctx) {
		switch {
		case err != nil:
			log.Fatal(err)
		case !now.Known:
			fmt.Println("not known")
		case now.Leader != nil:
			fmt.Println(now.Leader.ID, "leads")
			_ = term.Release()
			continue
		}
		fmt.Println("nobody leads")
		break
	}
	// Output:
	// one leads
	// nobody leads
}
