package locks

import (
	"cmp"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/lockopt"
)

// queue is a queue of a lock, with the options by which nodes in it are made and given
// back. Package acquire has the order in it (position.go).
type queue struct {
	acquire.Queue
	client *framework.Client
	opts   lockopt.Options
	// exclusive is whether the node that has the lock keeps out everybody else.
	exclusive bool
}

// newQueue completes a queue: its nodes have the data of the options.
func newQueue(client *framework.Client, q acquire.Queue, opts lockopt.Options, exclusive bool) queue {
	core := q.Core
	q.FailOnLoss = opts.FailOnLoss
	if q.Recipe == "" {
		q.Recipe = cmp.Or(opts.Recipe, recipeOf(q.Kind))
	}
	q.Data = func(c *transport.Conn) []byte {
		switch {
		case opts.Revocable:
			return []byte{}
		case opts.HasData:
			return opts.Data
		}
		return core.Data(c)
	}
	return queue{Queue: q, client: client, opts: opts, exclusive: exclusive}
}
