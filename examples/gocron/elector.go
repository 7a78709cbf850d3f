// Package gocron lets the jobs of a gocron scheduler run on the replica that leads.
package gocron

import (
	"context"
	"errors"

	"github.com/go-co-op/gocron/v2"

	"github.com/paddock-zk/paddock/recipes/leader"
)

// ErrNotLeader reports that this replica does not lead. gocron leaves the job out then.
var ErrNotLeader = errors.New("does not lead")

// Elector tells gocron whether this replica leads. It asks no server.
//
// gocron asks before each job and not again while the job runs. A job that must end with
// the term takes the context of the term from Latch.Term, and one that writes takes
// Term.Transaction or Term.Number.
type Elector struct{ Latch *leader.Latch }

var _ gocron.Elector = Elector{}

// IsLeader returns nil while the replica leads, and ErrNotLeader otherwise.
func (e Elector) IsLeader(context.Context) error {
	if e.Latch.Term() == nil {
		return ErrNotLeader
	}
	return nil
}

// Stand keeps the replica in the election until ctx ends.
func (e Elector) Stand(ctx context.Context) error {
	return e.Latch.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
		<-ctx.Done()
		return ctx.Err()
	})
}
