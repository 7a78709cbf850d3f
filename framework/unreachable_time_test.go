package framework_test

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// What connecting has cost matched context.DeadlineExceeded, so that a call
// that could be repeated looked as if its caller had given up.
func TestLimitsOfConnectingAreNotTheCallers(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(cfg *framework.Config)
		want   string
	}{
		"dialing": {func(cfg *framework.Config) {
			cfg.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}, ": no answer in time: context deadline exceeded"},
		"dialing, as package net says it": {func(cfg *framework.Config) {
			cfg.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
			}
		}, ": no answer in time: dial: i/o timeout"},
		"TLS":       {func(cfg *framework.Config) { cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12} }, "TLS: no answer in time: context deadline exceeded"},
		"handshake": {func(*framework.Config) {}, "handshake: read: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				srv.Freeze()
				defer srv.Thaw()
				cfg := kit.Config(srv, func(cfg *framework.Config) { cfg.Retry = retry.None() }, tc.change)
				c, err := framework.Start(cfg)
				require.NoError(t, err)
				defer func() { _ = c.Close() }()
				time.Sleep(cfg.SessionTimeout)
				began := time.Now()
				_, err = c.Create(t.Context(), "/a", nil, framework.Persistent)
				assert.Equal(t, 10*time.Second, time.Since(began), "ConnectTimeout")
				require.ErrorIs(t, err, framework.ErrNotConnected)
				assert.ErrorContains(t, err, tc.want)
				assert.NotErrorIs(t, err, context.DeadlineExceeded)
				assert.True(t, framework.Retryable(err))

				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err = c.Create(ctx, "/a", nil, framework.Persistent)
				require.ErrorIs(t, err, context.DeadlineExceeded, "the caller's own")
				require.ErrorIs(t, err, framework.ErrNotConnected, "and why nobody has answered until then")
				require.ErrorContains(t, err, "create /a: context deadline exceeded: not connected for 1s: 127.")
				require.ErrorContains(t, err, tc.want)
				assert.False(t, framework.Retryable(err))
			})
		})
	}
}

// A deadline that is shorter than ConnectTimeout comes before any failure. The error names the
// server that has not answered.
func TestFirstServerIsNamedBeforeItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		srv.Freeze()
		defer srv.Thaw()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := framework.Connect(ctx, kit.Config(srv))
		require.ErrorIs(t, err, framework.ErrNotConnected)
		assert.ErrorContains(t, err, "not connected: "+srv.ConnectString()+" has not answered yet")
	})
}
