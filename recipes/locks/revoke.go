package locks

import (
	"context"
	"errors"

	"github.com/paddock-zk/paddock/framework"
)

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
