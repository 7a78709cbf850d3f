package locks_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
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

// swept are all ways to take a lock, over nodes below /l.
var swept = map[string]func(c *framework.Client) locks.Lock{
	"mutex": func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/l/m") },
	"look-ahead": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMutex(c, "/l/m", locks.LookAhead())
	},
	"revocable": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMutex(c, "/l/m", locks.Revocable())
	},
	"write": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, "/l/rw").WriteLock()
	},
	"read": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, "/l/rw").ReadLock()
	},
	"downgrade": func(c *framework.Client) locks.Lock {
		return downgrade{locks.NewInterProcessReadWriteLock(c, "/l/rw")}
	},
	"semaphore": func(c *framework.Client) locks.Lock {
		return leases{locks.NewInterProcessSemaphore(c, "/l/s", 3), 3}
	},
	"semaphore mutex": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessSemaphoreMutex(c, "/l/s")
	},
	"multi": func(c *framework.Client) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l/a"), locks.NewInterProcessMutex(c, "/l/b"),
			locks.NewInterProcessSemaphoreMutex(c, "/l/s"))
	},
}

// leases takes several leases of a semaphore at once.
type leases struct {
	s *locks.InterProcessSemaphore
	n int
}

func (l leases) Acquire(ctx context.Context) (*locks.Hold, error) { return l.s.AcquireN(ctx, l.n) }

func (l leases) TryAcquire(ctx context.Context, wait time.Duration) (*locks.Hold, error) {
	return l.s.TryAcquireN(ctx, l.n, wait)
}

// downgrade takes the write side, then the read side, and gives the write side back.
type downgrade struct {
	l *locks.InterProcessReadWriteLock
}

func (l downgrade) Acquire(ctx context.Context) (r *locks.Hold, err error) {
	w, err := l.l.WriteLock().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if released := w.Release(); r != nil && errors.Is(released, locks.ErrLockLost) {
			_ = r.Release()
			r, err = nil, released
		}
	}()
	return l.l.ReadLock().Acquire(w.Context()) //nolint:contextcheck // the hold's context is ctx's child
}

func (l downgrade) TryAcquire(ctx context.Context, _ time.Duration) (*locks.Hold, error) {
	return l.Acquire(ctx)
}

// sweep does one thing at every moment of taking and giving back every lock,
// free and taken, and looks whether anything is left behind.
func sweep(t *testing.T, moments int, meddle func(t *testing.T, moment int, srv *zktest.Server, c *framework.Client) context.Context) {
	for name, lock := range swept {
		for _, taken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s taken=%v", name, taken), func(t *testing.T) {
				for moment := range moments {
					synctest.Test(t, func(t *testing.T) { sweepOnce(t, moment, taken, lock, meddle) })
					if t.Failed() {
						t.Fatalf("at moment %d", moment)
					}
				}
			})
		}
	}
}

func sweepOnce(t *testing.T, moment int, taken bool, lock func(*framework.Client) locks.Lock,
	meddle func(*testing.T, int, *zktest.Server, *framework.Client) context.Context) {
	sweepCall(t, taken, lock, acquires, func(srv *zktest.Server, c *framework.Client) context.Context { return meddle(t, moment, srv, c) })
}

// callOfALock uses a lock, and returns what it has not given back.
type callOfALock func(ctx context.Context, lock locks.Lock) (*locks.Hold, error)

func acquires(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
	return lock.Acquire(ctx)
}

// sweepCall meddles with one call, and looks whether anything is left behind.
func sweepCall(t *testing.T, taken bool, lock func(*framework.Client) locks.Lock, call callOfALock,
	meddle func(*zktest.Server, *framework.Client) context.Context) {
	srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
	c, other := kit.Connect(t, srv), kit.Connect(t, srv)
	require.NoError(t, c.EnsurePath(t.Context(), "/l"))
	if taken {
		h, err := lock(other).Acquire(t.Context())
		require.NoError(t, err)
		time.AfterFunc(20*time.Millisecond, func() { _ = h.Release() })
	}
	errStuck := errors.New("waited for nothing")
	ctx, cancel := context.WithTimeoutCause(meddle(srv, c), 5*time.Minute, errStuck)
	defer cancel()
	h, err := call(ctx, lock(c))
	if ctx.Err() != nil {
		require.NotEqual(t, errStuck, context.Cause(ctx))
	}
	assert.True(t, (h == nil) != (err == nil), "a hold or an error, never both: %v, %v", h, err)
	if h != nil {
		_ = h.Release() // may go on in the background
	}
	time.Sleep(45 * time.Second) // more than a session, and the longest pause of a background job
	kit.NothingLeft(t, srv, "after %v", err)
	next, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h, err = lock(other).Acquire(next)
	require.NoError(t, err, "the next acquire works")
	require.NoError(t, h.Release())
}

// calls are the ways to use a lock that ask servers.
var calls = map[string]callOfALock{
	"acquire": acquires,
	"try": func(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
		return lock.TryAcquire(ctx, 0)
	},
	"try for a while": func(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
		return lock.TryAcquire(ctx, time.Minute)
	},
	"commit": func(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
		return committing(ctx, lock, (*locks.Transaction).Commit)
	},
	"commit and release": func(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
		return committing(ctx, lock, (*locks.Transaction).CommitAndRelease)
	},
	"participants": func(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
		h, err := lock.Acquire(ctx)
		if queue, ok := lock.(interface {
			Participants(context.Context) ([]locks.Participant, error)
		}); ok && err == nil {
			_, _ = queue.Participants(ctx)
		}
		return h, err
	},
}

// committing writes under a hold. What becomes of the write is not looked at here.
func committing(ctx context.Context, lock locks.Lock,
	commit func(*locks.Transaction, context.Context, ...framework.CommitOption) ([]framework.Result, error)) (*locks.Hold, error) {
	h, err := lock.Acquire(ctx)
	if err == nil {
		tx := h.Transaction()
		tx.Set("/l", []byte("x"), framework.AnyVersion)
		_, _ = commit(tx, ctx)
	}
	return h, err
}

// everySweep has sweeps try every failure at every call, which takes minutes.
var everySweep = flag.Bool("sweeps", false, "sweep all calls of all locks for all failures, and not only what is picked")

// picked is what is swept each time: Acquire for all failures, save that most codes
// are tried on two locks only; and asking.
func picked(failure, kind, usage string) bool {
	switch usage {
	case "acquire":
		return !strings.HasPrefix(failure, "code") || slices.Contains([]string{"code -101", "code -102", "code -112"}, failure) ||
			kind == "mutex" || kind == "multi"
	case "try":
		return failure == "cut before" || failure == "code -102"
	}
	return false
}
