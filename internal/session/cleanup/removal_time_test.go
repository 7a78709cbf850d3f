package cleanup

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// open connects to a server until cut is called, and to none after that.
func open(t *testing.T, srv *zktest.Server) (s *session.Session, cut func()) {
	t.Helper()
	alone := false
	s, err := session.Open(session.Config{
		Transport: transport.Config{
			Servers: []string{srv.ConnectString()}, SessionTimeout: time.Minute, ConnectTimeout: time.Second, MaxReply: 1 << 20, MaxRequest: 1 << 20,
			Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if alone {
					return nil, errors.New("cut off")
				}
				return srv.DialContext(ctx, network, addr)
			},
		},
		CloseTimeout: time.Second, Logger: zap.NewNop(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	c, err := s.AwaitConn(t.Context(), true) // there is a session from here on
	require.NoError(t, err)
	return s, func() {
		alone = true
		c.Kill(errors.New("cut off"))
		<-c.Down()
	}
}

// create makes an ephemeral node.
func create(ctx context.Context, s *session.Session, path string) error {
	c, err := s.AwaitConn(ctx, true)
	if err != nil {
		return err
	}
	req := &wire.CreateRequest{Path: path, ACL: []wire.ACL{{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}}, Flags: zk.FlagEphemeral}
	return s.Round(ctx, c, wire.OpCreate2, true, req, &wire.Create2Response{})
}

func TestRemovalIsAnsweredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := open(t, zktest.Start(t, zktest.InMemory()))
		require.NoError(t, create(t.Context(), s, "/a"))
		r := Remove(s, s.ID(), "/a")
		require.NoError(t, r.Wait(time.Second, nil))
		require.NoError(t, r.Wait(0, nil), "a second time")
		require.ErrorIs(t, Remove(s, s.ID(), "/a").Wait(time.Second, nil), zk.ErrNoNode)
		require.ErrorIs(t, Remove(s, s.ID()+1, "/a").Wait(time.Second, nil), session.ErrSessionOver)
	})
}

func TestWaitForARemovalEndsAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cut := open(t, zktest.Start(t, zktest.InMemory()))
		require.NoError(t, create(t.Context(), s, "/a"))
		require.NoError(t, create(t.Context(), s, "/b"))
		cut()
		began := time.Now()
		all := RemoveAll(s, s.ID(), []string{"/a", "/b"})
		require.ErrorIs(t, all[0].Wait(time.Second, nil), ErrLate)
		require.ErrorIs(t, all[1].Wait(2*time.Second, nil), ErrLate)
		assert.Equal(t, 3*time.Second, time.Since(began))
		require.ErrorIs(t, Remove(s, s.ID(), "/a").Wait(0, nil), ErrLate)
	})
}

// Whoever waits no more makes no timer. Goroutines of a bubble that make timers which are due
// crash the race detector (golang/go#78156).
func TestManyWaitNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cut := open(t, zktest.Start(t, zktest.InMemory()))
		require.NoError(t, create(t.Context(), s, "/a"))
		cut()
		r := Remove(s, s.ID(), "/a")
		require.ErrorIs(t, r.Wait(0, nil), ErrLate)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20_000 {
					_ = r.Wait(0, nil)
				}
			})
		}
		wg.Wait()
	})
}
