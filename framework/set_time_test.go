package framework_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// After a lost reply an idempotent write is the caller's if the node is as it has made it.
// The writes of others are not.
func TestSet_Idempotent(t *testing.T) {
	read := zk.WorldACL(zk.PermRead | zk.PermWrite | zk.PermAdmin)
	writes := map[string]struct {
		op, reads string
		write     func(ctx context.Context, c *framework.Client, opts ...framework.SetOption) (*framework.Stat, error)
		version   func(*framework.Stat) int32
	}{
		"data": {"setData", "getData", func(ctx context.Context, c *framework.Client, opts ...framework.SetOption) (*framework.Stat, error) {
			return c.Set(ctx, "/a", []byte("ours"), 0, opts...)
		}, func(s *framework.Stat) int32 { return s.Version }},
		"access list": {"setACL", "getACL", func(ctx context.Context, c *framework.Client, opts ...framework.SetOption) (*framework.Stat, error) {
			return c.SetACL(ctx, "/a", read, 0, opts...)
		}, func(s *framework.Stat) int32 { return s.Aversion }},
	}
	for kind, w := range writes {
		for name, tc := range map[string]struct {
			meanwhile func(t *testing.T, admin *framework.Client)
			reads     zktest.Fault
			want      error
			text      string
		}{
			"nobody else": {func(*testing.T, *framework.Client) {}, zktest.Delay(0), nil, ""},
			"somebody else as well": {func(t *testing.T, admin *framework.Client) {
				_, err := admin.Set(context.Background(), "/a", []byte("theirs"), framework.AnyVersion)
				require.NoError(t, err)
				_, err = admin.SetACL(context.Background(), "/a", zk.WorldACL(zk.PermAll), framework.AnyVersion)
				require.NoError(t, err)
			}, zktest.Delay(0), framework.ErrOutcomeUnknown, "zk: version conflict"},
			"it cannot be read": {func(*testing.T, *framework.Client) {}, zktest.Fail(-102), framework.ErrOutcomeUnknown, "and reading it: "},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory())
					c, admin := kit.Connect(t, srv), kit.Connect(t, srv)
					_, err := c.Create(t.Context(), "/a", nil, framework.Persistent)
					require.NoError(t, err)
					srv.On(zktest.Match{Session: c.SessionID(), Op: w.reads}, tc.reads)
					srv.On(zktest.Match{Session: c.SessionID(), Op: w.op, Nth: 1}, zktest.CutAfter())
					srv.On(zktest.Match{Session: c.SessionID(), Op: "connect", Nth: 1}, zktest.Call(func(zktest.Request) { tc.meanwhile(t, admin) }))
					stat, err := w.write(t.Context(), c, framework.Idempotent())
					require.ErrorIs(t, err, tc.want)
					if tc.want == nil {
						assert.Equal(t, int32(1), w.version(stat))
						return
					}
					require.NotErrorIs(t, err, framework.ErrBadVersion, "it may be its own")
					assert.ErrorContains(t, err, tc.text)
				})
			})
		}
		t.Run(kind+", refused at once", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
				_, err := c.Create(t.Context(), "/a", nil, framework.Persistent)
				require.NoError(t, err)
				_, err = w.write(t.Context(), c)
				require.NoError(t, err)
				_, err = w.write(t.Context(), c)
				require.ErrorIs(t, err, framework.ErrBadVersion)
			})
		})
	}
}
