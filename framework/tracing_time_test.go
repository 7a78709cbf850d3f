package framework_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// calls is a tracer that keeps how calls have ended.
type calls struct {
	monitor.Nothing
	mu     sync.Mutex
	ended  []string
	tries  []int
	events []monitor.Event
}

func (c *calls) End(_ context.Context, op monitor.Operation, r monitor.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = append(c.ended, op.Name+" "+op.Path+": "+string(r.Outcome))
	c.tries = append(c.tries, r.Attempts)
}

func (c *calls) Event(_ context.Context, e monitor.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
}

func (c *calls) of(kind monitor.EventKind) (all []monitor.Event) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.events {
		if e.Kind == kind {
			all = append(all, e)
		}
	}
	return all
}

func TestTracerHearsOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		heard := new(calls)
		cfg := kit.Config(srv)
		cfg.Tracer, cfg.Retry, cfg.Namespace = heard, retry.ExponentialBackoff(time.Second, 3), "app"
		c := kit.Dial(t, cfg)
		require.NoError(t, c.EnsurePath(t.Context(), "/a"))
		_, _, err := c.Get(t.Context(), "/none")
		require.ErrorIs(t, err, framework.ErrNoNode)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err = c.Get(ended, "/a")
		require.ErrorIs(t, err, context.Canceled)
		srv.On(zktest.Match{Op: "setData", Nth: 1}, zktest.CutAfter())
		_, err = c.Set(t.Context(), "/a", []byte("x"), framework.AnyVersion)
		require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
		srv.On(zktest.Match{Op: "getData", Nth: 1}, zktest.CutAfter())
		_, _, err = c.Get(t.Context(), "/a")
		require.NoError(t, err)
		assert.Equal(t, []string{
			"ensure path /app/a: done", "get /app/none: failed", "get /app/a: canceled", "set /app/a: unknown", "get /app/a: done",
		}, heard.ended)
		assert.Equal(t, 2, heard.tries[4])
		retried := heard.of(monitor.Retried)
		require.Len(t, retried, 1)
		require.ErrorIs(t, retried[0].Err, framework.ErrNotConnected)
		assert.Equal(t, "get", retried[0].Operation.Name)
	})
}

func TestStatsThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		heard := new(calls)
		cfg := kit.Config(srv)
		cfg.Tracer = heard
		began := time.Now()
		c := kit.Dial(t, cfg)
		up := c.Stats()
		assert.Equal(t, listeners.Connected, up.State)
		assert.Equal(t, c.SessionID(), up.Session)
		assert.NotEmpty(t, up.Server)
		assert.Equal(t, 30*time.Second, up.Timeout)
		assert.Equal(t, began, up.Since)
		assert.Positive(t, up.LeaseLeft)
		require.NoError(t, up.LastError)
		assert.Empty(t, c.Holds())
		assert.Empty(t, c.Waiters())

		time.Sleep(time.Minute)
		require.NoError(t, srv.Stop())
		time.Sleep(time.Second)
		down := c.Stats()
		assert.Equal(t, listeners.Suspended, down.State)
		assert.Equal(t, began.Add(time.Minute), down.Since)
		assert.Empty(t, down.Server)
		require.Error(t, down.LastError)
		assert.Less(t, down.LeaseLeft, 30*time.Second)
		require.NoError(t, srv.Restart())
		time.Sleep(time.Minute)
		again := c.Stats()
		assert.Equal(t, listeners.Reconnected, again.State)
		require.Error(t, again.LastError, "why the last connection ended is kept")

		var states []listeners.State
		for _, e := range heard.of(monitor.Connection) {
			states = append(states, e.State)
			assert.Equal(t, e.State != listeners.Suspended && e.State != listeners.Lost, e.Server != "", e.State)
		}
		assert.Equal(t, listeners.Connected, states[0])
		closed := time.Now()
		require.NoError(t, c.Close())
		over := c.Stats()
		assert.Equal(t, listeners.Lost, over.State)
		assert.Equal(t, closed, over.Since)
		assert.Zero(t, new(framework.Client).Stats())
		assert.Nil(t, new(framework.Client).Holds())
		assert.Nil(t, new(framework.Client).Waiters())
	})
}

func TestStatsOfALostClientThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Dial(t, kit.Config(srv))
		require.NoError(t, srv.Stop())
		time.Sleep(time.Minute)
		lost := c.Stats()
		assert.Equal(t, listeners.Lost, lost.State)
		time.Sleep(time.Minute)
		require.Error(t, c.Close())
		assert.Equal(t, lost.Since, c.Stats().Since)
	})
}
