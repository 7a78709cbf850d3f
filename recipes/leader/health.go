package leader

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
)

// health is the health check of one call of Terms. At most one check is under way.
type health struct {
	check func(context.Context) error // nil for none
	every time.Duration

	// One that ignores the end of its context is given up, and joined before the next
	// one begins.
	checks sync.WaitGroup
}

// await returns nil once a check has succeeded, or the end of ctx.
func (h *health) await(ctx context.Context) error {
	for h.look(ctx) != nil {
		if err := wait(ctx, h.every); err != nil {
			return err
		}
	}
	return nil
}

// look returns what the check says. To go on for too long is to fail.
func (h *health) look(ctx context.Context) error {
	if h.check == nil {
		return nil
	}
	h.checks.Wait()
	said := make(chan error, 1)
	h.checks.Go(func() {
		limited, cancel := context.WithTimeout(ctx, h.every)
		defer cancel()
		said <- h.check(limited)
	})
	limit := time.NewTimer(h.every)
	defer limit.Stop()
	select {
	case err := <-said:
		return err
	case <-limit.C:
		return fmt.Errorf("%w: it did not return within %v", context.DeadlineExceeded, h.every)
	case <-ctx.Done():
		return framework.ContextError(ctx)
	}
}

// guard ends the context of a term when a check fails. join returns once it does so no
// more; a check may go on.
func (h *health) guard(term *Term) (join func()) {
	if h.check == nil {
		return func() {}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		ctx := term.Context()
		for wait(ctx, h.every) == nil {
			if err := h.look(ctx); err != nil && ctx.Err() == nil {
				term.end(fmt.Errorf("%w: %w: %w", ErrSteppedDown, ErrUnhealthy, err))
			}
		}
	})
	return wg.Wait
}
