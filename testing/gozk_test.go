package zktest_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	zktest "github.com/paddock-zk/paddock/testing"
)

// connect opens a session with go-zookeeper, a client that knows nothing of us.
func connect(t *testing.T, srv *zktest.Server, timeout time.Duration) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect([]string{srv.ConnectString()}, timeout,
		zk.WithLogInfo(false), zk.WithLogger(quiet{}),
		zk.WithDialer(func(network, addr string, timeout time.Duration) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			return srv.DialContext(ctx, network, addr)
		}))
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		for range events { // closed when the client's goroutines have ended
		}
	})
	return conn
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func TestGoZK(t *testing.T) {
	for name, opts := range map[string][]zktest.Option{"tcp": nil, "memory": {zktest.InMemory()}} {
		t.Run(name, func(t *testing.T) {
			srv := zktest.Start(t, opts...)
			conn := connect(t, srv, 10*time.Second)

			path, err := conn.Create("/a", []byte("x"), 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			assert.Equal(t, "/a", path)

			data, stat, changed, err := conn.GetW("/a")
			require.NoError(t, err)
			assert.Equal(t, []byte("x"), data)
			_, err = conn.Set("/a", []byte("y"), stat.Version)
			require.NoError(t, err)
			ev := <-changed
			assert.Equal(t, zk.EventNodeDataChanged, ev.Type)

			lock := zk.NewLock(conn, "/lock", zk.WorldACL(zk.PermAll))
			require.NoError(t, lock.Lock())
			require.NoError(t, lock.Unlock())
		})
	}
}
