package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// connect makes a client for as long as the test lasts.
func connect(t *testing.T, cfg framework.Config) *framework.Client {
	t.Helper()
	client, err := framework.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return client
}

func TestOneOfManyInstancesDoesTheWork(t *testing.T) {
	srv := zktest.Start(t) // ready in a millisecond, gone with the test
	var worked atomic.Int32
	const instances = 5
	done := make(chan error, instances)
	for range instances {
		n := &Nightly{Client: connect(t, framework.Config{ConnectString: srv.ConnectString()}), Work: func(context.Context) error {
			worked.Add(1)
			return nil
		}}
		go func() {
			_, err := n.Run(t.Context(), "monday")
			done <- err
		}()
	}
	for range instances {
		require.NoError(t, <-done)
	}
	assert.EqualValues(t, 1, worked.Load())
}

func TestWorkThatFailedIsDoneAgain(t *testing.T) {
	srv := zktest.Start(t)
	broken := errors.New("disk full")
	n := &Nightly{Client: connect(t, framework.Config{ConnectString: srv.ConnectString()}), Work: func(context.Context) error { return broken }}
	did, err := n.Run(t.Context(), "monday")
	require.ErrorIs(t, err, broken)
	assert.False(t, did)

	n.Work = func(context.Context) error { return nil }
	did, err = n.Run(t.Context(), "monday")
	require.NoError(t, err)
	assert.True(t, did)
}

// The connection breaks after the server has written the mark and before it has
// said so. Without framework.Idempotent the outcome would be unknown.
func TestLostReplyToTheMark(t *testing.T) {
	srv := zktest.Start(t)
	cut := srv.On(zktest.Match{Op: "create", Path: "/nightly/done/*", Nth: 1}, zktest.CutAfter())
	n := &Nightly{Client: connect(t, framework.Config{ConnectString: srv.ConnectString()}), Work: func(context.Context) error { return nil }}
	require.NoError(t, n.Client.EnsurePath(t.Context(), "/nightly/done"))

	did, err := n.Run(t.Context(), "monday")
	require.NoError(t, err)
	assert.True(t, did)
	assert.Equal(t, 1, cut.Fired())
}
