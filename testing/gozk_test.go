package zktest_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	zktest "github.com/paddock-zk/paddock/testing"
)

// connect opens a session with go-zookeeper, a client that knows nothing of us.
func connect(t testing.TB, srv *zktest.Server, timeout time.Duration) *zk.Conn {
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

var worldACL = zk.WorldACL(zk.PermAll)

func TestGoZKReadsAndWrites(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		conn := connect(t, zktest.Start(t, opts...), 10*time.Second)
		path, err := conn.Create("/a", []byte("x"), 0, worldACL)
		require.NoError(t, err)
		assert.Equal(t, "/a", path)
		_, err = conn.Create("/a", nil, 0, worldACL)
		require.ErrorIs(t, err, zk.ErrNodeExists)
		_, err = conn.Create("/no/parent", nil, 0, worldACL)
		require.ErrorIs(t, err, zk.ErrNoNode)
		data, stat, err := conn.Get("/a")
		require.NoError(t, err)
		assert.Equal(t, []byte("x"), data)
		_, err = conn.Set("/a", []byte("y"), stat.Version+1)
		require.ErrorIs(t, err, zk.ErrBadVersion)
		stat, err = conn.Set("/a", []byte("y"), stat.Version)
		require.NoError(t, err)
		assert.EqualValues(t, 1, stat.Version)
		path, err = conn.Create("/a/s-", nil, zk.FlagSequence|zk.FlagEphemeral, worldACL)
		require.NoError(t, err)
		assert.Equal(t, "/a/s-0000000000", path)
		_, stat, err = conn.Get(path)
		require.NoError(t, err)
		assert.Equal(t, conn.SessionID(), stat.EphemeralOwner)
		require.ErrorIs(t, conn.Delete("/a", -1), zk.ErrNotEmpty)
		names, _, err := conn.Children("/a")
		require.NoError(t, err)
		assert.Equal(t, []string{"s-0000000000"}, names)
		_, err = conn.CreateContainer("/c", nil, zk.FlagContainer, worldACL)
		require.NoError(t, err)
		_, err = conn.CreateTTL("/t", nil, zk.FlagTTL, worldACL, time.Minute)
		require.NoError(t, err)
		_, err = conn.Sync("/")
		require.NoError(t, err)
		path, err = conn.CreateProtectedEphemeralSequential("/a/lock-", nil, worldACL)
		require.NoError(t, err)
		assert.Regexp(t, "^/a/_c_[0-9a-f]{32}-lock-0000000001$", path)
		_, err = conn.IncrementalReconfig(nil, nil, -1)
		require.ErrorIs(t, err, zk.ErrReconfigDisabled)
	})
}

func TestGoZKWatches(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		a, b := connect(t, srv, 10*time.Second), connect(t, srv, 10*time.Second)
		exists, _, made, err := a.ExistsW("/n")
		require.NoError(t, err)
		require.False(t, exists)
		_, err = b.Create("/n", nil, 0, worldACL)
		require.NoError(t, err)
		assert.Equal(t, zk.EventNodeCreated, (<-made).Type)

		_, _, changed, err := a.GetW("/n")
		require.NoError(t, err)
		_, _, children, err := a.ChildrenW("/n")
		require.NoError(t, err)
		_, err = b.Set("/n", []byte("x"), -1)
		require.NoError(t, err)
		assert.Equal(t, zk.EventNodeDataChanged, (<-changed).Type)
		_, err = b.Create("/n/c", nil, 0, worldACL)
		require.NoError(t, err)
		assert.Equal(t, zk.EventNodeChildrenChanged, (<-children).Type)
	})
}

func TestGoZKMulti(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		conn := connect(t, zktest.Start(t, opts...), 10*time.Second)
		res, err := conn.Multi(
			&zk.CreateRequest{Path: "/a", Data: []byte("1"), Acl: worldACL},
			&zk.SetDataRequest{Path: "/a", Data: []byte("2"), Version: 0},
			&zk.CheckVersionRequest{Path: "/a", Version: 1},
		)
		require.NoError(t, err)
		require.Len(t, res, 3)
		assert.Equal(t, "/a", res[0].String)
		assert.EqualValues(t, 1, res[1].Stat.Version)

		res, err = conn.Multi(
			&zk.CreateRequest{Path: "/b", Acl: worldACL},
			&zk.CheckVersionRequest{Path: "/a", Version: 7},
			&zk.DeleteRequest{Path: "/a", Version: -1},
		)
		require.ErrorIs(t, err, zk.ErrBadVersion)
		require.Len(t, res, 3)
		require.NoError(t, res[0].Error)
		require.ErrorIs(t, res[1].Error, zk.ErrBadVersion)
		ok, _, err := conn.Exists("/b")
		require.NoError(t, err)
		assert.False(t, ok)
	})
}

func TestGoZKAuth(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		a, b := connect(t, srv, 10*time.Second), connect(t, srv, 10*time.Second)
		require.NoError(t, a.AddAuth("digest", []byte("bob:secret")))
		_, err := a.Create("/s", nil, 0, zk.DigestACL(zk.PermAll, "bob", "secret"))
		require.NoError(t, err)
		_, _, err = b.Get("/s")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		_, _, err = a.Get("/s")
		require.NoError(t, err)
		acl, _, err := a.GetACL("/s")
		require.NoError(t, err)
		assert.Equal(t, zk.DigestACL(zk.PermAll, "bob", "secret"), acl)
		_, err = a.SetACL("/s", worldACL, 0)
		require.NoError(t, err)
		_, _, err = b.Get("/s")
		require.NoError(t, err)
	})
}

func TestGoZKLockIsHandedOn(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		var wg sync.WaitGroup
		holders, rounds := 0, 0
		for range 4 {
			conn := connect(t, srv, 10*time.Second)
			wg.Go(func() {
				for range 10 {
					lock := zk.NewLock(conn, "/lock", worldACL)
					if !assert.NoError(t, lock.Lock()) {
						return
					}
					holders++ // the race detector watches too
					assert.Equal(t, 1, holders)
					rounds++
					holders--
					assert.NoError(t, lock.Unlock())
				}
			})
		}
		wg.Wait()
		assert.Equal(t, 40, rounds)
		assert.NoError(t, srv.WaitChildren(t.Context(), "/lock", 0))
	})
}

func TestGoZKComesBackAfterRestart(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		conn := connect(t, srv, 10*time.Second)
		_, err := conn.Create("/e", nil, zk.FlagEphemeral, worldACL)
		require.NoError(t, err)
		id := conn.SessionID()
		require.NoError(t, srv.Restart())
		for {
			ok, _, err := conn.Exists("/e")
			if err != nil {
				continue // until it has connected again
			}
			assert.True(t, ok)
			break
		}
		assert.Equal(t, id, conn.SessionID())
	})
}
