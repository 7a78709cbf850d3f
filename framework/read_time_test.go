package framework_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Each read costs one round trip, and says the same of a node.
func TestReads_RoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Latency))
		c := kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/a", []byte("x"), framework.Persistent)
		require.NoError(t, err)
		_, err = c.Create(t.Context(), "/a/b", nil, framework.Ephemeral)
		require.NoError(t, err)
		var stats [4]*framework.Stat
		for i, read := range []func() error{
			func() (err error) {
				var data []byte
				data, stats[0], err = c.Get(t.Context(), "/a")
				assert.Equal(t, "x", string(data))
				return err
			},
			func() (err error) {
				var there bool
				there, stats[1], err = c.Exists(t.Context(), "/a")
				assert.True(t, there)
				return err
			},
			func() (err error) {
				var names []string
				names, stats[2], err = c.Children(t.Context(), "/a")
				assert.Equal(t, []string{"b"}, names)
				return err
			},
			func() (err error) {
				var acl []framework.ACL
				acl, stats[3], err = c.GetACL(t.Context(), "/a")
				assert.Equal(t, zk.WorldACL(zk.PermAll), acl)
				return err
			},
		} {
			assert.Equal(t, 1.0, kit.RoundTrips(t, read))
			assert.Equal(t, stats[0], stats[i])
			assert.Equal(t, int32(1), stats[i].NumChildren)
		}
		assert.Equal(t, 1.0, kit.RoundTrips(t, func() error { return c.Sync(t.Context(), "/a") }))
	})
}

// What is not there, and what may not be read, is told apart from what no server has said.
func TestReads_Refused(t *testing.T) {
	for _, version := range []string{"3.8", "3.9"} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Version(version))
			c := kit.Connect(t, srv)
			_, err := c.Create(t.Context(), "/dark", nil, framework.Persistent, framework.ACLs(zk.WorldACL(zk.PermWrite)...))
			require.NoError(t, err)
			for path, want := range map[string]error{"/none": framework.ErrNoNode, "/dark": framework.ErrNoAuth} {
				data, stat, err := c.Get(t.Context(), path)
				require.ErrorIs(t, err, want)
				assert.Nil(t, data)
				assert.Nil(t, stat)
				names, stat, err := c.Children(t.Context(), path)
				require.ErrorIs(t, err, want)
				assert.Nil(t, names)
				assert.Nil(t, stat)
				acl, stat, err := c.GetACL(t.Context(), path)
				require.ErrorIs(t, err, want)
				assert.Nil(t, acl)
				assert.Nil(t, stat)
			}
			there, stat, err := c.Exists(t.Context(), "/none")
			require.NoError(t, err)
			assert.False(t, there)
			assert.Nil(t, stat)
			there, _, err = c.Exists(t.Context(), "/dark")
			if version == "3.9" {
				require.ErrorIs(t, err, framework.ErrNoAuth)
			} else {
				require.NoError(t, err)
				assert.True(t, there)
			}
		})
	}
}
