package framework_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// However long a path is, it takes two round trips, and one if all of it is there.
func TestEnsurePath_RoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Latency))
		c := kit.Connect(t, srv)
		ensure := func(path string) func() error { return func() error { return c.EnsurePath(t.Context(), path) } }
		assert.Equal(t, 2.0, kit.RoundTrips(t, ensure("/a/b"+strings.Repeat("/c", 100))))
		assert.Equal(t, 1.0, kit.RoundTrips(t, ensure("/a/b/c")))
		assert.Equal(t, 1.0, kit.RoundTrips(t, ensure("/zookeeper")))
	})
}

// Others delete the path while it is made: it is made again, for a few turns.
func TestEnsurePath_OthersDelete(t *testing.T) {
	for name, tc := range map[string]struct {
		most int32
		want error
	}{"some": {3, nil}, "without an end": {1 << 30, framework.ErrNoNode}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				var n atomic.Int32
				srv.On(zktest.Match{Session: c.SessionID(), Op: "createContainer", Path: "/a/b"}, zktest.Call(func(zktest.Request) {
					if n.Add(1) <= tc.most {
						_ = other.Delete(context.Background(), "/a", framework.AnyVersion)
					}
				}))
				require.ErrorIs(t, c.EnsurePath(t.Context(), "/a/b"), tc.want)
				assert.LessOrEqual(t, n.Load(), int32(100))
			})
		})
	}
}

// Nodes are containers, but not on servers that do not know these, nor if they are not to be.
func TestEnsurePath_Containers(t *testing.T) {
	for name, tc := range map[string]struct {
		fault      zktest.Fault
		change     func(*framework.Config)
		containers bool
		asked      int
	}{
		"known":     {zktest.Delay(0), func(*framework.Config) {}, true, 4},
		"not known": {zktest.Fail(-6), func(*framework.Config) {}, false, 2}, // of one call, and of no later one
		"not meant": {zktest.Delay(0), func(cfg *framework.Config) { cfg.NoContainers = true }, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv, tc.change)
				asked := srv.On(zktest.Match{Session: c.SessionID(), Op: "createContainer"}, tc.fault)
				for i := range 2 {
					require.NoError(t, c.EnsurePath(t.Context(), fmt.Sprintf("/%d/b", i)))
					require.NoError(t, c.Delete(t.Context(), fmt.Sprintf("/%d/b", i), framework.AnyVersion))
				}
				assert.Equal(t, tc.asked, asked.Fired())
				srv.SweepContainers()
				for i := range 2 {
					there, _, err := c.Exists(t.Context(), fmt.Sprintf("/%d", i))
					require.NoError(t, err)
					assert.Equal(t, !tc.containers, there)
				}
			})
		})
	}
}
