package recipes_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes"
	zktest "github.com/paddock-zk/paddock/testing"
)

// The queues of a MultiLock are listed with one request, however many they are.
func TestMultiLockListsItsQueuesTogether(t *testing.T) {
	for _, n := range []int{2, 10} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
			c := connect(t, srv)
			lock := multiOf(c, n)
			h, err := lock.Acquire(t.Context()) // makes the parents
			require.NoError(t, err)
			require.NoError(t, h.Release())
			before := srv.Requests()
			assert.Equal(t, 1.0, took(t, hold(lock, &h)))
			assert.Equal(t, 1.0, took(t, h.Release))
			after := srv.Requests()
			assert.Equal(t, 2, after["multi"]-before["multi"])
			assert.Equal(t, 1, after["multiRead"]-before["multiRead"])
			assert.Equal(t, before["getChildren"], after["getChildren"])
		})
	}
}

func multiOf(c *framework.Client, n int) recipes.Lock {
	members := make([]recipes.Lock, n)
	for i := range members {
		members[i] = recipes.NewInterProcessMutex(c, fmt.Sprintf("/l/%d", i))
	}
	return recipes.NewInterProcessMultiLock(members...)
}

// Servers before 3.6 do not know the one request, and end the connection. It is
// tried once.
func TestMultiLockOnServersThatCannotListTogether(t *testing.T) {
	const unimplemented = -6
	for name, fault := range map[string]zktest.Fault{
		"cut": zktest.CutBefore(), "cut after": zktest.CutAfter(), "refused": zktest.Fail(unimplemented),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c := connect(t, srv)
				for i := range 3 {
					require.NoError(t, c.EnsurePath(t.Context(), fmt.Sprintf("/l/%d", i)))
				}
				tried := srv.On(zktest.Match{Op: "multiRead"}, fault)
				lock := multiOf(c, 3)
				for range 3 {
					h, err := lock.Acquire(t.Context())
					require.NoError(t, err)
					assert.Len(t, srv.Ephemerals(c.SessionID()), 3)
					require.NoError(t, h.Release())
				}
				time.Sleep(time.Minute)
				assert.Empty(t, srv.Ephemerals(0))
				assert.Equal(t, 1, tried.Fired())
			})
		})
	}
}

// A connection that is lost tells nothing of a server that has listed queues
// together before.
func TestMultiLockListsTogetherAfterALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := connect(t, srv)
		lock := multiOf(c, 3)
		for i := range 3 {
			h, err := lock.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release())
			if i == 0 {
				srv.On(zktest.Match{Op: "multiRead", Nth: 1}, zktest.CutBefore())
			}
		}
		before := srv.Requests()
		h, err := lock.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Release())
		assert.Equal(t, 1, srv.Requests()["multiRead"]-before["multiRead"])
	})
}

// One reply for all queues is too large, and those for each are not.
func TestMultiLockWhoseListsAreTooLargeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := connect(t, srv, func(cfg *framework.Config) { cfg.MaxReply = 4 << 10 })
		for i := range 3 {
			require.NoError(t, c.EnsurePath(t.Context(), fmt.Sprintf("/l/%d/%s", i, strings.Repeat("x", 3<<10))))
		}
		lock := multiOf(c, 3)
		for range 2 {
			h, err := lock.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release())
		}
		assert.Equal(t, 1, srv.Requests()["connect"])
		assert.Empty(t, srv.Ephemerals(0))
	})
}
