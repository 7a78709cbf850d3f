//go:build realzk

package robustness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/listeners"
)

// A server without a majority is READ_ONLY for clients that accept that. This is
// true for a client that was connected before, and as the first state of a new one.
// Such a server refuses to go on with a session that the ensemble knows. So the
// servers are set to keep sessions to themselves, as in Curator's test.
func TestReadOnly(t *testing.T) {
	e := realzk.StartT(t, realzk.Options{Servers: 3, Tick: tick, ReadOnlyMode: true,
		Properties: map[string]string{"localSessionsEnabled": "true", "localSessionsUpgradingEnabled": "true"}})
	readOnly := func(cfg *framework.Config) { cfg.CanBeReadOnly = true }
	old := kit.Connect(t, e, short, readOnly)
	_, err := old.Create(t.Context(), "/a", []byte("x"), framework.Persistent)
	require.NoError(t, err)
	next := follow(t, old)
	next(listeners.Connected)
	require.NoError(t, e.Kill(0))
	require.NoError(t, e.Kill(1))
	next(listeners.ReadOnly)
	fresh, err := framework.Start(framework.Config{ConnectString: e.ConnectString(), SessionTimeout: sessionTimeout, CanBeReadOnly: true})
	require.NoError(t, err)
	defer func() { _ = fresh.Close() }()
	nextOfFresh := follow(t, fresh)
	nextOfFresh(listeners.ReadOnly)
	data, _, err := fresh.Get(t.Context(), "/a")
	require.NoError(t, err)
	assert.Equal(t, "x", string(data))

	require.NoError(t, e.Restart(t.Context(), 0))
	next(listeners.Reconnected)
	nextOfFresh(listeners.Connected)
	_, err = fresh.Set(t.Context(), "/a", []byte("y"), framework.AnyVersion)
	require.NoError(t, err)
}

// follow waits for states, passing over others.
func follow(t *testing.T, c *framework.Client) func(want listeners.State) {
	t.Helper()
	sub := c.States().Subscribe()
	t.Cleanup(sub.Stop)
	return func(want listeners.State) {
		t.Helper()
		limit := time.NewTimer(time.Minute)
		defer limit.Stop()
		for {
			select {
			case s := <-sub.C:
				t.Log(s)
				if s == want {
					return
				}
			case <-limit.C:
				require.FailNow(t, "no "+want.String())
			}
		}
	}
}
