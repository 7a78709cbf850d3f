package framework_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestStatesThroughTwoOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/a", []byte("x"), framework.Persistent)
		require.NoError(t, err)
		next := states(t, c)
		next(connected)
		for range 2 {
			require.NoError(t, srv.Stop())
			next(suspended, lost)
			require.NoError(t, srv.Restart())
			next(reconnected)
			data, _, err := c.Get(t.Context(), "/a")
			require.NoError(t, err)
			assert.Equal(t, "x", string(data), "data survives")
			time.Sleep(time.Hour)
			assert.Equal(t, reconnected, c.State(), "once, and nothing more")
		}
	})
}

func TestBlockUntilConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		require.NoError(t, srv.Stop())
		c, err := framework.Start(kit.Config(srv))
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		block := func(limit time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			return c.BlockUntilConnected(ctx)
		}
		began := time.Now()
		err = block(10 * time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded, "never connected")
		require.ErrorIs(t, err, framework.ErrNotConnected)
		assert.Equal(t, 10*time.Second, time.Since(began))

		cause := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		err = c.BlockUntilConnected(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, cause)
		require.ErrorContains(t, err, "(cause: interrupted)")

		time.AfterFunc(time.Second, func() { _ = srv.Restart() })
		require.NoError(t, block(time.Minute), "the first connection")
		began = time.Now()
		for range 100 { // while connected
			require.NoError(t, block(time.Minute))
			_, _, err := c.Exists(t.Context(), "/")
			require.NoError(t, err, "it can be used at once")
		}
		assert.Equal(t, began, time.Now())

		next := states(t, c)
		next(connected)
		require.NoError(t, srv.Stop())
		next(suspended)
		time.AfterFunc(5*time.Second, func() { _ = srv.Restart() })
		require.NoError(t, block(time.Minute), "the next connection")
		next(reconnected)

		require.NoError(t, srv.Stop())
		next(suspended)
		time.AfterFunc(time.Second, func() { _ = c.Close() })
		require.ErrorIs(t, block(time.Minute), framework.ErrClosed)
	})
}

func TestCallsFromAListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		done := make(chan error, 10)
		c.States().Listen(func(s listeners.State) {
			if s != reconnected {
				return
			}
			// Calls one in another, from where Curator's users have deadlocked.
			_, err := c.Create(t.Context(), "/a", nil, framework.Persistent)
			if err == nil {
				_, _, _, err = c.GetW(t.Context(), "/a")
			}
			if err == nil {
				err = c.BlockUntilConnected(t.Context())
			}
			done <- err
		})
		require.NoError(t, srv.Disconnect(c.SessionID()))
		require.NoError(t, <-done)
	})
}

// A call that waits for a connection goes on as soon as there is one.
func TestCallsGoOnAtOnceWhenConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		require.NoError(t, srv.Stop())
		c, err := framework.Start(kit.Config(srv, func(cfg *framework.Config) {
			cfg.ConnectTimeout, cfg.Retry = time.Hour, retry.NTimes(1, time.Hour)
		}))
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		began := time.Now()
		time.AfterFunc(time.Minute, func() { _ = srv.Restart() })
		require.NoError(t, c.EnsurePath(t.Context(), "/a/b/c"))
		assert.Less(t, time.Since(began), time.Minute+2*time.Second)
		states(t, c)(connected) // and no other state before it
	})
}

// LOST can come earlier than the servers could end the session, never later.
func TestLostAfter(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 9 * time.Second: 9 * time.Second, time.Hour: 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory())
			c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.LostAfter = after })
			_, err := c.Create(t.Context(), "/e", nil, framework.Ephemeral)
			require.NoError(t, err)
			next := states(t, c)
			next(connected)
			id := c.SessionID()
			for range 3 { // short outages do not add up
				require.NoError(t, srv.Stop())
				next(suspended)
				time.Sleep(6 * time.Second)
				require.NoError(t, srv.Restart())
				next(reconnected)
				assert.Equal(t, id, c.SessionID())
				time.Sleep(2 * time.Second)
			}
			require.NoError(t, srv.Stop())
			next(suspended)
			down := time.Now()
			next(lost)
			assert.InDelta(t, want, time.Since(down), float64(2500*time.Millisecond))
			assert.LessOrEqual(t, time.Since(down), want)
			require.NoError(t, srv.Restart())
			next(reconnected)
			there, _, err := c.Exists(t.Context(), "/e")
			require.NoError(t, err)
			assert.False(t, there, "the old session is closed where it is found again")
		})
	}
}

// A node with a time to live goes when it has no children and was not modified
// for so long.
func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.SweepInterval(time.Second))
		c := kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/a", nil, framework.Persistent, framework.TTL(10*time.Second))
		require.NoError(t, err)
		path, err := c.Create(t.Context(), "/s-", nil, framework.PersistentSequential, framework.TTL(10*time.Second))
		require.NoError(t, err)
		time.Sleep(8 * time.Second)
		_, err = c.Set(t.Context(), "/a", []byte("kept"), 0)
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		for p, want := range map[string]bool{"/a": true, path: false} {
			there, _, err := c.Exists(t.Context(), p)
			require.NoError(t, err)
			assert.Equal(t, want, there, p)
		}
		time.Sleep(10 * time.Second)
		there, _, err := c.Exists(t.Context(), "/a")
		require.NoError(t, err)
		assert.False(t, there)
	})
}
