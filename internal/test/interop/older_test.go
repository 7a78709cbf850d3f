package interop

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// older takes go-zookeeper's own lock on the client's session, as code does
// that has not moved over yet.
func older(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: zk-lock
	lock := zk.NewLock(client.Conn(), path, zk.WorldACL(zk.PermAll))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	return work(ctx)
	// end
}

// newer is what becomes of it.
func newer(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: moved
	return locks.Do(ctx, locks.NewInterProcessMutex(client, path), work)
	// end
}
