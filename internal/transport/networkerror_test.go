package transport

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
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

// A subject that begins with the common name is told in this order, as the servers do.
func TestSubject(t *testing.T) {
	raw, err := asn1.Marshal(pkix.RDNSequence{
		{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "orders"}}, {{Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: "Example, Inc."}},
	})
	require.NoError(t, err)
	assert.Equal(t, `O=Example\, Inc.,CN=orders`, Subject(&x509.Certificate{RawSubject: raw}))
}
