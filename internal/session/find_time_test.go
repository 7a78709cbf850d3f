package session

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	zktest "github.com/paddock-zk/paddock/testing"
)

func has(protection string) func(name []byte) bool {
	return func(name []byte) bool { return strings.HasPrefix(string(name), protection) }
}

func TestFind_ComesBehindAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv)
		ours, theirs := NewProtection(s), NewProtection(s)
		for _, name := range []string{ours + "a", ours + "b", theirs + "a", "x"} {
			created(t.Context(), t, s, "/"+name)
		}
		before := srv.Requests()["multi"]
		found, err := Find(t.Context(), s, c, "/", false, has(ours))
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{ours + "a", ours + "b"}, found)
		assert.Equal(t, 1, srv.Requests()["multi"]-before, "behind a write")
		_, err = Find(t.Context(), s, c, "/none", false, has(ours))
		require.ErrorIs(t, err, zk.ErrNoNode)
	})
}

// Where the list is too long the session's own nodes are asked for. A server that does not
// know that is not asked again.
func TestFind_InALongList(t *testing.T) {
	for name, tc := range map[string]struct {
		fault zktest.Fault
		asked int // in ten searches
		found bool
	}{
		"known":               {zktest.Delay(0), 10, true},
		"not known":           {zktest.Fail(-6), 1, false},
		"the connection ends": {zktest.CutBefore(), 7, false},
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
				for range 10 {
					c, err := s.AwaitConn(t.Context(), true)
					require.NoError(t, err)
					found, err := Find(t.Context(), s, c, "/", true, has(own))
					if tc.found {
						require.NoError(t, err)
						assert.Equal(t, []string{own}, found)
					} else {
						require.Error(t, err)
					}
					time.Sleep(time.Second)
				}
				assert.Equal(t, tc.asked, asked.Fired())
				assert.Equal(t, !tc.found, slices.Contains(StatsOf(s).Unsupported, "getEphemerals"))
				require.NoError(t, crowd.Close())
				c, err := s.AwaitConn(t.Context(), true)
				require.NoError(t, err)
				found, err := Find(t.Context(), s, c, "/", true, has(own))
				require.NoError(t, err, "the list is short now")
				assert.Equal(t, []string{own}, found)
			})
		})
	}
}
