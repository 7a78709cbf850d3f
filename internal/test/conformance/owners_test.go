package conformance

import (
	"context"
	"fmt"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/wire"
)

// equalNodesOfOthers has a call beside a node of each kind that has the same data, and
// loses its first request. A nil error means that the node is ephemeral as was asked
// for, and of this session. framework.TestEqualNodesOfOthers has the other calls.
func equalNodesOfOthers(e *env) {
	modes := []framework.Mode{framework.Persistent, framework.Ephemeral, framework.Container}
	ops := map[framework.Mode]wire.Op{framework.Persistent: wire.OpCreate, framework.Ephemeral: wire.OpCreate, framework.Container: wire.OpCreateContainer}
	other := e.client()
	var all sync.WaitGroup
	var mu sync.Mutex
	claimed := make(map[string]bool) // nodes that are as intended, and whether these are ephemeral
	for _, asked := range modes {
		for name, way := range map[string]struct {
			op   wire.Op
			call func(ctx context.Context, c *client, path string) error
		}{
			"create": {ops[asked], func(ctx context.Context, c *client, path string) error {
				_, err := c.Create(ctx, path, []byte("d"), asked, framework.Idempotent())
				return err
			}},
			"commit": {wire.OpMulti, func(ctx context.Context, c *client, path string) error {
				tx := c.Transaction()
				tx.Create(path, []byte("d"), asked)
				_, err := tx.Commit(ctx, framework.Idempotent())
				return err
			}},
		} {
			c := e.client()
			all.Go(func() {
				for _, found := range modes {
					for _, by := range []*client{c, other} {
						path := fmt.Sprintf("/%s-%d-%d-%t", name, asked, found, by == c)
						_, err := by.Create(e.soon(), path, []byte("d"), found)
						assert.NoError(e, err)
						c.current()
						lost := c.net.CutBefore(way.op, 1)
						err = way.call(e.soon(), c, path)
						e.fired(lost)
						if (asked == framework.Ephemeral) != (found == framework.Ephemeral) || asked == framework.Ephemeral && by != c {
							assert.ErrorIs(e, err, framework.ErrOutcomeUnknown, path)
							continue
						}
						assert.NoError(e, err, path)
						mu.Lock()
						claimed[path] = asked == framework.Ephemeral
						mu.Unlock()
					}
				}
			})
		}
	}
	all.Wait()

	c := e.client()
	for _, mode := range modes {
		path := fmt.Sprintf("/set-%d", mode)
		_, err := other.Create(e.soon(), path, []byte("theirs"), framework.Ephemeral)
		require.NoError(e, err)
		c.current()
		_, err = c.Create(e.soon(), path, []byte("ours"), mode, framework.OrSet())
		require.ErrorIs(e, err, framework.ErrNodeExists)
		require.ErrorContains(e, err, fmt.Sprintf("ephemeral node of session %#x", other.SessionID()))
		data, _, err := c.Get(e.soon(), path)
		require.NoError(e, err)
		assert.Equal(e, "theirs", string(data))
		for _, err := range []error{c.EnsurePath(e.soon(), path), c.EnsurePath(e.soon(), path+"/below")} {
			require.ErrorIs(e, err, framework.ErrNoChildrenForEphemerals)
			require.ErrorContains(e, err, fmt.Sprintf("%s is ephemeral, of session %#x", e.chroot+path, other.SessionID()))
		}
	}

	there := func(when string, want func(ephemeral bool) bool) {
		names := e.children("")
		for path, ephemeral := range claimed {
			if want(ephemeral) {
				assert.Contains(e, names, path[1:], when)
			} else {
				assert.NotContains(e, names, path[1:], when)
			}
		}
	}
	require.NoError(e, other.Close())
	there("without the other client", func(bool) bool { return true })
	for _, c := range e.clients {
		require.NoError(e, c.Close())
	}
	there("without any client", func(ephemeral bool) bool { return !ephemeral })
}
