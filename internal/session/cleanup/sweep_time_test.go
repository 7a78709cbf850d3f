package cleanup

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/session"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestSweepDeletesWhatHasTheProtection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := open(t, zktest.Start(t, zktest.InMemory()))
		ours, kept := session.NewProtection(s), session.NewProtection(s)
		require.NoError(t, create(t.Context(), s, "/"+ours+"a"))
		require.NoError(t, create(t.Context(), s, "/"+kept+"a"))
		Sweep(s, s.ID(), "/", ours)
		synctest.Wait()
		c, err := s.AwaitConn(t.Context(), true)
		require.NoError(t, err)
		_, err = session.Stat(t.Context(), s, c, "/"+ours+"a")
		require.ErrorIs(t, err, zk.ErrNoNode)
		_, err = session.Stat(t.Context(), s, c, "/"+kept+"a")
		require.NoError(t, err)
		assert.Empty(t, sweepsSlot.Of(s).wanted)
		require.NoError(t, s.Close())
		Sweep(s, s.ID(), "/", ours)
		assert.Empty(t, sweepsSlot.Of(s).wanted, "no job can run any more")
	})
}

// A node that lasts, and has got children meanwhile, stays. That is told once.
func TestSweepOfANodeWithChildren(t *testing.T) {
	for _, n := range []int{1, 2} { // nodes: one is deleted by itself, two in a transaction
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory())
			s, _ := open(t, srv)
			var told []error
			s.Errors().Listen(func(err error) { told = append(told, err) })
			ours := session.NewProtection(s)
			for i := range n {
				require.NoError(t, create(t.Context(), s, fmt.Sprintf("/%s%d", ours, i)))
			}
			if n > 1 {
				srv.On(zktest.Match{Op: "multi", Nth: 2}, zktest.Fail(-111)) // the first one is a barrier
			}
			deletes := srv.On(zktest.Match{Op: "delete"}, zktest.Fail(-111))
			Sweep(s, 0, "/", ours)
			time.Sleep(time.Minute)
			synctest.Wait()
			assert.Equal(t, n, deletes.Fired())
			assert.Len(t, told, n)
			for _, err := range told {
				assert.ErrorIs(t, err, zk.ErrNotEmpty)
			}
		})
	}
}

// A node that is being removed by itself is left to that removal.
func TestSweepBesideARemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, _ := open(t, srv)
		ours := session.NewProtection(s)
		for _, name := range []string{"a", "b", "c"} {
			require.NoError(t, create(t.Context(), s, "/"+ours+name))
		}
		SweepBeside(s, s.ID(), "/", ours, ours+"b")
		synctest.Wait()
		assert.Equal(t, []string{"/" + ours + "b"}, srv.Ephemerals(0))
	})
}

// The request whose reply was lost is applied late: after the session has come back,
// and before its next write. So a list without a write before would not show the node.
func TestSweepComesBehindAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, _ := open(t, srv)
		late, _ := open(t, srv)
		ours := session.NewProtection(s)
		srv.On(zktest.Match{Op: "multi", Session: s.ID(), Nth: 1}, zktest.Call(func(zktest.Request) {
			assert.NoError(t, create(t.Context(), late, "/"+ours+"a"))
		}))
		Sweep(s, s.ID(), "/", ours)
		synctest.Wait()
		assert.Equal(t, 1, srv.Requests()["create2"])
		assert.Equal(t, 1, srv.Requests()["delete"])
		assert.Empty(t, srv.Ephemerals(0))
	})
}
