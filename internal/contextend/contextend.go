// Package contextend tells the end of a context. Its cause can be any error, also one that
// means something here. A caller must not read "node does not exist" in it, since no
// server has said so.
package contextend

import (
	"context"
	"errors"
	"fmt"
)

// Of is the end of a context as an error, nil while it goes on. It
// matches context.Canceled or context.DeadlineExceeded and nothing else: the
// cause is in the text alone.
func Of(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	end := context.Canceled
	if errors.Is(err, context.DeadlineExceeded) {
		end = context.DeadlineExceeded
	}
	cause := context.Cause(ctx)
	if cause == nil || cause == end { //nolint:errorlint // one that wraps it has more to say
		return end
	}
	return fmt.Errorf("%w (cause: %s)", end, cause.Error())
}
