//go:build linux && (amd64 || arm64) && !paddock_noraw

package rawsocket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tcpPair is a connection of package net and its peer.
func tcpPair(t *testing.T) (conn, peer *net.TCPConn) {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	nc, err := new(net.Dialer).DialContext(t.Context(), "tcp", ln.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	other, err := ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { other.Close() })
	return nc.(*net.TCPConn), other.(*net.TCPConn)
}

const brief = 20 * time.Millisecond

// What happens at one end of a connection, as the one at that end sees it.
var socketCases = map[string]func(t *testing.T, c net.Conn, peer *net.TCPConn) (n int, err error){
	"read what came, then the end": func(t *testing.T, c net.Conn, peer *net.TCPConn) (int, error) {
		write(t, peer, "news")
		require.NoError(t, peer.Close())
		got := make([]byte, 10)
		n, err := c.Read(got)
		assert.Equal(t, "news", string(got[:n]))
		require.NoError(t, err)
		return c.Read(got)
	},
	"read from who has reset": func(t *testing.T, c net.Conn, peer *net.TCPConn) (int, error) {
		require.NoError(t, peer.SetLinger(0))
		require.NoError(t, peer.Close())
		return c.Read(make([]byte, 10))
	},
	"read nothing": func(_ *testing.T, c net.Conn, _ *net.TCPConn) (int, error) { return c.Read(nil) },
	"read until the deadline": func(t *testing.T, c net.Conn, _ *net.TCPConn) (int, error) {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(brief)))
		return c.Read(make([]byte, 10))
	},
	"read on after a deadline": func(t *testing.T, c net.Conn, peer *net.TCPConn) (int, error) {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(-brief)))
		_, err := c.Read(make([]byte, 10))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, c.SetReadDeadline(time.Time{}))
		write(t, peer, "late")
		return c.Read(make([]byte, 10))
	},
	"read until it is closed": func(_ *testing.T, c net.Conn, _ *net.TCPConn) (int, error) {
		time.AfterFunc(brief, func() { c.Close() })
		return c.Read(make([]byte, 10))
	},
	"write more than fits": func(t *testing.T, c net.Conn, peer *net.TCPConn) (int, error) {
		sent := bytes.Repeat([]byte("0123456789"), 1<<20)
		received := make(chan []byte)
		go func() {
			<-time.After(brief) // so that the buffers fill up
			all, _ := io.ReadAll(peer)
			received <- all
		}()
		n, err := c.Write(sent)
		require.NoError(t, c.Close())
		assert.True(t, bytes.Equal(sent, <-received), "what arrives is what was sent")
		return n, err
	},
	"write nothing": func(_ *testing.T, c net.Conn, _ *net.TCPConn) (int, error) { return c.Write(nil) },
	"write until the deadline": func(t *testing.T, c net.Conn, _ *net.TCPConn) (int, error) {
		all := make([]byte, 64<<20)
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(brief)))
		n, err := c.Write(all)
		assert.Positive(t, n, "some of it has left")
		assert.Less(t, n, len(all))
		return 0, err
	},
	"write to who has reset": func(t *testing.T, c net.Conn, peer *net.TCPConn) (int, error) {
		require.NoError(t, peer.SetLinger(0))
		require.NoError(t, peer.Close())
		_, err := c.Read(make([]byte, 1)) // until we know
		require.ErrorIs(t, err, syscall.ECONNRESET)
		return c.Write([]byte("x"))
	},
	"write when it is closed": func(t *testing.T, c net.Conn, _ *net.TCPConn) (int, error) {
		require.NoError(t, c.Close())
		return c.Write([]byte("x"))
	},
}

func write(t *testing.T, to io.Writer, text string) {
	t.Helper()
	_, err := io.WriteString(to, text)
	require.NoError(t, err)
}

// unheard lets the scheduler be told of no call until the test ends.
func unheard(t *testing.T) {
	t.Helper()
	before := monitor.state.Swap(tickWanted)
	t.Cleanup(func() { monitor.state.Store(before) })
}

// A socket does what the connection that it is made of does, errors included.
func TestSocketIsAsPackageNet(t *testing.T) {
	for name, do := range socketCases {
		t.Run(name, func(t *testing.T) {
			type outcome struct {
				n    int
				err  error
				text string
			}
			with := func(made func(*net.TCPConn) net.Conn) (o outcome) {
				tcp, peer := tcpPair(t)
				if o.n, o.err = do(t, made(tcp), peer); o.err != nil {
					o.text = strings.NewReplacer(tcp.LocalAddr().String(), "LOCAL", tcp.RemoteAddr().String(), "REMOTE").Replace(o.err.Error())
				}
				return o
			}
			want := with(func(tcp *net.TCPConn) net.Conn { return tcp })
			got := []outcome{with(socketOf)}
			unheard(t)
			got = append(got, with(socketOf))
			for _, got := range got {
				assert.Equal(t, want.n, got.n)
				assert.Equal(t, want.text, got.text)
				assert.IsType(t, want.err, got.err)
				for _, target := range []error{io.EOF, net.ErrClosed, os.ErrDeadlineExceeded, syscall.ECONNRESET, syscall.EPIPE} {
					assert.Equal(t, errors.Is(want.err, target), errors.Is(got.err, target), "%v", target)
				}
			}
		})
	}
}

func socketOf(tcp *net.TCPConn) net.Conn { return New(tcp) }

// A goroutine that writes has the connection until all of it is written.
func TestSocketKeepsWritesApart(t *testing.T) {
	tcp, peer := tcpPair(t)
	unheard(t)
	c := New(tcp)
	const length = 1 << 20
	var writers sync.WaitGroup
	for _, b := range []byte("abcd") {
		writers.Go(func() {
			n, err := c.Write(bytes.Repeat([]byte{b}, length))
			assert.NoError(t, err)
			assert.Equal(t, length, n)
		})
	}
	block := make([]byte, length)
	for range 4 {
		_, err := io.ReadFull(peer, block)
		require.NoError(t, err)
		assert.Equal(t, length, bytes.Count(block, block[:1]))
	}
	writers.Wait()
}

// What a program does in a connection of its own is not gone past.
func TestSocketLeavesOthersAlone(t *testing.T) {
	tcp, _ := tcpPair(t)
	own := struct{ net.Conn }{tcp}
	assert.Equal(t, net.Conn(own), New(own))
}

// Somebody's File().Fd() makes the socket one that blocks, for all who have it:
// who does not tell the scheduler of his calls must not be caught in one.
func TestSocketThatBlocks(t *testing.T) {
	tcp, peer := tcpPair(t)
	unheard(t)
	c := New(tcp)
	require.IsType(t, new(socket), c)
	file, err := tcp.File()
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, syscall.SetNonblock(int(file.Fd()), false))

	// Should Read block after all, this ends it.
	defer time.AfterFunc(100*brief, func() { peer.Close() }).Stop()
	require.NoError(t, c.SetDeadline(time.Now().Add(brief)))
	_, err = c.Read(make([]byte, 10))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	all := make([]byte, 64<<20)
	require.NoError(t, c.SetDeadline(time.Now().Add(brief)))
	_, err = c.Write(all)
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)

	require.NoError(t, c.SetDeadline(time.Time{}))
	write(t, peer, "still there")
	got := make([]byte, 20)
	n, err := c.Read(got)
	require.NoError(t, err)
	assert.Equal(t, "still there", string(got[:n]))
}
