package recipe_test

import (
	"context"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/examples/recipe"
	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, srv *zktest.Server) *framework.Client {
	t.Helper()
	client, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString(), DialContext: srv.DialContext})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return client
}

// Members come and go, and stay through cuts, lost replies and the ends of sessions. Time is
// virtual: the test takes milliseconds.
func TestParty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a, b := connect(t, srv), connect(t, srv)
		party := recipe.New(a, "/party", "a")
		ctx, cancel := context.WithCancel(t.Context())
		next, stop := iter.Pull2(party.Watch(ctx))
		defer stop()
		sees := func(want ...string) {
			t.Helper()
			for {
				members, err, ok := next()
				require.NoError(t, err)
				require.True(t, ok)
				slices.Sort(members)
				if slices.Equal(want, members) {
					return
				}
			}
		}
		sees()

		srv.On(zktest.Match{Op: "create", Nth: 2}, zktest.CutAfter()) // the reply is lost
		leaveA, err := party.Join(t.Context())
		require.NoError(t, err)
		leaveB, err := recipe.New(b, "/party", "b").Join(t.Context())
		require.NoError(t, err)
		sees("a", "b")

		// kazoo counts nodes with its mark only.
		_, err = b.Create(t.Context(), "/party/other", nil, framework.Ephemeral)
		require.NoError(t, err)
		_, err = b.Create(t.Context(), "/party/0123__party__", []byte("kazoo"), framework.Ephemeral)
		require.NoError(t, err)
		sees("a", "b", "kazoo")

		require.NoError(t, srv.Disconnect(a.SessionID()))
		require.NoError(t, srv.ExpireSession(b.SessionID()))
		time.Sleep(time.Minute)
		sees("a", "b")

		require.NoError(t, leaveB(t.Context()))
		sees("a")
		require.NoError(t, leaveA(t.Context()))
		sees()
		cancel()
		_, err, _ = next()
		require.ErrorIs(t, err, context.Canceled)
	})
}

// The client shows a party that is followed, and ends that when it is closed.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a, b := connect(t, srv), connect(t, srv)
		shows := func() (party []monitor.Entry) {
			return slices.DeleteFunc(a.Entries(), func(e monitor.Entry) bool { return e.Kind != "party" })
		}
		stop, err := recipe.New(a, "/party", "a").Follow()
		require.NoError(t, err)
		synctest.Wait()
		want := monitor.Entry{Kind: "party", State: "known", Path: "/party", Since: time.Now(), Numbers: map[string]int64{"members": 0}}
		assert.Equal(t, []monitor.Entry{want}, shows())
		time.Sleep(time.Minute)
		leave, err := recipe.New(b, "/party", "b").Join(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		want.Numbers["members"] = 1
		assert.Equal(t, []monitor.Entry{want}, shows())
		stop()
		assert.Empty(t, shows())
		require.NoError(t, leave(t.Context()))

		_, err = b.Create(t.Context(), "/secret", nil, framework.Persistent, framework.ACLs(framework.WorldACL(framework.PermCreate)))
		require.NoError(t, err)
		_, err = recipe.New(a, "/secret", "a").Follow()
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Len(t, shows(), 1)
		assert.Equal(t, "not known", shows()[0].State)
		require.ErrorIs(t, shows()[0].Err, framework.ErrNoAuth)
		require.NoError(t, a.Close(), "which ends it")
		_, err = recipe.New(a, "/party", "a").Follow()
		require.ErrorIs(t, err, framework.ErrClosed)
	})
}
