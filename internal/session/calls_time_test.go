package session

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Each way to a connection ends when there will be none.
func TestConnectionOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv)
		id := s.ID()
		got, err := s.ConnIn(t.Context(), id)
		require.NoError(t, err)
		assert.Same(t, c, got)
		got, err = s.Current(id)
		require.NoError(t, err)
		assert.Same(t, c, got)
		assert.Same(t, c, s.Connected())
		assert.True(t, s.Writable())

		srv.Refuse()
		srv.DisconnectAll()
		synctest.Wait()
		assert.Nil(t, s.Connected())
		assert.False(t, s.Writable())
		_, err = s.Current(id)
		require.ErrorIs(t, err, ErrNotConnected)
		for _, conn := range []func(context.Context) (*transport.Conn, error){
			func(ctx context.Context) (*transport.Conn, error) { return s.Conn(ctx, false) },
			func(ctx context.Context) (*transport.Conn, error) { return s.ConnIn(ctx, id) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err = conn(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		err = s.NotConnected(" for a second")
		require.ErrorIs(t, err, ErrNotConnected)
		assert.ErrorContains(t, err, "not connected for a second: ")

		over := make(chan error, 1)
		go func() {
			_, err := s.ConnIn(t.Context(), id)
			over <- err
		}()
		time.Sleep(time.Minute)
		require.ErrorIs(t, <-over, ErrSessionOver, "its session was given up")
		_, err = s.Current(id)
		require.ErrorIs(t, err, ErrSessionOver)

		closed := make(chan error, 1)
		go func() {
			_, err := s.Conn(t.Context(), true)
			closed <- err
		}()
		_ = s.Close()
		require.ErrorIs(t, <-closed, ErrClosed)
		_, err = s.ConnIn(t.Context(), id)
		require.ErrorIs(t, err, ErrClosed)
		_, err = s.Current(id)
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, s.NotConnected(""), ErrClosed)
	})
}

// Nobody waits for a connection that the servers refuse to these credentials.
func TestConnectionWithRefusedCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, _ := opened(t, srv, func(cfg *Config) {
			cfg.Transport.Auth = []transport.Auth{{Scheme: "digest", Data: func() []byte { return []byte("u:p") }}}
		})
		srv.On(zktest.Match{Op: "auth"}, zktest.Fail(-115))
		srv.DisconnectAll()
		time.Sleep(time.Second)
		_, err := s.Conn(t.Context(), false)
		require.ErrorIs(t, err, zk.ErrAuthFailed)
	})
}

// A call that ends before its reply says whether the servers may have applied it, and
// gives its slots back only when the reply has come.
func TestAwaitThatEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv)
		srv.Stall(s.ID(), zktest.ToClient)
		for _, write := range []bool{true, false} {
			call := NewList("/")
			require.NoError(t, s.Send(t.Context(), c, call))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := s.Await(ctx, c, call, write)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, write, errors.Is(err, ErrOutcomeUnknown))
		}
		assert.Equal(t, 2, s.window.used)
		srv.Unstall(s.ID())
		synctest.Wait()
		assert.Zero(t, s.window.used)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		settled := NewList("/")
		require.NoError(t, s.Send(t.Context(), c, settled))
		s.Settle(ctx, settled) // ends with its context
		s.Settle(t.Context(), settled)
		require.NoError(t, s.Ended(settled, false))
	})
}

// What servers would cut the connection for is not sent.
func TestSendOfTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv, func(cfg *Config) { cfg.Transport.MaxRequest, cfg.Transport.MaxReply = 4096, 200 })
		large := transport.NewCall(wire.OpSetData, &wire.SetDataRequest{Path: "/", Data: make([]byte, 4096)})
		err := s.Send(t.Context(), c, NewList("/"), large)
		require.ErrorIs(t, err, ErrTooLarge)
		assert.ErrorContains(t, err, "4096 are allowed")
		assert.Zero(t, srv.Requests()["getChildren"], "nor is what stands before it")
		assert.Zero(t, s.window.used)

		for _, name := range []string{"a", "b", "c", "d"} {
			created(t.Context(), t, s, "/"+strings.Repeat(name, 50))
		}
		var names wire.Names
		err = s.Round(t.Context(), c, wire.OpGetChildren, false, &wire.PathWatchRequest{Path: "/"}, &names)
		require.ErrorIs(t, err, ErrReplyTooLarge)
		require.ErrorIs(t, err, transport.ErrTooLong)

		c.Kill(errors.New("cut"))
		require.ErrorIs(t, s.Send(t.Context(), c, NewList("/")), ErrNotConnected)
		require.ErrorIs(t, s.SendAtOnce(c, NewList("/")), ErrNotConnected)
		synctest.Wait()
		assert.Zero(t, s.window.used)
	})
}
