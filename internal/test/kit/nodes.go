package kit

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
)

// Children are the names of the nodes below a path.
func Children(t testing.TB, c *framework.Client, path string) []string {
	t.Helper()
	names, _, err := c.Children(t.Context(), path)
	require.NoError(t, err)
	return names
}

// Put makes a node as a peer of another library would.
func Put(t testing.TB, c *framework.Client, path string) (node string) {
	t.Helper()
	node, err := c.Create(t.Context(), path, nil, framework.EphemeralSequential, framework.Protected(), framework.Parents())
	require.NoError(t, err)
	return node
}

// Fill makes n ephemeral nodes in a queue, whose names begin with name.
func Fill(t testing.TB, c *framework.Client, queue, name string, n int) {
	t.Helper()
	require.NoError(t, c.EnsurePath(t.Context(), queue))
	for n > 0 {
		tx := c.Transaction()
		for range min(n, 1000) {
			tx.Create(queue+"/"+name, []byte{}, framework.EphemeralSequential)
		}
		_, err := tx.Commit(t.Context())
		require.NoError(t, err)
		n -= min(n, 1000)
	}
}

// Raze deletes a node and all below, in one transaction.
func Raze(ctx context.Context, c *framework.Client, path string) error {
	var below func(path string) ([]string, error)
	below = func(path string) ([]string, error) {
		children, _, err := c.Children(ctx, path)
		if err != nil {
			return nil, err
		}
		var all []string
		for _, child := range children {
			more, err := below(path + "/" + child)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return append(all, path), nil
	}
	all, err := below(path)
	if err != nil {
		return err
	}
	tx := c.Transaction()
	for _, path := range all {
		tx.Delete(path, framework.AnyVersion)
	}
	_, err = tx.Commit(ctx)
	return err
}
