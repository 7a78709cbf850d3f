package leader_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

var (
	zeroPolicy retry.Policy
	errWork    = errors.New("work failed")
)

// What is wrong with a candidate is said by every call, and sends nothing.
func TestBadCandidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		for want, latch := range map[string]*leader.Latch{
			"no client":              leader.NewLatch(nil, "/e"),
			"the root belongs":       leader.NewLatch(c, "/"),
			"path":                   leader.NewLatch(c, "relative"),
			"option is nil":          leader.NewLatch(c, "/e", nil),
			"ID is empty":            leader.NewLatch(c, "/e", leader.ID("")),
			"not UTF-8":              leader.NewLatch(c, "/e", leader.ID("\xff")),
			"ReleaseWait is -1s":     leader.NewLatch(c, "/e", leader.ReleaseWait(-time.Second)),
			"Grace is 0s":            leader.NewLatch(c, "/e", leader.Grace(0)),
			"zero policy":            leader.NewLatch(c, "/e", leader.BackOff(zeroPolicy)),
			"no check":               leader.NewLatch(c, "/e", leader.HealthCheck(time.Second, nil)),
			"called every 0s":        leader.NewLatch(c, "/e", leader.HealthCheck(0, func(context.Context) error { return nil })),
			"ReleaseWait is 5ns":     leader.NewLatch(c, "/e", leader.ReleaseWait(5)),
			"Grace is 10ns":          leader.NewLatch(c, "/e", leader.Grace(10)),
			"called every 5ns":       leader.NewLatch(c, "/e", leader.HealthCheck(5, func(context.Context) error { return nil })),
			"BackOff: the base is":   leader.NewLatch(c, "/e", leader.BackOff(retry.ExponentialBackoff(5, 5))),
			"NewLatch or NewSelecto": new(leader.Latch),
		} {
			var errs []error
			_, err := latch.Await(t.Context())
			errs = append(errs, err)
			_, err = latch.Participants(t.Context())
			errs = append(errs, err, latch.Run(t.Context(), func(context.Context, *leader.Term) error { return nil }))
			for _, err = range latch.Terms(t.Context()) {
				errs = append(errs, err)
			}
			for _, err = range latch.Observe(t.Context()) {
				errs = append(errs, err)
			}
			assert.Len(t, errs, 5, want)
			for _, err := range errs {
				require.ErrorIs(t, err, locks.ErrInvalidLock, want)
				assert.Contains(t, err.Error(), want)
			}
		}
		latch := leader.NewLatch(c, "/e")
		require.ErrorIs(t, latch.Run(t.Context(), nil), framework.ErrInvalidArgument)
		_, err := latch.Await(nil) //nolint:staticcheck // what nil does
		require.ErrorIs(t, err, framework.ErrNilContext)
		require.ErrorIs(t, latch.Run(nil, func(context.Context, *leader.Term) error { return nil }), framework.ErrNilContext) //nolint:staticcheck // what nil does
		for _, err := range latch.Observe(nil) {                                                                              //nolint:staticcheck // what nil does
			require.ErrorIs(t, err, framework.ErrNilContext)
		}
		assert.Zero(t, srv.Requests()["create2"])
	})
}

// Two candidates of one process have ids of their own.
func TestDefaultIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
		a, b := leader.NewLatch(c, "/e").ID(), leader.NewLatch(c, "/e").ID()
		assert.NotEqual(t, a, b)
		assert.Equal(t, a[:strings.LastIndexByte(a, '-')], b[:strings.LastIndexByte(b, '-')], "host and process")
	})
}

// A suspended connection leaves the term uncertain, unless it is to end it.
func TestASuspendedConnection(t *testing.T) {
	both(t, func(t *testing.T, stand func(*framework.Client, ...leader.Option) candidate, _ string) {
		srv := zktest.Start(t, zktest.InMemory())
		keeps, err := stand(kit.Connect(t, srv)).Await(t.Context())
		require.NoError(t, err)
		ends, err := leader.NewLatch(kit.Connect(t, srv), "/other", leader.EndOnSuspended()).Await(t.Context())
		require.NoError(t, err)
		srv.Refuse()
		srv.DisconnectAll()
		time.Sleep(kit.SessionTimeout / 10)
		assert.Equal(t, locks.Uncertain, keeps.State())
		require.NoError(t, keeps.Context().Err())
		assert.Equal(t, locks.Uncertain, ends.State())
		require.ErrorIs(t, context.Cause(ends.Context()), leader.ErrSteppedDown)
		require.ErrorIs(t, context.Cause(ends.Context()), framework.ErrNotConnected)
		srv.Accept()
		time.Sleep(kit.SessionTimeout / 4)
		assert.Equal(t, locks.Held, keeps.State())
		assert.Equal(t, locks.Held, ends.State(), "the node stays until the work has ended")
		require.Error(t, ends.Context().Err())
		require.NoError(t, ends.Release())
		require.NoError(t, keeps.Release())
	})
}
