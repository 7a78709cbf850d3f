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
		lock  Lock
		path  string
		kind  znode.Kind // of what a MultiLock knows if it is named twice, else ""
		joint bool
	}{
		"mutex":           {m, "/app/m", znode.Lock, true},
		"read side":       {rw.ReadLock(), "/app/rw", znode.Read, true},
		"write side":      {rw.WriteLock(), "/app/rw", znode.Write, true},
		"semaphore":       {s, "/app/s", znode.Lease, false},
		"semaphore mutex": {x, "/app/x", znode.Lease, true},
		"foreign":         {foreignLock{m}, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, faultOf(tc.lock))
			q := queueOf(tc.lock)
			assert.Equal(t, tc.path, q.Lock)
			assert.Equal(t, tc.path, q.key.path)
			assert.Equal(t, tc.kind, q.Kind)
			if tc.kind == "" {
				assert.Zero(t, *q)
				return
			}
			assert.Same(t, q.Core.Session(), q.key.session)
			hold, joint, err := tc.lock.(ownMember).beginMember(t.Context())
			require.NoError(t, err)
			assert.Nil(t, hold)
			assert.Equal(t, tc.joint, joint.Queue != nil)
		})
	}
	assert.Same(t, &m.queue, NewInterProcessMultiLock(foreignLock{m}, x, m).holders(), "the first of ours")
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
		require.ErrorIs(t, faultOf(lock), ErrInvalidLock, name)
		assert.Nil(t, lock.(interface{ holders() *queue }).holders().tracing(), name)
	}
	for _, lock := range []Lock{
		nil, (*InterProcessMutex)(nil), (*InterProcessSemaphore)(nil), (*InterProcessSemaphoreMutex)(nil), (*InterProcessMultiLock)(nil),
	} {
		require.ErrorIs(t, faultOf(lock), ErrInvalidLock, "%T", lock)
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
