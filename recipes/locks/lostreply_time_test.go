package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// The reply to the creation of a node was lost, and the node may not be read: who
// may administer it asks for the access list instead.
func TestLostReplyAboutANodeThatNobodyMayRead(t *testing.T) {
	for _, version := range []string{"3.8", "3.9"} {
		for _, perms := range []int32{0, zk.PermAdmin} {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Version(version))
				c := kit.Connect(t, srv, unreadable(perms))
				require.NoError(t, c.EnsurePath(t.Context(), "/l"))
				rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "create2", Nth: 1}, zktest.CutAfter())
				h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				assert.Equal(t, 1, rule.Fired())
				if version == "3.9" && perms == 0 {
					require.ErrorIs(t, err, framework.ErrNoAuth)
				} else {
					require.NoError(t, err)
					assert.NotZero(t, h.FencingToken())
					require.NoError(t, h.Release())
				}
				time.Sleep(time.Minute)
				assert.Empty(t, srv.Ephemerals(0))
			})
		}
	}
}

// A creation lost its reply and was applied late, after another one had been granted. When
// that one's hold is over, for whatever reason, the node of the first goes as well.
func TestLateNodeGoesWithTheHold(t *testing.T) {
	for name, over := range map[string]func(t *testing.T, srv *zktest.Server, admin *framework.Client, h *locks.Hold){
		"released": func(*testing.T, *zktest.Server, *framework.Client, *locks.Hold) {},
		"deleted": func(t *testing.T, _ *zktest.Server, admin *framework.Client, h *locks.Hold) {
			require.NoError(t, admin.Delete(t.Context(), h.Path(), framework.AnyVersion))
			time.Sleep(time.Second)
			require.ErrorIs(t, h.Err(), locks.ErrNodeDeleted)
		},
		"suspended": func(t *testing.T, srv *zktest.Server, _ *framework.Client, h *locks.Hold) {
			srv.DisconnectAll()
			time.Sleep(time.Second)
			require.ErrorIs(t, h.Err(), framework.ErrNotConnected)
		},
		"committed": func(t *testing.T, _ *zktest.Server, _ *framework.Client, h *locks.Hold) {
			_, err := h.Transaction().CommitAndRelease(t.Context())
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, admin := connect(t, srv), connect(t, srv)
				require.NoError(t, c.EnsurePath(t.Context(), "/l"))
				lost := srv.On(zktest.Match{Session: c.SessionID(), Op: "create2", Nth: 1}, zktest.CutBefore())
				h := acquire(t, locks.NewInterProcessMutex(c, "/l", locks.EndOnSuspended())).soon()
				require.Equal(t, 1, lost.Fired())
				late, err := c.Create(t.Context(), h.Path()[:len(h.Path())-len("0000000000")], nil, framework.EphemeralSequential)
				require.NoError(t, err)
				over(t, srv, admin, h)
				_ = h.Release()
				time.Sleep(time.Minute)
				there, _, err := admin.Exists(t.Context(), late)
				require.NoError(t, err)
				assert.False(t, there, "%s is left in the queue", late)
				assert.Empty(t, srv.Ephemerals(c.SessionID()))
			})
		})
	}
}
