package session

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened is a session with a server, which is closed with the test, and its connection.
func opened(t *testing.T, srv *zktest.Server, change ...func(*Config)) (*Session, *transport.Conn) {
	t.Helper()
	cfg := Config{
		Transport: transport.Config{
			Servers: []string{srv.ConnectString()}, SessionTimeout: 10 * time.Second, ConnectTimeout: time.Second,
			MaxReply: 1 << 20, MaxRequest: 1 << 20, Dial: srv.DialContext,
		},
		CloseTimeout: time.Second, Logger: zap.NewNop(),
	}
	for _, fn := range change {
		fn(&cfg)
	}
	s, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	c, err := s.AwaitConn(t.Context(), true)
	require.NoError(t, err)
	return s, c
}

// created is an ephemeral node that anybody may do anything with.
func created(ctx context.Context, t *testing.T, s *Session, path string, perms ...int32) {
	t.Helper()
	perm := int32(31)
	if len(perms) > 0 {
		perm = perms[0]
	}
	c, err := s.AwaitConn(ctx, true)
	require.NoError(t, err)
	req := &wire.CreateRequest{Path: path, Data: []byte("data"), ACL: []wire.ACL{{Perms: perm, Scheme: "world", ID: "anyone"}}, Flags: wire.FlagEphemeral}
	require.NoError(t, s.Round(ctx, c, wire.OpCreate2, true, req, new(wire.Create2Response)))
}
