package framework_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// What others make below a node while all is deleted is deleted as well, for a few turns.
func TestDelete_WhatOthersMakeMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		most int32
		want error
	}{"some": {3, nil}, "without an end": {1 << 30, framework.ErrNotEmpty}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				require.NoError(t, c.EnsurePath(t.Context(), "/a/b/c"))
				var n atomic.Int32
				srv.On(zktest.Match{Session: c.SessionID(), Op: "delete", Path: "/a"}, zktest.Call(func(zktest.Request) {
					if i := n.Add(1); i <= tc.most {
						_, _ = other.Create(context.Background(), fmt.Sprint("/a/", i), nil, framework.Persistent)
					}
				}))
				require.ErrorIs(t, c.Delete(t.Context(), "/a", framework.AnyVersion, framework.Recursive()), tc.want)
				there, _, err := c.Exists(t.Context(), "/a")
				require.NoError(t, err)
				assert.Equal(t, tc.want != nil, there)
			})
		})
	}
}

// The version is that of the node alone, and nothing is deleted if it is another one.
func TestDelete_VersionOfAllBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
		require.NoError(t, c.EnsurePath(t.Context(), "/a/b/c"))
		_, err := c.Set(t.Context(), "/a/b", nil, 0)
		require.NoError(t, err)
		require.ErrorIs(t, c.Delete(t.Context(), "/a", 1, framework.Recursive()), framework.ErrBadVersion)
		assert.Equal(t, []string{"c"}, kit.Children(t, c, "/a/b"))
		require.NoError(t, c.Delete(t.Context(), "/a", 0, framework.Recursive()))
		require.ErrorIs(t, c.Delete(t.Context(), "/a", 0, framework.Recursive()), framework.ErrNoNode)
		require.ErrorIs(t, c.Delete(t.Context(), "/a", framework.AnyVersion, framework.Recursive()), framework.ErrNoNode)
		require.ErrorIs(t, c.Delete(t.Context(), "/", 0), framework.ErrInvalidPath)
	})
}

// The end of its context ends the call, and not the deletion.
func TestDelete_GuaranteedBeyondItsContext(t *testing.T) {
	for name, limit := range map[string]time.Duration{"from the start": 0, "without a connection": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				require.NoError(t, c.EnsurePath(t.Context(), "/a"))
				srv.Refuse()
				require.NoError(t, srv.Disconnect(c.SessionID()))
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				err := c.Delete(ctx, "/a", framework.AnyVersion, framework.Guaranteed())
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, framework.ErrOutcomeUnknown, "it has not been sent")
				srv.Accept()
				time.Sleep(10 * time.Second)
				there, _, err := c.Exists(t.Context(), "/a")
				require.NoError(t, err)
				assert.False(t, there)
			})
		})
	}
}

// A delete that fails in a way that may pass goes on until the node is gone. One that is
// refused for good does not.
func TestDelete_Guaranteed(t *testing.T) {
	for name, tc := range map[string]struct {
		path  string
		opts  []framework.DeleteOption
		fault zktest.Fault // of each request until servers can be asked
		goes  bool
	}{
		"no reply":                     {"/a/b", nil, zktest.CutBefore(), true},
		"a lost reply":                 {"/a/b", nil, zktest.CutAfter(), true},
		"too much to do":               {"/a/b", nil, zktest.Fail(-127), true},
		"with all below, no reply":     {"/a", []framework.DeleteOption{framework.Recursive()}, zktest.CutBefore(), true},
		"with all below, a lost reply": {"/a", []framework.DeleteOption{framework.Recursive()}, zktest.CutAfter(), true},
		"refused":                      {"/a/b", nil, zktest.Fail(-102), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				admin, c := kit.Connect(t, srv), kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.None() })
				require.NoError(t, admin.EnsurePath(t.Context(), "/a/b"))
				rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "delete"}, tc.fault)
				err := c.Delete(t.Context(), tc.path, framework.AnyVersion, append(tc.opts, framework.Guaranteed())...)
				require.Error(t, err)
				time.Sleep(time.Minute)
				fired := rule.Fired()
				rule.Remove()
				time.Sleep(time.Minute)
				there, _, err := admin.Exists(t.Context(), tc.path)
				require.NoError(t, err)
				assert.Equal(t, tc.goes, !there)
				assert.LessOrEqual(t, fired, 30, "with pauses")
			})
		})
	}
}
