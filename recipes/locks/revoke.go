package locks

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// revokeData is what a participant writes into another's node to ask for the
// lock.
//
// Source: Curator's LockInternals.REVOKE_MESSAGE.
const revokeData = "__REVOKE__"

// AttemptRevoke asks the participant at path, as Participants returns it, to release the
// lock. A participant hears of the request if its lock was made Revocable, and decides for
// itself. If there is no node at path, or the participant was asked before, it succeeds.
//
// The request takes the place of the node's data, so it is written only to what can be the
// node of a revocable lock: an ephemeral node with a participant's name. All others are
// ErrNotRevocable. So is a node of this library that has data, as those of Revocable locks
// have none. Curator's nodes do not show whether they are revocable, and lose their data.
// A write of somebody else's is never overwritten unseen.
//
// Other errors are those of framework.Client.Get and Set, such as framework.ErrNoAuth. The
// client needs READ and WRITE on the node. Cost: two round trips. If the
// client's server knows no such node, it catches up first, in two more.
//
// Source: Curator's Revoker. Differs: that writes to any node.
func AttemptRevoke(ctx context.Context, c *framework.Client, path string) error {
	for synced := false; ; {
		data, stat, err := c.Get(ctx, path)
		if errors.Is(err, framework.ErrNoNode) && !synced {
			// Others may tell of a node before the client's server knows of it.
			if err = c.Sync(ctx, path); err == nil {
				synced = true
				continue
			}
		}
		if errors.Is(err, framework.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		if why := unrevocable(path, data, stat); why != "" {
			return opError("revoke", path, fmt.Errorf("%w: %s", ErrNotRevocable, why))
		}
		if string(data) == revokeData {
			return nil
		}
		_, err = c.Set(ctx, path, []byte(revokeData), stat.Version, framework.Idempotent())
		switch {
		case errors.Is(err, framework.ErrNoNode):
			return nil
		case !errors.Is(err, framework.ErrBadVersion): // else look at what was written
			return err
		}
	}
}

// unrevocable says why a node cannot be that of a revocable lock, "" if it can be.
func unrevocable(path string, data []byte, stat *framework.Stat) string {
	_, name := framework.PathAndNode(path)
	kind, recipe := nodename.KindOf(name)
	tag := nodename.TagOf(name)
	const container, ttl = 1 << 63, 0xff // how the servers mark nodes that are not ephemeral, in place of a session
	owner := uint64(stat.EphemeralOwner)
	switch {
	case kind == "":
		return "its name is not that of a participant"
	case owner == 0, owner == container, owner>>56 == ttl:
		return "it is not ephemeral, and so no participant of a lock"
	case kind == znode.Latch, recipe == nodename.Kazoo, kind == znode.Lease && tag == "":
		return "a participant of this kind is never revocable: it is of a " + recipe
	case tag != "" && len(data) > 0 && string(data) != revokeData:
		return "it has data, and its lock was made without Revocable"
	}
	return ""
}

// observeRevocation looks after the data of a Revocable node until the node is given back.
func (o *ownership) observeRevocation() {
	if !o.queue.Revocable {
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

// sent is a channel that is closed.
var sent = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

func (o *ownership) revoke() {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.revoked == nil:
		o.revoked = sent
	case !isClosed(o.revoked):
		close(o.revoked)
	}
}
