package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A session ends as soon as its timeout has passed, if the test wants it.
func TestSessionsExpireInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(2*time.Second), zktest.ExpireEvery(time.Millisecond))
		a := begin(t, srv, 4*time.Second)
		began := time.Now()
		require.NoError(t, srv.WaitSessionGone(t.Context(), a.session))
		assert.InDelta(t, 4*time.Second, time.Since(began), float64(2*time.Millisecond))
	})
}

// A leader that has stood still answers a sync before the ping that is overdue: what
// its follower has heard meanwhile it hears of only then.
func TestLeaderPingsLate(t *testing.T) {
	for _, late := range []time.Duration{0, 300 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *zktest.Cluster, leader, f1, _ int) {
				a := begin(t, c.Member(f1), 2*time.Second)
				time.Sleep(100 * time.Millisecond)
				c.Member(leader).Freeze()
				time.Sleep(900 * time.Millisecond)
				_, err := a.call(wire.OpExists, watch("/x"), nil) // answered by the follower
				require.NoError(t, err)
				touched := time.Now()
				c.Member(leader).Thaw()
				_, err = a.call(wire.OpSync, &wire.PathRequest{Path: "/"}, nil)
				require.NoError(t, err)
				assert.Zero(t, time.Since(touched), "answered at once")
				time.Sleep(late / 2)
				c.PartitionOneWay(f1, leader) // what it says from now on does not arrive
				ended := time.Now()
				require.NoError(t, c.WaitSessionGone(t.Context(), a.session))
				assert.Equal(t, late == 0, ended.Add(1500*time.Millisecond).Before(time.Now()), "whether the leader had heard of the client")
			}, zktest.LatePings(late), zktest.ExpireEvery(time.Millisecond), zktest.SyncLimit(20))
		})
	}
}
