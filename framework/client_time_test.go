package framework_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestStatesThroughAShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		next := states(t, c)
		next(listeners.Connected)
		id := c.SessionID()
		require.NoError(t, srv.Disconnect(id))
		next(listeners.Suspended, listeners.Reconnected)
		assert.Equal(t, id, c.SessionID(), "the same session")
		assert.Equal(t, listeners.Reconnected, c.State())
	})
}

// span is for how long a session lasts after the last word: its timeout,
// less an allowance for clocks and timers.
const span = 30*time.Second - 30*time.Second/64 - 30*time.Millisecond

func TestStatesThroughALongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		next := states(t, c)
		next(listeners.Connected)
		id := c.SessionID()
		began := time.Now()
		require.NoError(t, srv.Stop())
		next(listeners.Suspended, listeners.Lost)
		assert.Equal(t, span, time.Since(began), "one session timeout after the last word, less an allowance for clocks")
		assert.Zero(t, c.SessionID())
		require.NoError(t, srv.Restart())
		next(listeners.Reconnected)
		assert.NotEqual(t, id, c.SessionID(), "a new session")
		for _, s := range srv.Sessions() {
			assert.Equal(t, c.SessionID(), s.ID, "the old one was closed where it was found again")
		}
	})
}

func TestStatesAfterExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		next := states(t, c)
		next(listeners.Connected)
		require.NoError(t, srv.ExpireSession(c.SessionID()))
		next(listeners.Suspended, listeners.Lost, listeners.Reconnected)
	})
}

func TestStatesInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		next := states(t, c)
		next(listeners.Connected)
		time.Sleep(time.Minute) // pings keep the session
		assert.Equal(t, listeners.Connected, c.State())
		frozen := time.Now()
		srv.Freeze()
		next(listeners.Suspended)
		assert.LessOrEqual(t, time.Since(frozen), 20*time.Second)
		next(listeners.Lost)
		assert.LessOrEqual(t, time.Since(frozen), 30*time.Second, "before the server can end the session")
		assert.GreaterOrEqual(t, time.Since(frozen), span-10*time.Second, "the last ping was answered ten seconds before at most")
		srv.Thaw()
		next(listeners.Reconnected)
	})
}

func TestNoServerAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		require.NoError(t, srv.Stop())
		c, err := framework.Start(kit.Config(srv))
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		assert.Equal(t, listeners.Latent, c.State())
		assert.Zero(t, c.SessionTimeout())

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = c.BlockUntilConnected(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, framework.ErrNotConnected)
		assert.ErrorContains(t, err, "connect 127")

		time.AfterFunc(time.Minute, func() { _ = srv.Restart() })
		require.NoError(t, c.BlockUntilConnected(t.Context()), "waits for it")
		assert.Equal(t, 30*time.Second, c.SessionTimeout())
		states(t, c)(listeners.Connected)
	})
}

func TestSessionTimeoutAsNegotiated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.SessionTimeouts(4*time.Second, 10*time.Second))
		for asked, granted := range map[time.Duration]time.Duration{
			time.Second: 4 * time.Second, 7 * time.Second: 7 * time.Second, time.Hour: 10 * time.Second,
		} {
			c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.SessionTimeout = asked })
			assert.Equal(t, granted, c.SessionTimeout())
		}
	})
}

func TestConnectGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		srv.Freeze()
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		_, err := framework.Connect(ctx, kit.Config(srv))
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, cause)
		require.ErrorContains(t, err, "context canceled (cause: enough)")
		srv.Thaw()
	})
}

// What a recipe reports is told to listeners and logged, in the namespaces of a client too.
func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		logged, logs := kit.Logged(zapcore.WarnLevel)
		c := kit.Connect(t, srv, logged)
		sub := c.Errors().Subscribe()
		defer sub.Stop()
		mine := errors.New("no more room")
		c.UsingNamespace("ns").Report("party is full", mine)
		assert.Equal(t, mine, <-sub.C)
		synctest.Wait()
		lines := logs.FilterMessage("party is full").All()
		require.Len(t, lines, 1)
		assert.Equal(t, "no more room", lines[0].ContextMap()["error"])
		new(framework.Client).Report("nobody hears", mine)
	})
}

func TestListenersThatMisbehave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		stuck := make(chan struct{})
		c.States().Listen(func(listeners.State) { <-stuck })
		c.States().Listen(func(listeners.State) { panic("a listener") })
		remove := make(chan func(), 1)
		remove <- c.States().Listen(func(listeners.State) { (<-remove)() }) // once, so there is none for a second time
		reported := make(chan error, 10)
		c.Errors().Listen(func(err error) { reported <- err })
		closed := make(chan error, 1)
		c.States().Listen(func(s listeners.State) {
			if s == listeners.Suspended {
				closed <- c.Close() // from inside
			}
		})
		next := states(t, c)
		next(listeners.Connected)
		require.NoError(t, srv.Disconnect(c.SessionID()))
		next(listeners.Suspended)
		require.NoError(t, <-closed)
		assert.ErrorContains(t, <-reported, "a listener")
		assert.Empty(t, srv.Sessions(), "the session was closed")
		close(stuck)
	})
}

func TestCloseEndsTheSessionAndItsNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/e", nil, framework.Ephemeral)
		require.NoError(t, err)
		_, _, w, err := c.GetW(t.Context(), "/e")
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, c.Close())
		assert.Zero(t, time.Since(began))
		assert.Empty(t, srv.Sessions())
		assert.Empty(t, srv.Ephemerals(0))
		assert.Equal(t, framework.Event{Type: framework.WatchEnded, Path: "/e", Err: framework.ErrClosed}, <-w.C)

		require.NoError(t, c.Close(), "a second time")
		assert.Equal(t, listeners.Lost, c.State())
		_, _, err = c.Get(t.Context(), "/e")
		assert.ErrorIs(t, err, framework.ErrClosed)
		assert.ErrorIs(t, c.BlockUntilConnected(t.Context()), framework.ErrClosed)
	})
}

func TestCloseFindsItsWayThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/e", nil, framework.Ephemeral)
		require.NoError(t, err)
		require.NoError(t, srv.Stop())
		time.AfterFunc(2*time.Second, func() { _ = srv.Restart() })
		require.NoError(t, c.Close(), "reconnects to tell the server")
		assert.Empty(t, srv.Ephemerals(0))
	})
}

func TestCloseWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.CloseTimeout = 3 * time.Second })
		require.NoError(t, srv.Stop())
		began := time.Now()
		err := c.Close()
		require.Error(t, err)
		assert.Equal(t, err, c.Close(), "the same a second time")
		assert.LessOrEqual(t, time.Since(began), 4*time.Second)
	})
}

// A server may make the session while Close is waiting for nothing else.
func TestCloseDuringTheFirstHandshake(t *testing.T) {
	for moment := range 50 {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(100*time.Millisecond))
			c, err := framework.Start(kit.Config(srv))
			require.NoError(t, err)
			time.Sleep(time.Duration(moment) * 5 * time.Millisecond)
			began := time.Now()
			require.NoError(t, c.Close())
			assert.LessOrEqual(t, time.Since(began), 500*time.Millisecond)
			time.Sleep(200 * time.Millisecond) // a request may be on its way
			assert.Empty(t, srv.Sessions(), "after %d moments", moment)
		})
	}
}

func TestCallsDuringClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		srv.Freeze()
		failed := make(chan error, 2)
		go func() {
			_, _, err := c.Get(context.Background(), "/")
			failed <- err
		}()
		go func() {
			_, err := c.Create(context.Background(), "/x", nil, framework.Persistent)
			failed <- err
		}()
		synctest.Wait()
		go func() { _ = c.Close() }()
		for range 2 {
			assert.ErrorIs(t, <-failed, framework.ErrClosed)
		}
		srv.Thaw()
	})
}

// Close and stop wait for work, whose context says which of the two ends it.
func TestGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		type end struct{ err, cause, call error }
		ends := make(chan end, 2)
		work := func(ctx context.Context) {
			<-ctx.Done()
			_, _, err := c.Get(ctx, "/")
			time.Sleep(time.Minute) // it is slow to return
			ends <- end{ctx.Err(), context.Cause(ctx), err}
		}
		stop, err := c.Go(work)
		require.NoError(t, err)
		stopNow, err := c.UsingNamespace("ns").Go(work)
		require.NoError(t, err)
		synctest.Wait()

		began := time.Now()
		go stopNow()
		stopNow()
		assert.Equal(t, time.Minute, time.Since(began))
		got := <-ends
		assert.Equal(t, end{context.Canceled, context.Canceled, got.call}, got)
		require.ErrorIs(t, got.call, context.Canceled)
		assert.NotErrorIs(t, got.call, framework.ErrClosed)
		stopNow()

		began = time.Now()
		require.NoError(t, c.Close())
		assert.Equal(t, time.Minute, time.Since(began))
		require.Len(t, ends, 1, "Close has waited")
		got = <-ends
		assert.Equal(t, end{context.Canceled, framework.ErrClosed, got.call}, got)
		stop()

		_, err = c.Go(work)
		require.ErrorIs(t, err, framework.ErrClosed)
		_, err = new(framework.Client).Go(work)
		require.ErrorIs(t, err, framework.ErrClosed)
		_, err = c.Go(nil)
		require.ErrorIs(t, err, framework.ErrInvalidArgument)
	})
}

// Work that is slow to return does not keep the session on the servers.
func TestSessionEndsBeforeSlowWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/e", nil, framework.Ephemeral)
		require.NoError(t, err)
		_, err = c.Go(func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Second)
			assert.Empty(t, srv.Ephemerals(0))
			time.Sleep(time.Minute)
		})
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, c.Close())
		assert.Equal(t, time.Minute+time.Second, time.Since(began), "Close has waited")
	})
}

// Work may begin other work, end its goroutine, and have another goroutine close the client.
func TestGoFromWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		left, closed := false, make(chan error, 1)
		stop, err := c.Go(func(context.Context) {
			_, err := c.Go(func(ctx context.Context) { //nolint:contextcheck // the client has a context of its own for it
				go func() { closed <- c.Close() }()
				<-ctx.Done()
				left = true
			})
			assert.NoError(t, err)
			runtime.Goexit()
		})
		require.NoError(t, err)
		require.NoError(t, <-closed)
		assert.True(t, left)
		stop()
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

// LOST can come earlier than the servers could end the session, never later.
func TestLostAfter(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 9 * time.Second: 9 * time.Second, 30 * time.Second: 30 * time.Second} {
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

// The first panic of a listener of errors must not be the cause of the next.
func TestErrorListenerThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		var times atomic.Int32
		c.Errors().Listen(func(error) { times.Add(1); panic(errors.New("here as well")) })
		c.States().Listen(func(s listeners.State) { panic(s) })
		synctest.Wait()
		require.NoError(t, srv.Disconnect(c.SessionID()))
		time.Sleep(time.Second)
		assert.Equal(t, int32(3), times.Load(), "CONNECTED, SUSPENDED, RECONNECTED")
	})
}
