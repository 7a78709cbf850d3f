package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A barrier is a write that needs neither its node nor the right to read it.
func TestBarrier_NeedsNoNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv)
		created(t.Context(), t, s, "/dark", 0)
		for _, path := range []string{"/", "/none", "/dark"} {
			barrier := Barrier(path)
			require.NoError(t, s.Send(t.Context(), c, barrier))
			require.NoError(t, AwaitBarrier(t.Context(), s, c, barrier), path)
			assert.True(t, barrier.Committed(), path)
		}
		srv.On(zktest.Match{Op: "multi"}, zktest.Fail(-127))
		barrier := Barrier("/")
		require.NoError(t, s.Send(t.Context(), c, barrier))
		require.Error(t, AwaitBarrier(t.Context(), s, c, barrier), "throttled: nothing was written")
	})
}

// Servers from 3.9 on want the right to read for a Stat, or the one to administer.
func TestStat_TakesTheRightToAdminister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := opened(t, zktest.Start(t, zktest.InMemory(), zktest.Version("3.9")))
		for path, perms := range map[string]int32{"/readable": 1, "/administered": 16} {
			created(t.Context(), t, s, path, perms)
			stat, err := Stat(t.Context(), s, c, path)
			require.NoError(t, err, path)
			assert.Equal(t, s.ID(), stat.EphemeralOwner, path)
		}
		created(t.Context(), t, s, "/dark", 0)
		_, err := Stat(t.Context(), s, c, "/dark")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		_, err = Stat(t.Context(), s, c, "/none")
		require.ErrorIs(t, err, zk.ErrNoNode)
	})
}

// Data is shown at first and after each change, also over an outage.
func TestObserve_ShowsEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, _ := opened(t, srv)
		created(t.Context(), t, s, "/a")
		var seen []string
		stop := ObserveOwn(s, s.ID(), "/a", func(data []byte) { seen = append(seen, string(data)) })
		synctest.Wait()
		set := func(data string) {
			c, err := s.AwaitConn(t.Context(), true)
			require.NoError(t, err)
			require.NoError(t, s.Round(t.Context(), c, wire.OpSetData, true, &wire.SetDataRequest{Path: "/a", Data: []byte(data), Version: -1}, new(wire.StatResponse)))
			synctest.Wait()
		}
		set("1")
		srv.DisconnectAll()
		time.Sleep(time.Second)
		set("2")
		assert.Equal(t, []string{"data", "1", "2"}, seen)
		stop()
		synctest.Wait()
		assert.Empty(t, srv.Watches())
		set("3")
		assert.Len(t, seen, 3)
		ObserveOwn(s, s.ID(), "/none", func([]byte) { assert.Fail(t, "there is no such node") })
		synctest.Wait()
		assert.Empty(t, srv.Watches())
	})
}
