// Command scheduler shows a schedule that one of three replicas runs: who leads, what the
// others see, and how the next one takes over.
//
// It runs on a server of its own, or on yours with ZK_CONNECT_STRING=host:port,...
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/leader"
)

func main() { playground.Main("scheduler", run) }

// replica is one process of the service, most of which is its client.
type replica struct {
	client *framework.Client
	latch  *leader.Latch
	leave  context.CancelFunc
	done   sync.WaitGroup
}

// start starts a replica and waits until it stands in the election.
func start(ctx context.Context, servers, id string, jobs chan<- string) (*replica, error) {
	client, err := framework.Connect(ctx, framework.Config{ConnectString: servers})
	if err != nil {
		return nil, err
	}
	ctx, leave := context.WithCancel(ctx)
	r := &replica{client: client, latch: leader.NewLatch(client, "/scheduler", leader.ID(id)), leave: leave}
	r.done.Go(func() {
		// Run returns when the replica leaves.
		_ = r.latch.Run(ctx, func(ctx context.Context, term *leader.Term) error { return schedule(ctx, term, id, jobs) })
	})
	return r, nil
}

// schedule runs jobs for as long as this replica leads.
func schedule(ctx context.Context, term *leader.Term, id string, jobs chan<- string) error {
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		// The servers note the job only if this term lasts. A former leader that has not
		// heard of the end of its term is refused.
		tx := term.Transaction()
		tx.Set("/last-job", []byte(id), framework.AnyVersion)
		if _, err := tx.Commit(ctx); err != nil {
			return err
		}
		select {
		case jobs <- id:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *replica) stop() error {
	r.leave()
	r.done.Wait()
	return r.client.Close()
}

func run(ctx context.Context, servers string, out *log.Logger) (err error) {
	jobs := make(chan string)
	var replicas []*replica
	defer func() {
		for _, r := range replicas {
			err = errors.Join(err, r.stop())
		}
	}()
	for i := range 3 {
		r, err := start(ctx, servers, fmt.Sprintf("replica-%d", i+1), jobs)
		if err != nil {
			return err
		}
		replicas = append(replicas, r)
		if i == 0 {
			if err := r.client.EnsurePath(ctx, "/last-job"); err != nil {
				return err
			}
		}
		if err := stands(ctx, r.latch, i+1); err != nil {
			return err
		}
	}

	// A process can ask who leads without standing in the election.
	for i := range replicas {
		for now, err := range replicas[2].latch.Observe(ctx) {
			if err != nil {
				return err
			}
			if now.Leader == nil {
				continue // nobody leads at this moment, or it is not known
			}
			out.Println(now.Leader.ID, "leads")
			break
		}
		for range 3 {
			out.Println("a job by", <-jobs)
		}
		if i == 2 {
			break
		}
		// The leader is stopped, as in a rolling update. The next one in line leads.
		out.Printf("replica-%d leaves", i+1)
		replicas[i].leave()
		replicas[i].done.Wait()
	}
	return nil
}

// stands waits until so many candidates stand.
func stands(ctx context.Context, latch *leader.Latch, n int) error {
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for {
		all, err := latch.Participants(ctx)
		if err != nil || len(all) == n {
			return err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
