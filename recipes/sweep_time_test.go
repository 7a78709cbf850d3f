package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes"
	zktest "github.com/paddock-zk/paddock/testing"
)

// swept are all ways to take a lock, over nodes below /l.
var swept = map[string]func(c *framework.Client) recipes.Lock{
	"mutex": func(c *framework.Client) recipes.Lock { return recipes.NewInterProcessMutex(c, "/l/m") },
	"look-ahead": func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessMutex(c, "/l/m", recipes.LookAhead())
	},
	"revocable": func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessMutex(c, "/l/m", recipes.Revocable())
	},
	"write": func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessReadWriteLock(c, "/l/rw").WriteSide()
	},
	"read": func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessReadWriteLock(c, "/l/rw").ReadSide()
	},
	"downgrade": func(c *framework.Client) recipes.Lock {
		return downgrade{recipes.NewInterProcessReadWriteLock(c, "/l/rw")}
	},
	"semaphore": func(c *framework.Client) recipes.Lock { return three{recipes.NewInterProcessSemaphore(c, "/l/s", 3)} },
	"semaphore mutex": func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessSemaphoreMutex(c, "/l/s")
	},
	"multi": func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessMultiLock(recipes.NewInterProcessMutex(c, "/l/a"), recipes.NewInterProcessMutex(c, "/l/b"),
			recipes.NewInterProcessSemaphoreMutex(c, "/l/s"))
	},
}

// three takes all leases of a semaphore at once.
type three struct {
	s *recipes.InterProcessSemaphore
}

func (l three) Acquire(ctx context.Context) (*recipes.Hold, error) { return l.s.AcquireN(ctx, 3) }

func (l three) TryAcquire(ctx context.Context, wait time.Duration) (*recipes.Hold, error) {
	return l.s.TryAcquireN(ctx, 3, wait)
}

// downgrade takes the write side, then the read side, and gives the write side back.
type downgrade struct {
	l *recipes.InterProcessReadWriteLock
}

func (l downgrade) Acquire(ctx context.Context) (*recipes.Hold, error) {
	w, err := l.l.WriteSide().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	r, err := l.l.ReadSide().Acquire(w.Context()) //nolint:contextcheck // the hold's context is ctx's child
	if released := w.Release(); err == nil && errors.Is(released, recipes.ErrLockLost) {
		_ = r.Release()
		return nil, released
	}
	return r, err
}

func (l downgrade) TryAcquire(ctx context.Context, _ time.Duration) (*recipes.Hold, error) {
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

func sweepOnce(t *testing.T, moment int, taken bool, lock func(*framework.Client) recipes.Lock,
	meddle func(*testing.T, int, *zktest.Server, *framework.Client) context.Context) {
	srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
	c, other := connect(t, srv), connect(t, srv)
	require.NoError(t, c.EnsurePath(t.Context(), "/l"))
	if taken {
		h, err := lock(other).Acquire(t.Context())
		require.NoError(t, err)
		time.AfterFunc(20*time.Millisecond, func() { _ = h.Release() })
	}
	errStuck := errors.New("waited for nothing")
	ctx, cancel := context.WithTimeoutCause(meddle(t, moment, srv, c), 5*time.Minute, errStuck)
	defer cancel()
	h, err := lock(c).Acquire(ctx)
	require.NotErrorIs(t, err, errStuck)
	assert.True(t, (h == nil) != (err == nil), "a hold or an error, never both: %v, %v", h, err)
	if h != nil {
		_ = h.Release() // may go on in the background
	}
	time.Sleep(45 * time.Second) // more than a session, and the longest pause of a background job
	assert.Empty(t, srv.Ephemerals(0), "nodes left after %v", err)
	assert.Empty(t, srv.Watches(), "watches left after %v", err)
	next, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h, err = lock(other).Acquire(next)
	require.NoError(t, err, "the next acquire works")
	require.NoError(t, h.Release())
}

func TestCancelledAtAnyMoment(t *testing.T) {
	sweep(t, 52, func(t *testing.T, moment int, _ *zktest.Server, _ *framework.Client) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(moment)*time.Millisecond/2+1)
		t.Cleanup(cancel)
		return ctx
	})
}

func TestClosedAtAnyMoment(t *testing.T) {
	sweep(t, 52, func(t *testing.T, moment int, _ *zktest.Server, c *framework.Client) context.Context {
		time.AfterFunc(time.Duration(moment)*time.Millisecond/2, func() { _ = c.Close() })
		return t.Context()
	})
}

func TestDisconnectedAtAnyMoment(t *testing.T) {
	sweep(t, 52, func(t *testing.T, moment int, srv *zktest.Server, c *framework.Client) context.Context {
		id := c.SessionID()
		time.AfterFunc(time.Duration(moment)*time.Millisecond/2, func() { _ = srv.Disconnect(id) })
		return t.Context()
	})
}

func TestExpiredAtAnyMoment(t *testing.T) {
	sweep(t, 52, func(t *testing.T, moment int, srv *zktest.Server, c *framework.Client) context.Context {
		id := c.SessionID()
		time.AfterFunc(time.Duration(moment)*time.Millisecond/2, func() { _ = srv.ExpireSession(id) })
		return t.Context()
	})
}

// Each request in turn is cut before or after it was applied, or refused with
// each code that a client can see.
func TestEachRequestFails(t *testing.T) {
	const noNode = -101
	faults := map[string]zktest.Fault{"cut before": zktest.CutBefore(), "cut after": zktest.CutAfter()}
	for _, code := range []int32{-4, -5, -6, -8, noNode, -102, -110, -112, -118, -127} {
		faults[fmt.Sprint("code ", code)] = zktest.Fail(code)
	}
	for name, fault := range faults {
		// Nothing can be done about a server that says of a node it has that it
		// has been deleted.
		believable := func(r zktest.Request) bool { return name != fmt.Sprint("code ", noNode) || r.Op != "delete" }
		t.Run(name, func(t *testing.T) {
			sweep(t, 14, func(t *testing.T, moment int, srv *zktest.Server, c *framework.Client) context.Context {
				srv.On(zktest.Match{Session: c.SessionID(), Nth: moment + 1, Func: believable}, fault)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				t.Cleanup(cancel)
				return ctx
			})
		})
	}
}
