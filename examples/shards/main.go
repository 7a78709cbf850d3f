// Command shards shows work that is divided among workers: each shard has an election, and
// the worker that leads it does its work. Workers that lead more than their share give way.
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

func main() { playground.Main("shards", run) }

const (
	shards = 4
	// look is how often a worker looks whether it leads more than its share.
	look = 20 * time.Millisecond
)

// worker stands in the elections of all shards.
type worker struct {
	client *framework.Client
	leave  context.CancelFunc
	done   sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	leads int        // shards
}

func start(ctx context.Context, servers, id string) (*worker, error) {
	client, err := framework.Connect(ctx, framework.Config{ConnectString: servers})
	if err != nil {
		return nil, err
	}
	ctx, leave := context.WithCancel(ctx)
	w := &worker{client: client, leave: leave}
	for i := range shards {
		shard := leader.NewSelector(client, fmt.Sprintf("/shards/%d", i), leader.ID(id))
		w.done.Go(func() {
			_ = shard.Run(ctx, func(ctx context.Context, term *leader.Term) error { return w.work(ctx, shard, term) })
		})
	}
	return w, nil
}

// work does the work of one shard. All workers stand for each shard, so the participants of
// one say how many workers there are.
func (w *worker) work(ctx context.Context, shard *leader.Selector, term *leader.Term) error {
	w.count(1)
	given := false
	defer func() {
		if !given {
			w.count(-1)
		}
	}()
	every := time.NewTicker(look)
	defer every.Stop()
	for {
		select {
		case <-every.C: // the work of the shard would be done here, under ctx
		case <-ctx.Done():
			return ctx.Err()
		}
		workers, err := shard.Participants(ctx)
		if err != nil {
			return err
		}
		if given = len(workers) > 1 && w.aboveShare(len(workers)); given {
			// Long enough for the others to lead, and short enough if they cannot.
			term.GiveWay(5 * look)
			return nil
		}
	}
}

func (w *worker) count(by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leads += by
}

// aboveShare takes one shard off the count if it is more than this worker's share.
func (w *worker) aboveShare(workers int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leads <= (shards+workers-1)/workers {
		return false
	}
	w.leads--
	return true
}

// lead waits until the worker leads so many shards.
func (w *worker) lead(ctx context.Context, n int) error {
	every := time.NewTicker(look)
	defer every.Stop()
	for {
		w.mu.Lock()
		leads := w.leads
		w.mu.Unlock()
		if leads == n {
			return nil
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *worker) stop() error {
	w.leave()
	w.done.Wait()
	return w.client.Close()
}

func run(ctx context.Context, servers string, out *log.Logger) (err error) {
	ann, err := start(ctx, servers, "ann")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ann.stop()) }()
	if err := ann.lead(ctx, 4); err != nil {
		return err
	}
	out.Println("Ann is alone and leads 4 shards")

	bob, err := start(ctx, servers, "bob")
	if err != nil {
		return err
	}
	if err := errors.Join(bob.lead(ctx, 2), ann.lead(ctx, 2)); err != nil {
		return errors.Join(err, bob.stop())
	}
	out.Println("Bob has come: each of them leads 2 shards")

	if err := bob.stop(); err != nil {
		return err
	}
	if err := ann.lead(ctx, 4); err != nil {
		return err
	}
	out.Println("Bob has gone: Ann leads 4 shards")
	return nil
}
