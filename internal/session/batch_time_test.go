package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/transport/batch"
	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// coreOf is a client that has nothing but its session, and how it makes parents.
type coreOf struct {
	Core
	s      *Session
	parent func(full string) wire.MultiOp
}

func (c coreOf) Session() *Session               { return c.s }
func (c coreOf) Parent(full string) wire.MultiOp { return c.parent(full) }

func creationBelow(parent string, size int) *transport.Call {
	acl := []wire.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}
	return transport.NewCall(wire.OpCreate2, &wire.CreateRequest{Path: parent + "/n", Data: make([]byte, size), ACL: acl, Flags: wire.FlagEphemeralSequence})
}

// Requests of one moment leave together, save those that are large.
func TestCreateJointly_LeavesTogether(t *testing.T) {
	for name, tc := range map[string]struct{ size, batches int }{
		"small": {10, 1},
		"large": {batch.MostSize, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(1e6))
				s, c := opened(t, srv)
				core := coreOf{s: s, parent: func(full string) wire.MultiOp {
					return wire.MultiOp{Op: wire.OpCreateContainer, Request: &wire.CreateRequest{Path: full, ACL: []wire.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, Flags: wire.FlagContainer}}
				}}
				for i := range 20 {
					created := transport.NewCall(wire.OpCreate2, &wire.CreateRequest{Path: fmt.Sprint("/", i), ACL: []wire.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}})
					require.NoError(t, s.Send(t.Context(), c, created))
					require.NoError(t, s.Await(t.Context(), c, created, true))
				}
				before, _, _ := s.batches.Load()
				var wg sync.WaitGroup
				for i := range 20 {
					wg.Go(func() {
						parent := fmt.Sprint("/", i)
						create, list := creationBelow(parent, tc.size), NewList(parent)
						if !assert.NoError(t, CreateJointly(t.Context(), core, c, parent, true, create, list)) {
							return
						}
						assert.NoError(t, s.Await(t.Context(), c, create, true))
						assert.NoError(t, s.Await(t.Context(), c, list, false))
						names, err := Names(list)
						assert.NoError(t, err)
						assert.Len(t, names.Strings(), 1, "the list shows what was created")
						var made wire.Create2Response
						assert.NoError(t, create.Decode(&made))
						deletion := transport.NewCall(wire.OpDelete, &wire.PathVersionRequest{Path: made.Path, Version: -1})
						assert.NoError(t, SendInTurn(s, c, deletion, made.Path))
						assert.NoError(t, s.Await(t.Context(), c, deletion, true))
					})
				}
				wg.Wait()
				after, _, _ := s.batches.Load()
				assert.GreaterOrEqual(t, int(after-before), tc.batches)
				assert.Zero(t, s.window.requests.used)
				assert.Empty(t, srv.Ephemerals(0))
			})
		})
	}
}

// fill takes a load that no call gives back.
func fill(w *window, l load) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests.used, w.bytes.used = w.requests.used+l.requests, w.bytes.used+l.bytes
}

// Who gives up while he waits for room takes none with him.
func TestCreateJointly_WithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		all := s.window.most()
		fill(s.window, all)
		err := CreateJointly(ctx, coreOf{s: s}, c, "/none", true, creationBelow("/none", 0), NewList("/none"))
		require.ErrorIs(t, err, context.Canceled)
		s.window.Release(all.requests, all.bytes)
		// Deletions wait for their turn without a goroutine, and end with the connection.
		fill(s.window, all)
		waiting := make([]*transport.Call, 1000)
		for i := range waiting {
			waiting[i] = transport.NewCall(wire.OpDelete, &wire.PathVersionRequest{Path: "/gone", Version: -1})
			require.NoError(t, SendInTurn(s, c, waiting[i], "/gone"))
		}
		synctest.Wait()
		before := srv.Requests()["delete"]
		s.window.Release(all.requests-1, all.bytes)
		for _, call := range waiting[:500] {
			<-call.Done()
			require.NoError(t, call.Err())
		}
		assert.GreaterOrEqual(t, srv.Requests()["delete"]-before, 1)
		c.Kill(errors.New("test"))
		s.window.Release(1, 0)
		for _, call := range waiting {
			<-call.Done()
		}
		synctest.Wait()
		assert.Zero(t, s.window.requests.used)
		assert.Empty(t, waitingIn(s.window))
	})
}
