package session

import (
	"strings"
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
func TestBarrier(t *testing.T) {
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
func TestStat(t *testing.T) {
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

func TestFind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv)
		ours, theirs := NewProtection(s), NewProtection(s)
		for _, name := range []string{ours + "a", ours + "b", theirs + "a", "x"} {
			created(t.Context(), t, s, "/"+name)
		}
		before := srv.Requests()["multi"]
		found, err := Find(t.Context(), s, c, "/", ours)
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{ours + "a", ours + "b"}, found)
		assert.Equal(t, 1, srv.Requests()["multi"]-before, "behind a write")
		_, err = Find(t.Context(), s, c, "/none", ours)
		require.ErrorIs(t, err, zk.ErrNoNode)
	})
}

// Where the list is too long the session's own nodes are asked for. A server that does not
// know that is not asked again.
func TestFindOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		fault zktest.Fault
		asked int // in two searches
		found bool
	}{
		"known":               {zktest.Delay(0), 2, true},
		"not known":           {zktest.Fail(-6), 1, false},
		"the connection ends": {zktest.CutBefore(), 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				s, _ := opened(t, srv, func(cfg *Config) { cfg.Transport.MaxReply = 600 })
				crowd, _ := opened(t, srv)
				own := NewProtection(s) + "lock-"
				created(t.Context(), t, s, "/"+own)
				for i := range 20 {
					created(t.Context(), t, crowd, "/"+strings.Repeat(string(rune('a'+i)), 40))
				}
				asked := srv.On(zktest.Match{Op: "getEphemerals"}, tc.fault)
				for range 3 {
					c, err := s.Conn(t.Context(), true)
					require.NoError(t, err)
					found, err := FindOwn(t.Context(), s, c, "/", func(name []byte) bool { return string(name) == own })
					if tc.found {
						require.NoError(t, err)
						assert.Equal(t, []string{own}, found)
					} else {
						require.Error(t, err)
					}
					time.Sleep(time.Second)
				}
				want := tc.asked
				if tc.found {
					want = 3
				}
				assert.Equal(t, want, asked.Fired())
				require.NoError(t, crowd.Close())
				c, err := s.Conn(t.Context(), true)
				require.NoError(t, err)
				found, err := FindOwn(t.Context(), s, c, "/", func(name []byte) bool { return string(name) == own })
				require.NoError(t, err, "the list is short now")
				assert.Equal(t, []string{own}, found)
			})
		})
	}
}

// Data is shown at first and after each change, also over an outage.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, _ := opened(t, srv)
		created(t.Context(), t, s, "/a")
		var seen []string
		stop := Observe(s, s.ID(), "/a", func(data []byte) { seen = append(seen, string(data)) })
		synctest.Wait()
		set := func(data string) {
			c, err := s.Conn(t.Context(), true)
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
		Observe(s, s.ID(), "/none", func([]byte) { assert.Fail(t, "there is no such node") })
		synctest.Wait()
		assert.Empty(t, srv.Watches())
	})
}
