package main

import (
	"context"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// Nightly does a piece of work once a day, however many instances try to.
//
// It takes what it needs and makes nothing itself: a client, which a test
// connects to a server of its own, and the work.
type Nightly struct {
	Client *framework.Client
	Work   func(ctx context.Context) error
}

// Run does the work of a day, unless that has been done, and says whether it
// did. If another instance is at it, Run waits for that to end. Should the lock
// be lost, the context of the work ends and the day is not marked as done.
func (n *Nightly) Run(ctx context.Context, day string) (did bool, err error) {
	mark := "/nightly/done/" + day
	lock := locks.NewInterProcessMutex(n.Client, "/nightly/lock")
	err = locks.Do(ctx, lock, func(ctx context.Context) error {
		done, _, err := n.Client.Exists(ctx, mark)
		if err != nil || done {
			return err
		}
		if err := n.Work(ctx); err != nil {
			return err
		}
		_, err = n.Client.Create(ctx, mark, nil, framework.Persistent, framework.Parents(), framework.Idempotent())
		did = err == nil
		return err
	})
	return did, err
}
