package kit

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	zktest "github.com/paddock-zk/paddock/testing"
)

func TestNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := Connect(t, srv)
		Fill(t, c, "/a/q", "x-", 1100) // in two transactions
		assert.Len(t, Children(t, c, "/a/q"), 1100)
		assert.Contains(t, Put(t, c, "/b/lock-"), "/b/_c_")
		require.NoError(t, Raze(t.Context(), c, "/a"))
		assert.ElementsMatch(t, []string{"b", "zookeeper"}, Children(t, c, "/"))
		require.Error(t, Raze(t.Context(), c, "/a"))
	})
}
