package framework_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
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

// Servers bound the requests that are on their way. Calls beyond that wait for
// their turn, and end with their context and with the client.
func TestCallsWaitForTheirTurn(t *testing.T) {
	const most = 4096
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		srv.Freeze()
		get := func(ctx context.Context) <-chan error {
			failed := make(chan error, 1)
			go func() {
				_, _, err := c.Get(ctx, "/")
				failed <- err
			}()
			return failed
		}
		var sent []<-chan error
		for range most {
			sent = append(sent, get(t.Context()))
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, <-get(ctx), context.DeadlineExceeded, "no turn in time")
		later := get(t.Context())
		created := make(chan error, 1)
		go func() {
			_, err := c.Create(ctx, "/a", nil, framework.Persistent)
			created <- err
		}()
		err := <-created
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, framework.ErrOutcomeUnknown, "it was not sent")
		srv.Thaw()
		for _, failed := range append(sent, later) {
			require.NoError(t, <-failed)
		}
		assert.Equal(t, most+1, srv.Requests()["getData"])

		srv.Freeze()
		sent = sent[:0]
		for range most + 1 {
			sent = append(sent, get(t.Context()))
		}
		synctest.Wait()
		go func() { _ = c.Close() }()
		for _, failed := range sent {
			require.ErrorIs(t, <-failed, framework.ErrClosed)
		}
		srv.Thaw()
	})
}

// A node under our own UUID that belongs to another session is not taken for
// ours, and removed.
func TestProtectedNodeOfAnotherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		other := kit.Connect(t, srv)
		require.NoError(t, other.EnsurePath(t.Context(), "/p"))
		usurp := func(ctx context.Context, _ retry.Attempt) {
			names, _, err := other.Children(ctx, "/p")
			assert.NoError(t, err)
			assert.Len(t, names, 1, "the first attempt has made it")
			assert.NoError(t, other.Delete(ctx, "/p/"+names[0], 0))
			_, err = other.Create(ctx, "/p/"+names[0], nil, framework.Ephemeral)
			assert.NoError(t, err)
		}
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.OneTime(time.Second).OnRetry(usurp) })
		srv.On(zktest.Match{Op: "create", Session: c.SessionID(), Nth: 1}, zktest.CutAfter())
		path, err := c.Create(t.Context(), "/p/n-", nil, framework.EphemeralSequential, framework.Protected())
		require.NoError(t, err)
		time.Sleep(time.Second)
		names, _, err := other.Children(t.Context(), "/p")
		require.NoError(t, err)
		assert.Equal(t, []string{strings.TrimPrefix(path, "/p/")}, names)
		_, stat, err := other.Exists(t.Context(), path)
		require.NoError(t, err)
		assert.Equal(t, c.SessionID(), stat.EphemeralOwner)
	})
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
