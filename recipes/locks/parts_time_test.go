package locks_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A mutex comes to a path while a semaphore makes its parts there. The parts that are left
// must not let others in, also if the connection ends before the semaphore has looked.
func TestMutexThatComesWhileASemaphoreMakesItsParts(t *testing.T) {
	for name, lost := range map[string]bool{"": false, "the look is lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				a, b, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				require.NoError(t, a.EnsurePath(t.Context(), "/p"))
				var hold *locks.Hold
				srv.On(zktest.Match{Path: "/p/locks", Op: "createContainer", Nth: 1}, zktest.Call(func(zktest.Request) {
					var err error
					hold, err = locks.NewInterProcessMutex(a, "/p").Acquire(context.WithoutCancel(t.Context()))
					assert.NoError(t, err)
				}))
				if lost {
					srv.On(zktest.Match{Path: "/p", Op: "getChildren", Session: b.SessionID(), Nth: 2}, zktest.CutBefore())
				}
				for range 2 {
					_, err := locks.NewInterProcessSemaphore(b, "/p", 1).Acquire(t.Context())
					require.ErrorIs(t, err, locks.ErrInvalidLock)
				}
				if !lost {
					_, err := locks.NewInterProcessSemaphore(c, "/p", 1).Acquire(t.Context())
					require.ErrorIs(t, err, locks.ErrInvalidLock)
				}
				require.NoError(t, hold.Err())
				require.NoError(t, hold.Release())
				require.NoError(t, kit.Hold(t, locks.NewInterProcessSemaphore(b, "/p", 1)).Release())
			})
		})
	}
}
