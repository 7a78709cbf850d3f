package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/transport"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Each way to a connection ends when there will be none.
func TestConn_OfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv)
		id := s.ID()
		got, err := s.AwaitConnOf(t.Context(), id)
		require.NoError(t, err)
		assert.Same(t, c, got)
		got, err = s.ConnOf(id)
		require.NoError(t, err)
		assert.Same(t, c, got)
		got, err = s.ConnOf(0)
		require.NoError(t, err)
		assert.Same(t, c, got)
		assert.True(t, s.Writable())

		srv.Refuse()
		srv.DisconnectAll()
		synctest.Wait()
		assert.False(t, s.Writable())
		_, err = s.ConnOf(id)
		require.ErrorIs(t, err, ErrNotConnected)
		for _, conn := range []func(context.Context) (*transport.Conn, error){
			func(ctx context.Context) (*transport.Conn, error) { return s.AwaitConn(ctx, false) },
			func(ctx context.Context) (*transport.Conn, error) { return s.AwaitConnOf(ctx, id) },
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
			_, err := s.AwaitConnOf(t.Context(), id)
			over <- err
		}()
		time.Sleep(time.Minute)
		require.ErrorIs(t, <-over, ErrSessionOver, "its session was given up")
		_, err = s.ConnOf(id)
		require.ErrorIs(t, err, ErrSessionOver)

		closed := make(chan error, 1)
		go func() {
			_, err := s.AwaitConn(t.Context(), true)
			closed <- err
		}()
		_ = s.Close()
		require.ErrorIs(t, <-closed, ErrClosed)
		_, err = s.AwaitConnOf(t.Context(), id)
		require.ErrorIs(t, err, ErrClosed)
		_, err = s.ConnOf(id)
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, s.NotConnected(""), ErrClosed)
	})
}

// Nobody waits for a connection that the servers refuse to these credentials.
func TestConn_RefusedCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, _ := opened(t, srv, func(cfg *Config) {
			cfg.Transport.Auth = []transport.Auth{{Scheme: "digest", Data: func() []byte { return []byte("u:p") }}}
		})
		srv.On(zktest.Match{Op: "auth"}, zktest.Fail(-115))
		srv.DisconnectAll()
		time.Sleep(time.Second)
		_, err := s.AwaitConn(t.Context(), false)
		require.ErrorIs(t, err, zk.ErrAuthFailed)
	})
}
