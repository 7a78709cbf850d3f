package conformance

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

var restarts = flag.Int("restarts", 40, "how often a stand-in for ClickHouse Keeper restarts under locks and elections")

// owners checks that of a lock or an election only one owner has a context that goes on.
type owners struct {
	t     *testing.T
	mu    sync.Mutex
	now   context.Context // of the owner that came last
	terms int
}

func (o *owners) came(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now != nil {
		assert.Error(o.t, o.now.Err(), "the owner before must know that it is none any more")
	}
	o.now = ctx
	o.terms++
}

func (o *owners) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.terms
}

// Each restart of a Keeper ends all sessions of its clients. They are connected again each
// time, no hold or term outlives what the servers know of it, and no session is left.
func TestRestartsOfAKeeper(t *testing.T) {
	for _, version := range zktest.KeeperVersions() {
		t.Run(version, func(t *testing.T) { restartKeeper(t, version) })
	}
}

func restartKeeper(t *testing.T, version string) {
	const clients, timeout = 3, 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Keeper(version), zktest.Latency(time.Millisecond), zktest.Watchdog(0))
		ctx, cancel := context.WithCancel(t.Context())
		locked, led := &owners{t: t}, &owners{t: t}
		var all []*framework.Client
		var working sync.WaitGroup
		for range clients {
			c, err := framework.Connect(ctx, framework.Config{ConnectString: srv.ConnectString(), DialContext: srv.DialContext, SessionTimeout: timeout})
			require.NoError(t, err)
			all = append(all, c)
			lock := locks.NewInterProcessMutex(c, "/l")
			working.Go(func() {
				for ctx.Err() == nil {
					_ = locks.Do(ctx, lock, func(ctx context.Context) error {
						locked.came(ctx)
						select {
						case <-ctx.Done():
						case <-time.After(time.Second):
						}
						return nil
					})
				}
			})
			working.Go(func() {
				_ = leader.NewLatch(c, "/e").Run(ctx, func(ctx context.Context, term *leader.Term) error {
					led.came(term.Context())
					<-ctx.Done()
					return nil
				})
			})
		}
		rng := rand.New(rand.NewPCG(33, 0))
		for i := range *restarts {
			time.Sleep(time.Duration(rng.Int64N(int64(3 * timeout))))
			var were []int64
			for _, c := range all {
				were = append(were, c.SessionID())
			}
			require.NoError(t, srv.Restart())
			began := time.Now()
			for j, c := range all {
				for !c.State().IsConnected() || c.SessionID() == were[j] {
					require.Less(t, time.Since(began), timeout, "restart %d: not connected again", i)
					time.Sleep(10 * time.Millisecond)
				}
			}
		}
		time.Sleep(3 * timeout)
		assert.Len(t, srv.Sessions(), clients, "the former ones are over")
		assert.GreaterOrEqual(t, led.count(), *restarts/3)
		assert.GreaterOrEqual(t, locked.count(), *restarts)
		cancel()
		working.Wait()
		for _, c := range all {
			require.NoError(t, c.Close())
		}
		assert.Empty(t, srv.Sessions())
		assert.Empty(t, srv.Ephemerals(0))
		_, _ = fmt.Fprintf(t.Output(), "restarts of %s: %d, %d holds, %d terms\n", version, *restarts, locked.count(), led.count())
	})
}
