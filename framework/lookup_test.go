package framework_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// resolveAll makes package net resolve every name to the IPv4 addresses given.
func resolveAll(t *testing.T, addrs ...string) {
	t.Helper()
	var wg sync.WaitGroup
	before := net.DefaultResolver
	t.Cleanup(func() {
		net.DefaultResolver = before
		wg.Wait()
	})
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe() // not a net.PacketConn, so as over TCP
		wg.Go(func() {
			defer func() { _ = far.Close() }()
			for answerDNS(far, addrs) == nil {
			}
		})
		return near, nil
	}}
}

// answerDNS answers one query.
func answerDNS(nc net.Conn, addrs []string) error {
	var size [2]byte
	if _, err := io.ReadFull(nc, size[:]); err != nil {
		return err
	}
	query := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(nc, query); err != nil {
		return err
	}
	end := 12 // behind the header is the name
	for query[end] != 0 {
		end += 1 + int(query[end])
	}
	end += 5 // the end of the name, type, class
	const typeA = 1
	if binary.BigEndian.Uint16(query[end-4:]) != typeA {
		addrs = nil
	}
	reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, byte(len(addrs)), 0, 0, 0, 0}, query[12:end]...)
	for _, addr := range addrs {
		reply = append(reply, 0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, net.ParseIP(addr).To4()...)
	}
	_, err := nc.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
	return err
}

// With package net's dialer alone, which takes the first address that accepts, a
// server that accepts and says nothing hid all others of its name.
func TestNameWithASilentAddress(t *testing.T) {
	srv := zktest.Start(t)
	_, port, err := net.SplitHostPort(srv.ConnectString())
	require.NoError(t, err)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skipf("there is no second loopback address: %v", err)
	}
	accept(t, l)
	resolveAll(t, "127.0.0.2", "127.0.0.1")
	for range 4 {
		c, err := framework.Start(framework.Config{ConnectString: "zk.test:" + port, ConnectTimeout: 500 * time.Millisecond})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err = c.BlockUntilConnected(ctx)
		cancel()
		assert.NoError(t, err)
		require.NoError(t, c.Close())
	}
}
