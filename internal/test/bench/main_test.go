package main

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBenchmarkFormat(t *testing.T) {
	var out strings.Builder
	require.NoError(t, write(&out, []result{
		{server: "ZooKeeper", group: "uncontended", name: "MultiLock of 3", unit: "ns/op", values: []float64{330000, 120500}, tail: []float64{8e6, 9e6}},
		{server: "ZooKeeper", group: "hand-offs, own sessions", name: "mutex", clients: 8, unit: "hand-offs/s", values: []float64{0.25}},
	}))
	_, text, _ := strings.Cut(out.String(), "\nUnit ")
	assert.Equal(t, `hand-offs/s better=higher
Unit cycles/s better=higher
server: ZooKeeper
group: uncontended
BenchmarkLock/of=MultiLock_of_3 1 330000 ns/op 8e+06 p99-ns/op
BenchmarkLock/of=MultiLock_of_3 1 120500 ns/op 9e+06 p99-ns/op
server: ZooKeeper
group: hand-offs, own sessions
BenchmarkLock/of=mutex/clients=8 1 0.25 hand-offs/s
`, text)
}

func TestProxyDelaysBothWays(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	p, err := startProxy(t.Context(), l.Addr().String(), 10*time.Millisecond)
	require.NoError(t, err)
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.addr())
	require.NoError(t, err)
	began := time.Now()
	_, err = c.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(c, make([]byte, 1))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(began), 20*time.Millisecond)
	require.NoError(t, c.Close())
	require.NoError(t, p.close())
}

func TestEveryCandidateWorks(t *testing.T) {
	p := plan{rounds: 1, turns: 1, turn: time.Microsecond, contend: time.Millisecond, clients: []int{2}, goroutines: 100}
	for sessions, n := range map[string]int{ownSessions: 4, oneSession: 4} {
		results, err := contended(t.Context(), p, testServer(t), 2, sessions)
		require.NoError(t, err)
		require.Len(t, results, n)
	}
	results, err := uncontended(t.Context(), p, testServer(t), "all", []candidate{raw, zkLock, mutex, readSide, writeSide, semaphore, semaphoreMutex, multiLock(2)})
	require.NoError(t, err)
	local, err := inLocalQueue(t.Context(), p, testServer(t))
	require.NoError(t, err)
	require.Len(t, local, 6)
	for _, r := range append(results, local...) {
		assert.NotContains(t, r.values, 0.0, r.name)
		assert.NotEmpty(t, r.values, r.name)
	}
}
