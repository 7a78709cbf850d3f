package kit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestConnect(t *testing.T) {
	srv := zktest.Start(t) // on the network
	change, logs := Logged(zapcore.DebugLevel)
	t.Run("while the test runs", func(t *testing.T) {
		c := Connect(t, srv, change, func(cfg *framework.Config) { cfg.Namespace = "app" })
		_, err := c.Create(t.Context(), "/a", nil, framework.Ephemeral, framework.Parents())
		require.NoError(t, err)
		assert.Equal(t, []string{"a"}, Children(t, c, "/"))
		assert.Equal(t, SessionTimeout, c.SessionTimeout())
		assert.Contains(t, fails(t, func(t testing.TB) { NothingLeft(t, srv, "after %d", 7) }), "/app/a")
		assert.Contains(t, fails(t, func(t testing.TB) { NothingLeft(t, srv, "after %d", 7) }), "after 7")
	})
	NothingLeft(t, srv)
	assert.NotEmpty(t, logs.All())
	assert.NotEmpty(t, fails(t, func(t testing.TB) { Dial(t, framework.Config{}) }))
}

func TestNothingLeftSeesWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := Connect(t, srv)
		_, _, w, err := c.ExistsW(t.Context(), "/none")
		require.NoError(t, err)
		assert.Contains(t, fails(t, func(t testing.TB) { NothingLeft(t, srv) }), "/none")
		w.Stop()
		time.Sleep(time.Second)
		NothingLeft(t, srv)
	})
}
