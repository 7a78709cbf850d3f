package locks

import (
	"context"
	"errors"

	"github.com/paddock-zk/paddock/framework"
)

// revokeData is what a participant writes into another's node to ask for the
// lock.
//
// Source: Curator's LockInternals.REVOKE_MESSAGE.
const revokeData = "__REVOKE__"

// AttemptRevoke asks the participant at path, as Participants returns it, to release the
// lock. If there is no node at path, it succeeds. A participant hears of the request if
// its lock was made Revocable, and decides for itself.
//
// Source: Curator's Revoker.
func AttemptRevoke(ctx context.Context, c *framework.Client, path string) error {
	_, err := c.Set(ctx, path, []byte(revokeData), framework.AnyVersion, framework.Idempotent())
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return err
}

// observeRevocation looks after the data of a Revocable node until the node is given back.
func (o *ownership) observeRevocation() {
	if !o.queue.opts.Revocable {
		return
	}
	stop := o.node.Observe(func(data []byte) {
		if string(data) == revokeData {
			o.revoke()
		}
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unobserve = stop
}

func (o *ownership) revoke() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.revoked.send()
}
