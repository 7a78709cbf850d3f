package locks_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// inSteps are MultiLocks that take several steps, some with a second client.
func inSteps(second *framework.Client) map[string]kit.LockOf {
	semaphore := func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessSemaphore(c, path, 2) }
	return map[string]kit.LockOf{
		"two semaphores": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(semaphore(c, "/l/s"), semaphore(c, "/l/t"))
		},
		"two clients": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l/a"), locks.NewInterProcessMutex(second, "/l/b"))
		},
		"three steps": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l/a"), semaphore(c, "/l/b"), locks.NewInterProcessMutex(c, "/l/c"))
		},
	}
}

// No call outlasts its context, at whatever moment that ends, also while no server answers
// and if a node of the hold has just been deleted.
func TestCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	all := maps.Clone(kit.Locks)
	maps.Copy(all, inSteps(nil))
	for name, lock := range all {
		for usage, call := range calls {
			for _, way := range []struct{ taken, deleted bool }{{}, {taken: true}, {deleted: true}} {
				steps := inSteps(nil)[name] != nil
				if !*everySweep && (!steps || usage != "acquire" && usage != "commit and release") {
					continue
				}
				if name == "downgrade" { // its Acquire releases a hold
					continue
				}
				t.Run(fmt.Sprintf("%s %s %v", name, usage, way), func(t *testing.T) {
					for moment := range kit.Moments(t, 60, *everySweep) {
						synctest.Test(t, func(t *testing.T) {
							srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
							c, second, other := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
							if steps {
								lock = inSteps(second)[name]
							}
							require.NoError(t, other.EnsurePath(t.Context(), "/l"))
							if way.taken {
								h, err := lock(other).Acquire(t.Context())
								require.NoError(t, err)
								time.AfterFunc(8*time.Millisecond, func() { _ = h.Release() })
							}
							ctx, cancel := context.WithCancel(t.Context())
							defer cancel()
							var ended time.Time
							stop := after(moment, func() {
								if nodes := srv.Ephemerals(c.SessionID()); way.deleted && len(nodes) > 0 {
									_ = other.Delete(ctx, nodes[0], framework.AnyVersion)
								}
								if ctx.Err() != nil { // the call has returned meanwhile
									return
								}
								srv.Stall(0, zktest.BothWays)
								ended = time.Now()
								cancel()
							})
							h, err := call(ctx, lock(c))
							stop()
							if synctest.Wait(); !ended.IsZero() {
								assert.WithinDuration(t, ended, time.Now(), 0, "%v", err)
							}
							cancel()
							srv.Unstall(0)
							_ = h.Release() // may be over
							time.Sleep(45 * time.Second)
							kit.NothingLeft(t, srv)
						})
						require.False(t, t.Failed(), "at moment %d", moment)
					}
				})
			}
		}
	}
}

// A commit that gives up does not hurry those who re-entered the lock besides.
func TestReleaseAfterACommitThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		m := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l")
		outer, err := m.Acquire(t.Context())
		require.NoError(t, err)
		inner, err := m.Acquire(outer.Context())
		require.NoError(t, err)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = inner.Transaction().CommitAndRelease(ended)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, outer.Release(), "it has waited for the answer")

		h, err := m.Acquire(t.Context())
		require.NoError(t, err)
		var none context.Context
		_, err = h.Transaction().CommitAndRelease(none)
		require.ErrorIs(t, err, framework.ErrNilContext)
		time.Sleep(time.Second)
		kit.NothingLeft(t, srv)
	})
}
