package main

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/leader"
	zktest "github.com/paddock-zk/paddock/testing"
)

// The ends that a term can have, with two controllers. Unless it ends by force, never two
// lead.
func TestEndsOfATerm(t *testing.T) {
	for name, tc := range map[string]struct {
		end   func(srv *zktest.Server, first *framework.Client, cancel func())
		goes  bool // the term goes on
		force bool // by an operator: the next leader need not wait
	}{
		"canceled":      {end: func(_ *zktest.Server, _ *framework.Client, cancel func()) { cancel() }},
		"session ended": {end: func(srv *zktest.Server, c *framework.Client, _ func()) { _ = srv.ExpireSession(c.SessionID()) }, force: true},
		"node deleted": {end: func(srv *zktest.Server, c *framework.Client, _ func()) {
			_ = c.Delete(context.Background(), srv.Ephemerals(c.SessionID())[0], framework.AnyVersion)
		}, force: true},
		"cut":              {end: func(srv *zktest.Server, c *framework.Client, _ func()) { _ = srv.Disconnect(c.SessionID()) }, goes: true},
		"cut off for long": {end: func(srv *zktest.Server, c *framework.Client, _ func()) { srv.Stall(c.SessionID(), zktest.BothWays) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				var leading, most atomic.Int32
				var running sync.WaitGroup
				start := func(id string) (*framework.Client, *Elector, func()) {
					client, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString(), DialContext: srv.DialContext})
					require.NoError(t, err)
					ctx, cancel := context.WithCancel(t.Context())
					e := &Elector{Latch: leader.NewLatch(client, "/c", leader.ID(id))}
					e.Callbacks = Callbacks{
						OnStartedLeading: func(ctx context.Context) {
							most.Store(max(most.Load(), leading.Add(1)))
							<-ctx.Done()
							leading.Add(-1)
						},
						OnStoppedLeading: func() { assert.False(t, e.IsLeader()) },
					}
					running.Go(func() { _ = e.Run(ctx) })
					time.Sleep(time.Second)
					return client, e, cancel
				}
				one, first, cancel := start("first")
				two, second, leave := start("second")
				assert.True(t, first.IsLeader())
				assert.Equal(t, "first", second.GetLeader())

				session := one.SessionID()
				tc.end(srv, one, cancel)
				time.Sleep(time.Minute)
				assert.Equal(t, tc.goes, first.IsLeader())
				assert.Equal(t, !tc.goes, second.IsLeader())
				if !tc.goes {
					assert.Equal(t, "second", second.GetLeader())
				}
				srv.Unstall(session)
				time.Sleep(time.Minute)
				cancel()
				leave()
				running.Wait()
				assert.NoError(t, one.Close())
				assert.NoError(t, two.Close())
				if !tc.force {
					assert.EqualValues(t, 1, most.Load(), "never two at once")
				}
			})
		})
	}
}
