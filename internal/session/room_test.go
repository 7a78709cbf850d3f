package session

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// The size that is counted for a request is what the codec writes.
func TestRoomInATransaction(t *testing.T) {
	for _, n := range []int{1, 7, 400} {
		req, bytes := &wire.MultiRequest{}, 0
		for i := range n {
			path := fmt.Sprint("/a/node/", i)
			req.Ops = append(req.Ops, wire.MultiOp{Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: path, Version: -1}})
			empty := Room{MostOperations, 0}
			empty.Take(path)
			bytes -= empty.bytes
		}
		cfg := transport.Config{MaxRequest: transport.NewCall(wire.OpMulti, req).Size()}
		s := &Session{cfg: Config{Transport: cfg}, transport: transport.New(cfg, nil)}
		assert.Equal(t, bytes, RoomOf(s).bytes)
	}
}
