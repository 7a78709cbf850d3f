package simulation

import (
	"context"
	"errors"
	"slices"

	"github.com/paddock-zk/paddock/internal/test/check"
	"github.com/paddock-zk/paddock/recipes/locks"
)

var (
	errCancelled = errors.New("cancelled by the simulation")
	errOver      = errors.New("the simulation is over")
)

// shared are the locks that MultiLocks take, too. A caller that waits for one of
// them may wait for a MultiLock that yields.
var shared = map[string]bool{
	lockName(new(locks.InterProcessMutex)):          true, // the sides of read/write locks as well
	lockName(new(locks.InterProcessSemaphoreMutex)): true,
	lockName(new(locks.InterProcessMultiLock)):      true,
}

// call is one call of an actor that waits.
type call struct {
	wait      check.Wait
	cancel    context.CancelCauseFunc
	cancelled bool
}

// wait makes a call whose context can end at any time.
func (a *actor) wait(ctx context.Context, lock string, do func(ctx context.Context) error) error {
	wait, err := a.cancellable(ctx, lock, do)
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.rec.Waits = append(a.w.rec.Waits, wait)
	return err
}

// cancellable is wait, for a call that does more than wait.
func (a *actor) cancellable(ctx context.Context, lock string, do func(ctx context.Context) error) (check.Wait, error) {
	w := a.w
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &call{wait: check.Wait{Who: a.name, Lock: lock, Began: w.now(), Limit: check.Never, Yields: w.several && shared[lock]}, cancel: cancel}
	w.mu.Lock()
	w.calls = append(w.calls, c)
	over := w.ended()
	w.mu.Unlock()
	if over {
		cancel(errOver)
	}
	err := do(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = slices.DeleteFunc(w.calls, func(o *call) bool { return o == c })
	c.wait.Returned, c.wait.OK = w.now(), err == nil
	if w.ended() {
		c.wait.Limit = min(c.wait.Limit, w.overAt)
	}
	return c.wait, err
}
