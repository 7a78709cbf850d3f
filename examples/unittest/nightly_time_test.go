package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// In a bubble of testing/synctest time passes when everybody waits, so hours
// take no time. The server and its clients are in memory, for a real socket
// would stop the clock.
func inMemory(srv *zktest.Server) framework.Config {
	return framework.Config{ConnectString: srv.ConnectString(), DialContext: srv.DialContext, SessionTimeout: 30 * time.Second}
}

func TestWorkStopsWhenTheLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		began := time.Now()
		n := &Nightly{Client: connect(t, inMemory(srv)), Work: func(ctx context.Context) error {
			srv.Freeze() // from here on no server answers, but sessions grow old
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		did, err := n.Run(t.Context(), "monday")
		require.ErrorIs(t, err, locks.ErrLockLost)
		assert.False(t, did)
		assert.LessOrEqual(t, time.Since(began), 30*time.Second, "the work outlived the session")

		// The server answers again, and the work of the day is still to be done.
		srv.Thaw()
		n.Work = func(context.Context) error { return nil }
		did, err = n.Run(t.Context(), "monday")
		require.NoError(t, err)
		assert.True(t, did)
	})
}

func TestAnotherInstanceTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		inWork := make(chan struct{})
		first := &Nightly{Client: connect(t, inMemory(srv)), Work: func(ctx context.Context) error {
			close(inWork)
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		second := &Nightly{Client: connect(t, inMemory(srv)), Work: func(context.Context) error { return nil }}

		lost := make(chan error, 1)
		go func() {
			_, err := first.Run(t.Context(), "monday")
			lost <- err
		}()
		<-inWork
		time.AfterFunc(time.Hour, func() { _ = srv.ExpireSession(first.Client.SessionID()) })

		did, err := second.Run(t.Context(), "monday") // waits for an hour
		require.NoError(t, err)
		assert.True(t, did)
		assert.ErrorIs(t, <-lost, locks.ErrLockLost)
	})
}
