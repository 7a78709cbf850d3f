package zktest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestWaits(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		ctx := t.Context()
		c, other := begin(t, srv, 10*time.Second), begin(t, srv, 10*time.Second)

		done := make(chan error, 3)
		go func() { done <- srv.WaitChildren(ctx, "/p", 5) }()
		c.create("/p", 0)
		for range 5 {
			c.create("/p/c-", wire.FlagSequence)
		}
		require.NoError(t, <-done)
		require.NoError(t, srv.WaitChildren(ctx, "/p", 5), "at once")
		require.NoError(t, srv.WaitChildren(ctx, "/none", 0))

		go func() { done <- srv.WaitWatch(ctx, "/p/later") }()
		call(c, wire.OpExists, watch("/p/later"))
		require.NoError(t, <-done)
		go func() { done <- srv.WaitWatch(ctx, "/p") }()
		c.must(wire.OpGetChildren, watch("/p"), nil)
		require.NoError(t, <-done)

		go func() { done <- srv.WaitSessionGone(ctx, c.session) }()
		c.must(wire.OpCloseSession, wire.Empty{}, nil)
		require.NoError(t, <-done)
		require.NoError(t, srv.WaitSessionGone(ctx, 12345), "never was")

		cause := errors.New("no patience")
		stopped, cancel := context.WithCancelCause(ctx)
		go func() { done <- srv.WaitSessionGone(stopped, other.session) }()
		cancel(cause)
		require.ErrorIs(t, <-done, cause)

		go func() { done <- srv.WaitSessionGone(ctx, other.session) }()
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-done, zktest.ErrClosed)
		require.ErrorIs(t, srv.WaitSessionGone(ctx, other.session), zktest.ErrClosed)
		assert.NoError(t, srv.WaitSessionGone(ctx, c.session), "what holds needs no waiting")
	})
}
