package main

import (
	"encoding/xml"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const someData = `[
 {"server": "ZooKeeper", "group": "uncontended", "name": "raw <create>", "unit": "us", "values": [300, 100, 200], "ratios": [1, 1, 1], "tail": [9, 9, 9]},
 {"server": "ZooKeeper", "group": "uncontended", "name": "mutex", "unit": "us", "values": [330, 120, 210], "ratios": [1.1, 1.2, 1.05], "tail": [8, 9, 7]},
 {"server": "ZooKeeper", "group": "memory", "name": "waiter", "unit": "bytes", "values": [4500]}
]`

func TestTablesAndPlotFromData(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data.json")
	require.NoError(t, os.WriteFile(data, []byte(someData), 0o600))
	var out strings.Builder
	require.NoError(t, run(t.Context(), plan{}, data, dir, &out))
	assert.Contains(t, out.String(), "### ZooKeeper: uncontended")
	assert.Contains(t, out.String(), "| mutex | 210 us | 120 to 330 | 1.10 | 1.05 to 1.20 | 8 us |")
	assert.Contains(t, out.String(), "| waiter | 4500 bytes | 4500 to 4500 |")
	drawn, err := os.ReadFile(filepath.Join(dir, "bench.svg"))
	require.NoError(t, err)
	assert.Contains(t, string(drawn), ">1.10</text>")
	assert.NotContains(t, string(drawn), "waiter", "no ratio to draw")
	for d := xml.NewDecoder(strings.NewReader(string(drawn))); ; {
		_, err := d.Token()
		if err == io.EOF { //nolint:errorlint // documented to be bare
			break
		}
		require.NoError(t, err)
	}
	again, err := load(filepath.Join(dir, "bench.json"))
	require.NoError(t, err)
	first, err := load(data)
	require.NoError(t, err)
	assert.Equal(t, first, again)
}

func TestNoGroupIsCalledThat(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data.json")
	require.NoError(t, os.WriteFile(data, []byte("[]"), 0o600))
	err := run(t.Context(), plan{only: regexp.MustCompile("^memmory$")}, data, "", io.Discard)
	assert.EqualError(t, err, `there is no group whose title matches "^memmory$"`)
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
	p := plan{rounds: 1, turns: 1, turn: time.Microsecond, contend: time.Millisecond, clients: []int{2}, line: 100}
	for sessions, n := range map[string]int{ownSessions: 6, oneSession: 4} {
		results, err := contended(t.Context(), p, testServer(t), 2, sessions)
		require.NoError(t, err)
		require.Len(t, results, n)
	}
	results, err := uncontended(t.Context(), p, testServer(t), "all", []candidate{raw, zkLock, mutex, lookAhead, readSide, writeSide, semaphore, semaphoreMutex, multiLock(2)})
	require.NoError(t, err)
	line, err := inLine(t.Context(), p, testServer(t))
	require.NoError(t, err)
	require.Len(t, line, 6)
	for _, r := range append(results, line...) {
		assert.Positive(t, median(r.Values), r.Name)
	}
}
