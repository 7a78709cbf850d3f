package zktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	zktest "github.com/paddock-zk/paddock/testing"
)

func TestSessionOfThirtySecondsExpiresAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		conn := connect(t, srv, 30*time.Second)
		_, err := conn.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		id := conn.SessionID()

		srv.Freeze()
		begin := time.Now()
		require.NoError(t, srv.WaitSessionGone(context.Background(), id))
		took := time.Since(begin)
		assert.GreaterOrEqual(t, took, 30*time.Second)
		assert.LessOrEqual(t, took, 32*time.Second, "one tick at most beyond the timeout")
		assert.Empty(t, srv.Ephemerals(0))
		srv.Thaw()

		time.Sleep(30 * time.Second)
		ok, _, err := conn.Exists("/e")
		require.NoError(t, err)
		assert.False(t, ok)
		assert.NotEqual(t, id, conn.SessionID(), "the client has a new session")
	})
}

func TestIdleSessionLivesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		conn := connect(t, srv, 30*time.Second)
		_, _, err := conn.Exists("/")
		require.NoError(t, err)
		id := conn.SessionID()
		time.Sleep(10 * time.Minute)
		assert.Equal(t, id, conn.SessionID())
		assert.Greater(t, srv.Requests()["ping"], 50)
	})
}
