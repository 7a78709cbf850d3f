package zktest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestLimits(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		limited := func(l zktest.Limits) *zktest.Server {
			return zktest.Start(t, append(opts[:len(opts):len(opts)], zktest.WithLimits(l))...)
		}
		refused := func(srv *zktest.Server) bool {
			nc, err := srv.DialContext(t.Context(), "tcp", srv.ConnectString())
			if err != nil {
				return true
			}
			defer nc.Close()
			_, err = nc.Read(make([]byte, 1))
			return err != nil
		}
		t.Run("connections", func(t *testing.T) {
			srv := limited(zktest.Limits{Connections: 2})
			begin(t, srv, 10*time.Second)
			second := begin(t, srv, 10*time.Second)
			assert.True(t, refused(srv))
			second.must(wire.OpCloseSession, wire.Empty{}, nil)
			require.Eventually(t, func() bool { return srv.Counters().Connections == 1 }, 10*time.Second, time.Millisecond)
			begin(t, srv, 10*time.Second)
		})
		t.Run("connections of a host", func(t *testing.T) {
			srv := limited(zktest.Limits{ConnectionsPerHost: 1})
			begin(t, srv, 10*time.Second)
			assert.True(t, refused(srv))
		})
		t.Run("watches", func(t *testing.T) {
			srv := limited(zktest.Limits{Watches: 3})
			c := begin(t, srv, 10*time.Second)
			c.must(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/a"}, nil)
			c.must(wire.OpGetData, watch("/"), nil)
			for _, op := range []wire.Op{wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2} {
				code, err := c.call(op, watch("/zookeeper"), nil)
				require.NoError(t, err)
				assert.Equal(t, wire.CodeQuotaExceeded, code)
			}
			code, err := c.call(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/b"}, nil)
			require.NoError(t, err)
			assert.Equal(t, wire.CodeQuotaExceeded, code)
			assert.Equal(t, 3, srv.Counters().Watches)
			c.create("/a", 0)
			srv.DisconnectAll()
			assert.Zero(t, srv.Counters().Watches)
		})
		t.Run("data", func(t *testing.T) {
			srv := limited(zktest.Limits{Data: 1000})
			c := begin(t, srv, 10*time.Second)
			before := srv.Counters().DataBytes
			big := strings.Repeat("x", 900)
			c.create("/a", 0)
			code, err := c.call(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: []byte(big), Version: -1}, nil)
			require.NoError(t, err)
			assert.Equal(t, wire.CodeOK, code)
			code, err = c.call(wire.OpCreate, createReq("/"+big), nil)
			require.NoError(t, err)
			assert.Equal(t, wire.CodeQuotaExceeded, code)
			c.must(wire.OpDelete, &wire.PathVersionRequest{Path: "/a", Version: -1}, nil)
			assert.Equal(t, before, srv.Counters().DataBytes)
			c.create("/"+big, 0)
		})
	})
}

func TestCounters(t *testing.T) {
	srv := zktest.Start(t)
	c := begin(t, srv, 10*time.Second)
	c.create("/e", wire.FlagEphemeral)
	c.must(wire.OpGetData, watch("/e"), nil)
	c.must(wire.OpDelete, &wire.PathVersionRequest{Path: "/e", Version: -1}, nil)
	n := srv.Counters()
	assert.EqualValues(t, 4, n.Received)
	assert.EqualValues(t, 5, n.Sent)
	assert.EqualValues(t, 1, n.Notifications)
	assert.EqualValues(t, 3, n.Transactions, "one opened the session")
	assert.Equal(t, []int{1, 1, 0, 4, 0}, []int{n.Connections, n.Sessions, n.Watches, n.Nodes, n.Ephemerals})
	assert.EqualValues(t, 49+53+19+22, n.BytesReceived)
}
