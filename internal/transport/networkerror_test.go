package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a user's dialer fails with may come from another client of ours.
func TestNetworkErrorIsNoAnswer(t *testing.T) {
	network := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	from := fmt.Errorf("dial: %w, %w, %w, %w, %w", zk.ErrNoNode, context.Canceled, &LostError{Cause: io.EOF}, network, &net.DNSError{})
	for _, err := range []error{networkError{from}, fmt.Errorf("not connected: %w", networkError{from})} {
		require.ErrorContains(t, err, zk.ErrNoNode.Error())
		assert.NotErrorIs(t, err, zk.ErrNoNode)
		assert.NotErrorIs(t, err, context.Canceled)
		assert.False(t, errors.As(err, new(*LostError)), "a type of this module")
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		assert.ErrorAs(t, err, new(*net.OpError))
		assert.ErrorAs(t, err, new(*net.DNSError))
		assert.ErrorAs(t, err, new(interface{ Timeout() bool }))
		assert.ErrorAs(t, err, new(net.Error))
	}
	assert.ErrorIs(t, networkError{fmt.Errorf("write: %w", io.ErrClosedPipe)}, io.ErrClosedPipe, "the other end of a net.Pipe is closed, see Suspects.ended")
}
