package framework_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A Keeper ends the connection at an operation that it does not know, and the session with
// it. The client took containers for unknown after seven of these ends.
func TestKeeperCostsOneSessionForContainers(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, c *framework.Client) error{
		"lock": func(t *testing.T, c *framework.Client) error {
			hold, err := locks.NewInterProcessMutex(c, "/a/b/l").Acquire(t.Context())
			if err == nil {
				err = hold.Release()
			}
			return err
		},
		"parents": func(t *testing.T, c *framework.Client) error {
			_, err := c.Create(t.Context(), "/p/a/b", nil, framework.Persistent, framework.Parents(), framework.OrSet())
			return err
		},
		"path": func(t *testing.T, c *framework.Client) error { return c.EnsurePath(t.Context(), "/e/a") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Keeper("25.12"))
				logged, logs := kit.Logged(zapcore.WarnLevel)
				c := kit.Connect(t, srv, logged)
				before := srv.Requests()["connect"]
				for range 3 {
					require.NoError(t, use(t, c))
				}
				lost := srv.Requests()["connect"] - before
				assert.LessOrEqual(t, lost, 2, "one renewal, which is refused, and one new session")
				assert.Equal(t, []string{"createContainer"}, c.Stats().Unsupported)
				assert.Equal(t, 1, logs.FilterMessageSnippet("the servers do not know a request").Len())
			})
		})
	}
}

// What is asked for by name is refused after one session, too.
func TestKeeperCostsOneSessionForATimeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Keeper("25.12"))
		c := kit.Connect(t, srv)
		create := func() error {
			_, err := c.Create(t.Context(), "/a", nil, framework.Persistent, framework.TTL(time.Minute))
			return err
		}
		require.ErrorIs(t, create(), framework.ErrOutcomeUnknown)
		require.NoError(t, c.BlockUntilConnected(t.Context()))
		id := c.SessionID()
		for range 3 {
			require.ErrorIs(t, create(), framework.ErrUnsupported)
		}
		assert.Equal(t, id, c.SessionID())
		connects := srv.Requests()["connect"]
		for range 180 {
			time.Sleep(10 * time.Second)
			require.Error(t, create())
		}
		assert.LessOrEqual(t, srv.Requests()["connect"]-connects, 3*2, "it is tried again after 4, 12 and 28 minutes")
		assert.Equal(t, []string{"createTTL"}, c.Stats().Unsupported)
	})
}

// A Keeper that restarts at a request which it has answered before is not blamed for it.
func TestKeeperThatRestartsAtAContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Keeper("26.7"))
		c := kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/a"))
		srv.On(zktest.Match{Op: "createContainer", Nth: 1}, zktest.CutBefore())
		require.NoError(t, c.EnsurePath(t.Context(), "/b"))
		assert.Empty(t, c.Stats().Unsupported)
	})
}

// The reply to what makes the parents says nothing about the node itself, which was
// refused before. The outcome was told as unknown, so Create did not try again.
func TestCreateWhenTheReplyToItsParentsIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		policy retry.Policy
		want   error
	}{
		"tried again": {retry.Policy{}, nil},
		"once":        {retry.None(), framework.ErrNotConnected},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = tc.policy })
				srv.On(zktest.Match{Op: "createContainer", Nth: 1}, zktest.CutAfter())
				_, err := c.Create(t.Context(), "/a/b", nil, framework.Persistent, framework.Parents())
				require.ErrorIs(t, err, tc.want)
				require.NotErrorIs(t, err, framework.ErrOutcomeUnknown)
			})
		})
	}
}
