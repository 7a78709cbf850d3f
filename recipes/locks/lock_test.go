package locks

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
	zktest "github.com/paddock-zk/paddock/testing"
)

// foreignLock is a lock of a user's own type.
type foreignLock struct{ Lock }

// What is asked of members, of each kind of lock.
func TestMembers(t *testing.T) {
	srv := zktest.Start(t)
	c, err := framework.Start(framework.Config{ConnectString: srv.ConnectString() + "/app"}) // locks need not be connected
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	m, rw := NewInterProcessMutex(c, "/m"), NewInterProcessReadWriteLock(c, "/rw")
	s, x := NewInterProcessSemaphore(c, "/s", 3), NewInterProcessSemaphoreMutex(c, "/x")
	for name, tc := range map[string]struct {
		lock Lock
		path string
		kind znode.Kind // of what a MultiLock knows if it is named twice, else ""
		ours bool
	}{
		"mutex":           {m, "/app/m", znode.Lock, true},
		"read side":       {rw.ReadLock(), "/app/rw", znode.Read, true},
		"write side":      {rw.WriteLock(), "/app/rw", znode.Write, true},
		"semaphore":       {s, "/app/s", znode.Lease, true},
		"semaphore mutex": {x, "/app/x", znode.Lease, true},
		"MultiLock":       {NewInterProcessMultiLock(m, x), "", "", true},
		"foreign":         {foreignLock{m}, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.False(t, isNil(tc.lock))
			require.NoError(t, faultOf(tc.lock))
			assert.Equal(t, tc.path, pathOf(tc.lock))
			key, kind := identityOf(tc.lock)
			assert.Equal(t, tc.kind, kind)
			if tc.kind != "" {
				assert.Equal(t, tc.path, key.path)
				assert.NotNil(t, key.session)
			} else {
				assert.Zero(t, key)
			}
			if joint, is := tc.lock.(jointMember); is {
				assert.Same(t, key.session, sessionOf(joint))
			}
			own, ours := tc.lock.(ownLock)
			require.Equal(t, tc.ours, ours)
			if ours {
				assert.NotNil(t, own.holders().Core)
			}
		})
	}
}

func TestMembersThatCannotBeUsed(t *testing.T) {
	bad := NewInterProcessMutex(nil, "/m")
	for name, lock := range map[string]Lock{
		"mutex":           bad,
		"semaphore":       NewInterProcessSemaphore(nil, "/s", 1),
		"semaphore mutex": NewInterProcessSemaphoreMutex(nil, "/x"),
		"MultiLock":       NewInterProcessMultiLock(bad),
		"no members":      NewInterProcessMultiLock(),
	} {
		assert.False(t, isNil(lock), name)
		require.ErrorIs(t, faultOf(lock), ErrInvalidLock, name)
		assert.Nil(t, lock.(ownLock).holders().tracing(), name)
	}
	for _, lock := range []Lock{
		nil, (*InterProcessMutex)(nil), (*InterProcessSemaphore)(nil), (*InterProcessSemaphoreMutex)(nil), (*InterProcessMultiLock)(nil),
	} {
		assert.True(t, isNil(lock), "%T", lock)
	}
}

// An option that ends a wait early says why in the words of its own error.
func TestARefusalKeepsItsWords(t *testing.T) {
	srv := zktest.Start(t)
	c, err := framework.Start(framework.Config{ConnectString: srv.ConnectString()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	m := NewInterProcessMutex(c, "/m")
	refused := &acquire.StoppedError{Err: fmt.Errorf("%w: 12 wait", ErrNotAcquired), InTheWay: &acquire.Obstacle{Lock: "/m", Ahead: 13}}
	err = noLimit.verdict(t.Context(), t.Context(), m.queue.Core.Session(), "/m", time.Now(), refused)
	var told *WaitError
	require.ErrorAs(t, err, &told)
	require.ErrorIs(t, err, ErrNotAcquired)
	assert.Equal(t, 13, told.Ahead)
	assert.ErrorContains(t, err, "lock not acquired: 12 wait (waited ")
}
