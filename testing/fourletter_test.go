package zktest_test

import (
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	zktest "github.com/paddock-zk/paddock/testing"
)

// say sends a four-letter word and returns the answer.
func say(t *testing.T, srv *zktest.Server, word string) string {
	t.Helper()
	nc, err := srv.DialContext(t.Context(), "tcp", srv.ConnectString())
	require.NoError(t, err)
	defer nc.Close()
	_, err = io.WriteString(nc, word)
	require.NoError(t, err)
	b, err := io.ReadAll(nc)
	require.NoError(t, err)
	return string(b)
}

// The numbers are those that ZooKeeper 3.8.0 printed when it had just started.
func TestWordsOfAnEmptyServer(t *testing.T) {
	srv := zktest.Start(t)
	assert.Contains(t, say(t, srv, "conf"), "maxClientCnxns=0\n", "no bound")
	srvr := say(t, srv, "srvr")
	assert.Contains(t, srvr, "Received: 2\nSent: 1\n")
	assert.Contains(t, srvr, "Outstanding: 0\nZxid: 0x0\nMode: standalone\nNode count: 5\n")
	assert.Contains(t, say(t, srv, "stat"), "Received: 3\nSent: 2\n")
	mntr := make(map[string]string)
	for line := range strings.Lines(say(t, srv, "mntr")) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "\t")
		require.True(t, ok, line)
		mntr[name] = value
	}
	for name, value := range map[string]string{
		"zk_ephemerals_count": "0", "zk_outstanding_requests": "0", "zk_znode_count": "5", "zk_global_sessions": "0", "zk_packets_sent": "3",
		"zk_packets_received": "4", "zk_watch_count": "0", "zk_approximate_data_size": "44", "zk_local_sessions": "0",
	} {
		assert.Equal(t, value, mntr[name], name)
	}
	if runtime.GOOS == "linux" {
		for _, name := range []string{"zk_open_file_descriptor_count", "zk_max_file_descriptor_count"} {
			n, err := strconv.ParseInt(mntr[name], 10, 64)
			require.NoError(t, err, name)
			assert.Positive(t, n, name)
		}
	}
}

// Tools read the numbers of conf into 32 bits.
func TestNumbersOfConfFit(t *testing.T) {
	for name, limits := range map[string]zktest.Limits{
		"by default": {},
		"no limits":  {Connections: -1, ConnectionsPerHost: -1, Outstanding: -1, Unsent: -1, Watches: -1, Data: -1},
		"one":        {ConnectionsPerHost: 1},
	} {
		conf := say(t, zktest.Start(t, zktest.WithLimits(limits)), "conf")
		numbers := make(map[string]int64)
		for line := range strings.Lines(conf) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if value == "" {
				continue // a folder: there is none
			}
			n, err := strconv.ParseInt(value, 10, 32)
			require.NoError(t, err, "%s: %s", name, line)
			numbers[key] = n
		}
		assert.Greater(t, len(numbers), 6, conf)
		assert.EqualValues(t, max(limits.ConnectionsPerHost, 0), numbers["maxClientCnxns"], name)
	}
}
