package locks

import (
	"context"
	"errors"

	"github.com/paddock-zk/paddock/framework"
)

// AttemptRevoke asks the participant at path, as Participants gives it, to give
// way; an absent one is a success. Whether it does is up to it: it must have
// been made Revocable.
//
// Source: Curator's Revoker.
func AttemptRevoke(ctx context.Context, c *framework.Client, path string) error {
	_, err := c.Set(ctx, path, []byte(revokeData), framework.AnyVersion, framework.Idempotent())
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return err
}
