package recipes_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/recipes"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A release that is on its way when the client is closed still hears of its
// success.
func TestReleaseWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := connect(t, srv)
		h, err := recipes.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		released := make(chan error, 1)
		go func() { released <- h.Release() }()
		time.Sleep(d)
		require.NoError(t, c.Close())
		assert.NoError(t, <-released)
	})
}
