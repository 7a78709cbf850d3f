//go:build unix

package realzk

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const silence = 50 * time.Millisecond // how long nothing has to arrive

// peer is the member behind a forwarder: it hands over what connects to it.
type peer struct {
	listener net.Listener
	conns    chan net.Conn
}

func newPeer(t *testing.T) *peer {
	ln, err := listen(0)
	require.NoError(t, err)
	p := &peer{ln, make(chan net.Conn)}
	go func() {
		defer close(p.conns)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			p.conns <- conn
		}
	}()
	t.Cleanup(func() { _ = ln.Close() })
	return p
}

func startForwarder(t *testing.T, target, announce string) *forwarder {
	f, err := newForwarder(target, newGate())
	require.NoError(t, err)
	f.announce = announce
	life, end := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.serve(life) })
	t.Cleanup(func() {
		end()
		wg.Wait()
	})
	return f
}

func dial(t *testing.T, f *forwarder) net.Conn {
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp4", f.listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
}

func assertReceives(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	buf := make([]byte, len(text))
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err := io.ReadFull(conn, buf)
	require.NoError(t, err)
	assert.Equal(t, text, string(buf))
}

func assertSilent(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(silence)))
	n, err := conn.Read(make([]byte, 1))
	assert.Zero(t, n)
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// assertRefused dials and sees the connection reset, at once or soon after.
func assertRefused(t *testing.T, f *forwarder) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp4", f.listener.Addr().String())
	if err != nil {
		return
	}
	assertEnds(t, conn)
	_ = conn.Close()
}

func assertEnds(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err := conn.Read(make([]byte, 1))
	assert.Error(t, err)
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestCutDelaysWithoutBreaking(t *testing.T) {
	p := newPeer(t)
	f := startForwarder(t, p.listener.Addr().String(), "")
	near := dial(t, f)
	far := <-p.conns
	send(t, near, "ping")
	assertReceives(t, far, "ping")
	send(t, far, "pong")
	assertReceives(t, near, "pong")

	f.gate.set(false)
	send(t, near, "to far")
	send(t, far, "to near")
	assertSilent(t, near)
	assertSilent(t, far)

	f.gate.set(true)
	assertReceives(t, far, "to far")
	assertReceives(t, near, "to near")
	require.NoError(t, far.Close())
	assertEnds(t, near)
}

func TestCutHidesThatTheOtherEndClosed(t *testing.T) {
	p := newPeer(t)
	f := startForwarder(t, p.listener.Addr().String(), "")
	near := dial(t, f)
	far := <-p.conns
	f.gate.set(false)
	send(t, far, "last words")
	require.NoError(t, far.Close())
	assertSilent(t, near)
	f.gate.set(true)
	assertReceives(t, near, "last words")
	assertEnds(t, near)
}

func TestCutRefusesConnections(t *testing.T) {
	p := newPeer(t)
	f := startForwarder(t, p.listener.Addr().String(), "")
	f.gate.set(false)
	assertRefused(t, f)
	f.gate.set(true)
	near := dial(t, f)
	send(t, near, "x")
	far := <-p.conns
	assertReceives(t, far, "x")
	require.NoError(t, far.Close())
}

func TestNobodyBehindForwarder(t *testing.T) {
	p := newPeer(t)
	f := startForwarder(t, p.listener.Addr().String(), "")
	require.NoError(t, p.listener.Close())
	assertRefused(t, f)
}

func TestForwarderWaitsForTheMemberToListen(t *testing.T) {
	p := newPeer(t)
	addr := p.listener.Addr().(*net.TCPAddr)
	require.NoError(t, p.listener.Close())
	f := startForwarder(t, addr.String(), "")
	near := dial(t, f)
	send(t, near, "early")
	assertSilent(t, near)
	ln, err := listen(addr.Port)
	require.NoError(t, err)
	far, err := ln.Accept()
	require.NoError(t, err)
	assertReceives(t, far, "early")
	require.NoError(t, far.Close())
	require.NoError(t, ln.Close())
}

func TestForwarderEndsWithOpenConnections(t *testing.T) {
	p := newPeer(t)
	f, err := newForwarder(p.listener.Addr().String(), newGate())
	require.NoError(t, err)
	life, end := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.serve(life) })
	near := dial(t, f)
	far := <-p.conns
	f.gate.set(false)
	send(t, near, "held back")
	end()
	wg.Wait()
	assertEnds(t, near)
	assertEnds(t, far)
	require.NoError(t, far.Close())
}

func introduction(version, sid int64, addr string) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(version))
	b = binary.BigEndian.AppendUint64(b, uint64(sid))
	b = binary.BigEndian.AppendUint32(b, uint32(len(addr)))
	return string(b) + addr
}

func TestForwarderAnnouncesTheLink(t *testing.T) {
	p := newPeer(t)
	f := startForwarder(t, p.listener.Addr().String(), "127.0.0.1:99")
	near := dial(t, f)
	send(t, near, introduction(-65536, 2, "127.0.0.1:31234")+"more")
	require.NoError(t, near.Close()) // as a member with a lower id does
	far := <-p.conns
	assertReceives(t, far, introduction(-65536, 2, "127.0.0.1:99")+"more")
	assertEnds(t, far)
	require.NoError(t, far.Close())
}

func TestReadIntroduction(t *testing.T) {
	for _, tc := range []struct{ name, sent, want string }{
		{"one address", introduction(-65536, 1, "a:1"), introduction(-65536, 1, "b:22")},
		{"several", introduction(-65535, 1, "a:1|c:2"), introduction(-65535, 1, "b:22")},
		{"id only", "\x00\x00\x00\x00\x00\x00\x00\x03", "\x00\x00\x00\x00\x00\x00\x00\x03"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			src := strings.NewReader(tc.sent + "rest")
			got, err := readIntroduction(src, "b:22")
			require.NoError(t, err)
			assert.Equal(t, tc.want, string(got))
			rest, err := io.ReadAll(src)
			require.NoError(t, err)
			assert.Equal(t, "rest", string(rest))
		})
	}
	_, err := readIntroduction(bytes.NewReader([]byte(introduction(-65536, 1, ""))[:18]), "b:22")
	require.Error(t, err, "cut short")
	huge := introduction(-65536, 1, strings.Repeat("x", 1<<13))
	_, err = readIntroduction(strings.NewReader(huge), "b:22")
	require.ErrorContains(t, err, "8192 bytes")
}
