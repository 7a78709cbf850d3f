//go:build interop

package interop

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/faultnet"
)

// front is a port in front of the servers with a network that fails on command,
// for clients of any language.
type front struct {
	net      *faultnet.Net
	listener net.Listener
	wg       sync.WaitGroup
}

func newFront(t *testing.T) *front {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &front{net: faultnet.New(nil), listener: l}
	f.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.wg.Go(func() { f.carry(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		f.net.Thaw()
		f.net.Close()
		f.wg.Wait()
	})
	return f
}

func (f *front) carry(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := f.net.DialContext(context.Background(), "tcp", shared.zk.Addr(0))
	if err != nil {
		return
	}
	f.wg.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_, _ = io.Copy(server, client)
	_ = server.Close()
}

func (f *front) addr() string { return f.listener.Addr().String() }

// expire ends a client's session on the servers.
func (f *front) expire(t *testing.T, session string) {
	t.Helper()
	id, err := strconv.ParseInt(session, 10, 64)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f.net.Refuse() // the client does not get in between
	defer f.net.Accept()
	require.NoError(t, f.net.Expire(ctx, id))
}
