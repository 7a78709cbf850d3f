package locks_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

var manyHolds = flag.Int("holds", 1_000, "how many holds TestManyHoldsAreLost loses at once")

// holdMany makes one client hold many locks over TCP, and another wait for fifty of
// them, which give makes it get. It returns the least time from the end of a hold's
// context, or a little after that, to the grant to the other client.
func holdMany(t *testing.T, give func(srv *zktest.Server, c *framework.Client)) (least time.Duration) {
	t.Helper()
	srv := zktest.Start(t)
	dial := func(timeout time.Duration) *framework.Client {
		c, err := framework.Connect(t.Context(), framework.Config{
			ConnectString: srv.ConnectString(), SessionTimeout: timeout,
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c, other := dial(3*time.Second), dial(30*time.Second)
	holds := make([]*locks.Hold, *manyHolds)
	var acquiring sync.WaitGroup
	for part := range 16 {
		acquiring.Go(func() {
			for i := part; i < len(holds); i += 16 {
				h, err := locks.NewInterProcessMutex(c, fmt.Sprint("/many/", i)).Acquire(t.Context())
				if !assert.NoError(t, err) {
					return
				}
				holds[i] = h
			}
		})
	}
	acquiring.Wait()
	require.False(t, t.Failed())
	contexts := make([]context.Context, len(holds))
	for i, h := range holds {
		contexts[i] = h.Context()
	}
	margins := make([]time.Duration, 50)
	var waiting sync.WaitGroup
	for n := range margins {
		i := n * len(holds) / len(margins)
		ended := make(chan time.Time, 1)
		context.AfterFunc(contexts[i], func() { ended <- time.Now() })
		waiting.Go(func() {
			next, err := locks.NewInterProcessMutex(other, fmt.Sprint("/many/", i)).Acquire(t.Context())
			granted := time.Now()
			assert.Error(t, contexts[i].Err(), "the context of lock %d", i)
			margins[n] = granted.Sub(<-ended)
			if assert.NoError(t, err) {
				assert.NoError(t, next.Release())
			}
		})
	}
	require.NoError(t, srv.WaitChildren(t.Context(), "/many/0", 2))
	give(srv, c)
	waiting.Wait()
	for i, h := range holds {
		assert.ErrorIs(t, h.Release(), locks.ErrLockLost, "hold %d", i)
	}
	return slices.Min(margins)
}

// However many holds a client has, all contexts have ended when somebody else gets
// the first of the locks.
func TestManyHoldsAreLost(t *testing.T) {
	for name, give := range map[string]func(srv *zktest.Server, c *framework.Client){
		// The server is there all the time, so the session is closed at once.
		"no renewal": func(srv *zktest.Server, c *framework.Client) {
			srv.On(zktest.Match{Op: "multi", Session: c.SessionID()}, zktest.Fail(-127))
		},
		"silence": func(srv *zktest.Server, c *framework.Client) {
			srv.On(zktest.Match{Session: c.SessionID()}, zktest.Delay(time.Hour))
		},
		"close": func(_ *zktest.Server, c *framework.Client) { assert.NoError(t, c.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			t.Logf("least margin %v", holdMany(t, give))
		})
	}
}
