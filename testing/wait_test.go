package zktest_test

import (
	"context"
	"errors"
	"fmt"
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

// A wait that ends without what it waited for says how things are.
func TestWaitsSayHowThingsAre(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory())
	c := begin(t, srv, 10*time.Second)
	c.create("/l", 0)
	c.create("/l/a", 0)
	cause := errors.New("no patience")
	over, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for want, err := range map[string]error{
		"zktest: /l has 1 children, not 3: no patience":                            srv.WaitChildren(over, "/l", 3),
		"zktest: /lock is not there, and so does not have 3 children: no patience": srv.WaitChildren(over, "/lock", 3),
		"zktest: nobody watches /l: no patience":                                   srv.WaitWatch(over, "/l"),
		fmt.Sprintf("zktest: session %#x is not over: no patience", c.session):     srv.WaitSessionGone(over, c.session),
	} {
		require.ErrorIs(t, err, cause)
		assert.EqualError(t, err, want)
	}

	cluster := zktest.StartCluster(t, 3, zktest.InMemory())
	require.NoError(t, cluster.WaitServing(t.Context()))
	down := (cluster.Leader() + 1) % 3
	require.NoError(t, cluster.Member(down).Stop())
	require.NoError(t, cluster.WaitServing(t.Context()), "a stopped member is not waited for")
	require.NoError(t, cluster.Stop())
	for _, err := range []error{cluster.WaitLeader(over), cluster.WaitServing(over)} {
		require.ErrorIs(t, err, cause)
		assert.EqualError(t, err, "zktest: member 0: stopped, member 1: stopped, member 2: stopped: no patience")
	}
}
