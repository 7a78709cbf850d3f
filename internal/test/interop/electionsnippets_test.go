package interop

import (
	"context"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/leader"
)

// What docs/from-curator.md shows of elections in Go, as snippets_test.go of the rest.

func leaderLatch(ctx context.Context, client *framework.Client, path, id string, work work) error {
	// snippet: leader-latch
	term, err := leader.NewLatch(client, path, leader.ID(id)).Await(ctx)
	if err != nil {
		return err
	}
	defer term.Release()
	return work(term.Context())
	// end
}

func latchListener(ctx context.Context, client *framework.Client, path string, begin, end func()) error {
	// snippet: latch-listener
	latch := leader.NewLatch(client, path)
	return latch.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
		begin()
		<-ctx.Done()
		end()
		return nil
	})
	// end
}

func leaderSelector(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: leader-selector
	selector := leader.NewSelector(client, path)
	return selector.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
		if err := work(ctx); err != nil { // ctx ends before another candidate can lead
			return err
		}
		return leader.ErrLeave
	})
	// end
}

func selectorAdapter(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: selector-adapter
	selector := leader.NewSelector(client, path, leader.EndOnSuspended())
	return selector.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
		if err := work(ctx); err != nil {
			return err
		}
		return leader.ErrLeave
	})
	// end
}

func autoRequeue(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: auto-requeue
	selector := leader.NewSelector(client, path)
	return selector.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
		return work(ctx)
	})
	// end
}

func participants(ctx context.Context, latch *leader.Latch) ([]string, string, error) {
	// snippet: participants
	participants, err := latch.Participants(ctx) // in order
	if err != nil {
		return nil, "", err
	}
	var all []string
	leads := ""
	for _, p := range participants {
		all = append(all, p.ID)
		if p.Leads {
			leads = p.ID
		}
	}
	// end
	return all, leads, nil
}
