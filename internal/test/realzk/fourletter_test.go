//go:build unix

package realzk

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseSrvr(t *testing.T) {
	assert.Equal(t, serverState{version: "3.8.0-abc", mode: "leader", zxid: 1 << 32}, parseSrvr(
		"Zookeeper version: 3.8.0-abc, built on 2024-12-29 17:54 UTC\nLatency min/avg/max: 0/0.0/0\nReceived: 2\n"+
			"Zxid: 0x100000000\nMode: leader\nNode count: 5\nProposal sizes last/min/max: -1/-1/-1\n"))
	s := parseSrvr("This ZooKeeper instance is not currently serving requests\n")
	assert.False(t, s.serving())
	s = parseSrvr("Mode: read-only\n")
	assert.False(t, s.serving())
	assert.False(t, s.leads())
}

func TestParseCons(t *testing.T) {
	assert.Equal(t, []int64{0x1000a9ab8d70000, -0xffffffffffffff}, parseCons(
		" /127.0.0.1:41514[1](queued=0,recved=2,sent=2,sid=0x1000a9ab8d70000,lop=PING,est=1,to=4000,resp_lat=0)\n"+
			" /127.0.0.1:41515[1](queued=0,recved=2,sent=2,sid=0xff00000000000001,lop=PING,est=1,to=4000)\n"+
			" /127.0.0.1:41516[0](queued=0,recved=1,sent=0)\n\n"))
}

func TestParseMntr(t *testing.T) {
	n, err := parseMntr("zk_version\t3.8.0, built on x\nzk_watch_count\t12\nzk_watch_bytes\t1\n", "zk_watch_count")
	require.NoError(t, err)
	assert.Equal(t, 12, n)
	for _, bad := range []string{"", "This ZooKeeper instance is not currently serving requests\n", "zk_watch_count\tmany\n"} {
		_, err := parseMntr(bad, "zk_watch_count")
		assert.Error(t, err)
	}
}

func TestParseDump(t *testing.T) {
	d, err := parseDump("SessionTracker dump:\nSession Sets (2)/(3):\n1 expire at Sat Nov 21 04:03:42 UTC 2026:\n\t0x200\n" +
		"2 expire at Sat Nov 21 04:03:43 UTC 2026:\n\t0x300\n\t0x100\nephemeral nodes dump:\nSessions with Ephemerals (1):\n" +
		"0x100:\n\t/a\n\t/b 2\nConnections dump:\nConnections Sets (1)/(1):\n1 expire at Sat Nov 21 04:03:42 UTC 2026:\n\tip: /127.0.0.1:52786 sessionId: 0x0\n")
	require.NoError(t, err)
	assert.Equal(t, dump{sessions: []int64{0x100, 0x200, 0x300}, ephemerals: map[int64][]string{0x100: {"/a", "/b 2"}}}, d)

	for _, bad := range []string{"", "dump is not executed because it is not in the whitelist.", "\t0x1\nephemeral nodes dump:\n", "x\n\tnone\nephemeral nodes dump:\n", "ephemeral nodes dump:\nhex:\n\t/a\n"} {
		_, err := parseDump(bad)
		assert.Error(t, err, "%q", bad)
	}
}

func TestFourLetterEndsWithContext(t *testing.T) {
	ln, err := listen(0) // accepts, and never answers
	require.NoError(t, err)
	defer func() { assert.NoError(t, ln.Close()) }()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		cancel(enough)
		_, _ = io.Copy(io.Discard, conn)
	}()
	_, err = fourLetter(ctx, ln.Addr().String(), nil, "srvr")
	require.ErrorIs(t, err, enough)
}
