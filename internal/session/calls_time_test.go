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

// A call that ends before its reply says whether the servers may have applied it, and
// gives its slots back only when the reply has come.
func TestAwait_EndsEarly(t *testing.T) {
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
		assert.Equal(t, 2, s.window.requests.used)
		srv.Unstall(s.ID())
		synctest.Wait()
		assert.Zero(t, s.window.requests.used)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		settled := NewList("/")
		require.NoError(t, s.Send(t.Context(), c, settled))
		s.AwaitLast(ctx, settled) // ends with its context
		s.AwaitLast(t.Context(), settled)
		require.NoError(t, s.Ended(settled, false))
	})
}

// A reply that cannot be read says nothing of what has become of a write. A refusal is
// not in the part that cannot be read.
func TestRound_UnreadableReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv, func(cfg *Config) { cfg.Transport.MaxReply = 100 })
		created(t.Context(), t, s, "/a")
		remove := func(path string, resp wire.Record) error {
			return s.Round(t.Context(), c, wire.OpDelete, true, &wire.PathVersionRequest{Path: path, Version: -1}, resp)
		}
		require.ErrorIs(t, remove("/a", new(wire.StatResponse)), ErrOutcomeUnknown, "which a deletion is not answered with")
		require.ErrorIs(t, remove("/a", wire.Empty{}), zk.ErrNoNode, "it was applied")

		long := "/" + strings.Repeat("x", 100)
		req := &wire.CreateRequest{Path: long, ACL: []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}}
		var made wire.CreateResponse
		err := s.Round(t.Context(), c, wire.OpCreate, true, req, &made)
		require.ErrorIs(t, err, ErrOutcomeUnknown)
		require.ErrorIs(t, err, ErrReplyTooLarge)
		err = s.Round(t.Context(), c, wire.OpCreate, true, req, &made)
		require.ErrorIs(t, err, zk.ErrNodeExists, "applied, and refused in the head of the reply")
		require.NotErrorIs(t, err, ErrOutcomeUnknown)
	})
}

// What servers would cut the connection for is not sent.
func TestSend_RefusesTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv, func(cfg *Config) { cfg.Transport.MaxRequest, cfg.Transport.MaxReply = 4096, 200 })
		large := transport.NewCall(wire.OpSetData, &wire.SetDataRequest{Path: "/", Data: make([]byte, 4096)})
		err := s.Send(t.Context(), c, NewList("/"), large)
		require.ErrorIs(t, err, ErrTooLarge)
		assert.ErrorContains(t, err, "4096 are allowed")
		assert.Zero(t, srv.Requests()["getChildren"], "nor is what stands before it")
		assert.Zero(t, s.window.requests.used)

		for _, name := range []string{"a", "b", "c", "d"} {
			created(t.Context(), t, s, "/"+strings.Repeat(name, 50))
		}
		var names wire.Names
		err = s.Round(t.Context(), c, wire.OpGetChildren, false, &wire.PathWatchRequest{Path: "/"}, &names)
		require.ErrorIs(t, err, ErrReplyTooLarge)
		require.ErrorIs(t, err, transport.ErrTooLong)
		require.NotErrorIs(t, err, ErrOutcomeUnknown, "it is no write")

		c.Kill(errors.New("cut"))
		require.ErrorIs(t, s.Send(t.Context(), c, NewList("/")), ErrNotConnected)
		require.ErrorIs(t, SendInTurn(s, c, NewList("/"), ""), ErrNotConnected)
		synctest.Wait()
		assert.Zero(t, s.window.requests.used)
	})
}
