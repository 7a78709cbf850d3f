package locks_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// An election's mutex has the nodes of Curator's recipe, and each acquisition one of its own.
func TestNewElection(t *testing.T) {
	for kind, mark := range map[string]string{monitor.Latch: "latch-", monitor.Selector: "-lock-"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				root := kit.Connect(t, srv)
				c := root.UsingNamespace("ns")
				election := locks.NewElection(c, kind, "/e", locks.NodeData([]byte("me")), locks.LocalHandovers(5))
				require.NoError(t, election.Err())
				assert.Equal(t, kind+" /ns/e", election.String())
				first, err := election.First(t.Context())
				require.NoError(t, err)
				assert.Empty(t, first, "the path is not there")
				hold, err := election.Acquire(t.Context())
				require.NoError(t, err)
				assert.Contains(t, hold.Path(), mark)
				second := make(chan *locks.Hold)
				go func() {
					hold, err := election.Acquire(t.Context())
					assert.NoError(t, err)
					second <- hold
				}()
				synctest.Wait()
				all := srv.Ephemerals(0)
				assert.Len(t, all, 2)
				assert.Equal(t, kind, c.Holds()[0].Lock.Kind)
				assert.Equal(t, kind, c.Waiters()[0].Lock.Kind)
				first, err = locks.NewElection(c, kind, "/e").First(t.Context())
				require.NoError(t, err)
				assert.Equal(t, hold.Path(), first)
				require.NoError(t, hold.Release())
				next := <-second
				assert.NotEqual(t, hold.Path(), next.Path())
				assert.True(t, strings.HasPrefix(next.Path(), "/e/"))
				other := map[string]string{monitor.Latch: monitor.Selector, monitor.Selector: monitor.Latch}[kind]
				_, err = locks.NewElection(c, other, "/e").First(t.Context())
				require.ErrorIs(t, err, locks.ErrInvalidLock)
				require.NoError(t, next.Release())
			})
		})
	}
}

// What is wrong with how a lock was made is known without a server.
func TestErrOfAMutex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
		for says, m := range map[string]*locks.InterProcessMutex{
			"no client":                      locks.NewInterProcessMutex(nil, "/m"),
			"invalid path":                   locks.NewElection(c, monitor.Latch, "m"),
			"option is nil":                  locks.NewElection(c, monitor.Selector, "/m", nil),
			`"mutex" is no kind of election`: locks.NewElection(c, monitor.Mutex, "/m"),
			"NewInterProcessMutex":           new(locks.InterProcessMutex),
			"NewInterProcessReadWriteLock":   nil,
		} {
			require.ErrorIs(t, m.Err(), locks.ErrInvalidLock, says)
			require.ErrorContains(t, m.Err(), says)
			_, err := m.First(t.Context())
			require.ErrorIs(t, err, locks.ErrInvalidLock, says)
			_, err = m.Acquire(t.Context())
			require.ErrorIs(t, err, locks.ErrInvalidLock, says)
		}
		m := locks.NewInterProcessMutex(c, "/m")
		require.NoError(t, m.Err())
		_, err := m.First(nil) //nolint:staticcheck // that is what is tried
		require.ErrorIs(t, err, framework.ErrNilContext)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = m.First(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}
