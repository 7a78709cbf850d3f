package locks_test

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
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// losable is a lock of the test's own, whose hold is lost on command.
type losable struct {
	lost    func(cause error)
	release error
}

func (l *losable) Acquire(ctx context.Context) (hold *locks.Hold, _ error) {
	hold, l.lost = locks.NewHold(ctx, func() error { return l.release })
	return hold, nil
}

func (l *losable) TryAcquire(ctx context.Context, _ time.Duration) (*locks.Hold, error) {
	return l.Acquire(ctx)
}

// That another lock was lost, which work reports, does not say that this one was.
func TestDoTellsWhichLockWasLost(t *testing.T) {
	outer, inner := &losable{}, &losable{}
	errOuter, errInner := errors.New("outer"), errors.New("inner")
	err := locks.Do(t.Context(), outer, func(ctx context.Context) error {
		outer.lost(errOuter)
		return locks.Do(context.WithoutCancel(ctx), inner, func(ctx context.Context) error {
			inner.lost(errInner)
			return context.Cause(ctx)
		})
	})
	require.ErrorIs(t, err, errInner)
	require.ErrorIs(t, err, errOuter)
	assert.EqualError(t, err, "lock lost: inner\nlock lost: outer", "each once")
}

// What Do cannot work with is an error, and the lock is not taken.
func TestDoWithoutLockOrWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		lock := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l")
		before := len(srv.Ephemerals(0))
		for _, err := range []error{locks.Do(t.Context(), lock, nil), locks.TryDo(t.Context(), lock, 0, nil)} {
			require.ErrorIs(t, err, framework.ErrInvalidArgument)
			require.EqualError(t, err, "invalid argument: work is nil")
		}
		work := func(context.Context) error { return errors.New("called") }
		for _, err := range []error{locks.Do(t.Context(), nil, work), locks.TryDo(t.Context(), nil, 0, work)} {
			require.ErrorIs(t, err, locks.ErrInvalidLock)
		}
		require.ErrorIs(t, locks.Do(t.Context(), empty{}, work), locks.ErrInvalidLock, "neither a hold nor an error")
		assert.Len(t, srv.Ephemerals(0), before)

		hold, _ := locks.NewHold(t.Context(), nil)
		require.NoError(t, hold.Release())
	})
}

// empty is a lock that says nothing.
type empty struct{}

func (empty) Acquire(context.Context) (*locks.Hold, error) { return nil, nil }

func (empty) TryAcquire(context.Context, time.Duration) (*locks.Hold, error) { return nil, nil }

// What can never be a lock is refused by each call, and nothing is sent.
func TestInvalidLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		var none context.Context
		invalid := map[string]locks.Lock{
			"no client":          locks.NewInterProcessMutex(nil, "/l"),
			"zero client":        locks.NewInterProcessMutex(new(framework.Client), "/l"),
			"nil option":         locks.NewInterProcessMutex(c, "/l", nil),
			"no lease":           locks.NewInterProcessSemaphore(c, "/l", 0),
			"negative leases":    locks.NewInterProcessSemaphore(c, "/l", -1),
			"no members":         locks.NewInterProcessMultiLock(),
			"nil member":         locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l"), nil),
			"typed nil member":   locks.NewInterProcessMultiLock((*locks.InterProcessMutex)(nil)),
			"empty multi-lock":   locks.NewInterProcessMultiLock(locks.NewInterProcessMultiLock()),
			"nil mutex":          (*locks.InterProcessMutex)(nil),
			"nil semaphore":      (*locks.InterProcessSemaphore)(nil),
			"nil semaphoremutex": (*locks.InterProcessSemaphoreMutex)(nil),
			"nil multi-lock":     (*locks.InterProcessMultiLock)(nil),
			"zero mutex":         &locks.InterProcessMutex{},
			"zero semaphore":     &locks.InterProcessSemaphore{},
			"zero multi-lock":    &locks.InterProcessMultiLock{},
			"zero sem.mutex":     &locks.InterProcessSemaphoreMutex{},
			"zero read side":     new(locks.InterProcessReadWriteLock).ReadLock(),
			"nil write side":     (*locks.InterProcessReadWriteLock)(nil).WriteLock(),
			"zero members":       locks.NewInterProcessMultiLock(&locks.InterProcessMutex{}, &locks.InterProcessSemaphore{}, locks.NewInterProcessMutex(c, "/l")),
			"two zero members":   locks.NewInterProcessMultiLock(&locks.InterProcessMutex{}, new(locks.InterProcessReadWriteLock).ReadLock()),
			"zero sem. member":   locks.NewInterProcessMultiLock(&locks.InterProcessSemaphoreMutex{}),
			"release wait":       locks.NewInterProcessMutex(c, "/l", locks.ReleaseWait(-1)),
			"release wait, sem.": locks.NewInterProcessSemaphore(c, "/l", 1, locks.ReleaseWait(-1)),
			"no unit":            locks.NewInterProcessMutex(c, "/l", locks.ReleaseWait(5)),
			"the servers' nodes": locks.NewInterProcessMutex(c, "/zookeeper"),
			"below these":        locks.NewInterProcessReadWriteLock(c, "/zookeeper/quota/l").ReadLock(),
		}
		says := map[string]string{
			"nil mutex": "made without NewInterProcessMutex", "zero mutex": "acquire mutex: invalid lock: it was made without NewInterProcessMutex",
			"zero semaphore": "made without NewInterProcessSemaphore", "zero sem.mutex": "made without NewInterProcessSemaphoreMutex",
			"zero multi-lock": "made without NewInterProcessMultiLock", "zero read side": "or NewInterProcessReadWriteLock", "nil write side": "or NewInterProcessReadWriteLock",
			"zero members": "made without", "two zero members": "member 0: invalid lock: it was made without", "release wait": "ReleaseWait is -1ns", "no unit": "ReleaseWait is 5ns", "the servers' nodes": "the servers' own", "below these": "the servers' own",
		}
		for path, want := range map[string]string{
			"": "it is empty", "l": "does not begin with a slash", "/l/": "ends with a slash", "/l//m": "empty element", "/l/../m": "relative element",
			"/l\x00": "U+0000", "/l\xff": "not UTF-8", "/": "the root",
		} {
			for kind, lock := range map[string]locks.Lock{
				"mutex": locks.NewInterProcessMutex(c, path), "read": kit.ReadAt(path)(c), "write": kit.WriteAt(path)(c),
				"semaphore": locks.NewInterProcessSemaphore(c, path, 3), "semaphore mutex": locks.NewInterProcessSemaphoreMutex(c, path),
				"multi": locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, path)),
			} {
				name := fmt.Sprintf("%s at %q", kind, path)
				invalid[name], says[name] = lock, want
			}
			if path != "/" {
				require.ErrorIs(t, locks.AttemptRevoke(t.Context(), c, path), framework.ErrInvalidPath, "%q", path)
			}
		}
		before := srv.Requests()
		for name, lock := range invalid {
			_, err := lock.Acquire(t.Context())
			require.ErrorIs(t, err, locks.ErrInvalidLock, name)
			require.ErrorContains(t, err, says[name], name)
			_, err = lock.TryAcquire(t.Context(), 0)
			require.ErrorIs(t, err, locks.ErrInvalidLock, name)
			require.ErrorIs(t, locks.Do(t.Context(), lock, func(context.Context) error { return errors.New("called") }), locks.ErrInvalidLock, name)
			if queue, ok := lock.(listable); ok {
				_, err = queue.Participants(t.Context())
				require.ErrorIs(t, err, locks.ErrInvalidLock, name)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for name, of := range kit.Locks {
			lock := of(c)
			_, err := lock.Acquire(none)
			require.ErrorIs(t, err, framework.ErrNilContext, name)
			_, err = lock.TryAcquire(none, time.Second)
			require.ErrorIs(t, err, framework.ErrNilContext, name)
			_, err = lock.Acquire(ended)
			require.ErrorIs(t, err, context.Canceled, name)
		}
		_, err := locks.NewInterProcessMutex(c, "/l").Participants(none)
		require.ErrorIs(t, err, framework.ErrNilContext)
		assert.False(t, (*locks.InterProcessMutex)(nil).HeldBy(t.Context()))
		assert.False(t, locks.NewInterProcessMutex(c, "/l").HeldBy(none))
		assert.Equal(t, before, srv.Requests())

		require.NoError(t, c.Close())
		for name, of := range kit.Locks {
			_, err := of(c).Acquire(t.Context())
			require.ErrorIs(t, err, framework.ErrClosed, name)
		}
	})
}
