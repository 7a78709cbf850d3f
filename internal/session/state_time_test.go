package session

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/listeners"
	zktest "github.com/paddock-zk/paddock/testing"
)

// The states follow each other as in Curator, and each is told once.
func TestSession_States(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, _ := opened(t, srv)
		var told []listeners.State
		s.States().Listen(func(state listeners.State) { told = append(told, state) })
		outage := func(length time.Duration) {
			srv.Refuse()
			srv.DisconnectAll()
			time.Sleep(length)
			srv.Accept()
			time.Sleep(time.Minute)
		}
		outage(time.Second)
		outage(time.Minute)
		require.NoError(t, srv.ExpireSession(s.ID()))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []listeners.State{
			listeners.Connected,
			listeners.Suspended, listeners.Reconnected, // the session lives
			listeners.Suspended, listeners.Lost, listeners.Reconnected, // it is given up
			listeners.Suspended, listeners.Lost, listeners.Reconnected, // the servers say that it is over
		}, told)
		assert.Equal(t, listeners.Reconnected, s.State())
	})
}

// owner hears of its node.
type owner struct {
	heard func(state TrackedState, reason error)
}

func (o owner) NodeChanged(_ *TrackedNode, state TrackedState, reason error) { o.heard(state, reason) }

// Several goroutines give a session up. All of them return when its nodes have been told,
// and before that nothing has happened that lets others have the nodes.
func TestSession_TellsNodesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv)
		id := s.ID()
		created(t.Context(), t, s, "/a")
		heard := make(chan struct{})
		told := false
		_, err := s.Track(t.Context(), id, "/a", owner{func(state TrackedState, reason error) {
			close(heard)
			time.Sleep(time.Second)
			told = true
			assert.Equal(t, NodeLost, state)
			assert.ErrorIs(t, reason, ErrNotConnected)
			assert.False(t, isDown(c), "the connection stands")
			assert.NotEqual(t, listeners.Lost, s.State())
			assert.NotEmpty(t, srv.Ephemerals(id))
		}})
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				s.lose(ErrNotConnected)
				assert.True(t, told)
			})
		}
		<-heard
		_, err = s.ConnOf(id)
		require.ErrorIs(t, err, ErrNotConnected, "nothing more is asked in it")
		wg.Wait()
		synctest.Wait()
		assert.True(t, isDown(c))
		s.lose(zk.ErrSessionExpired) // nothing is left to give up, or the next session would be
		next, err := s.AwaitConn(t.Context(), true)
		require.NoError(t, err)
		assert.NotEqual(t, id, next.SessionID())
		synctest.Wait()
		assert.Empty(t, srv.Ephemerals(id))
	})
}

// A session that is given up while connected leaves no connection from then on.
func TestOutageBehindASessionThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		core, logs := observer.New(zap.WarnLevel)
		s, _ := opened(t, srv, func(cfg *Config) { cfg.Logger = zap.New(core) })
		time.Sleep(time.Minute)
		srv.Refuse()
		began := time.Now()
		s.lose(ErrNotConnected)
		time.Sleep(10 * time.Second)
		told := logs.FilterMessage("not connected").All()
		require.NotEmpty(t, told)
		assert.GreaterOrEqual(t, told[0].Time.Sub(began), time.Second)
		assert.Equal(t, told[0].Time.Sub(began), told[0].ContextMap()["for"])
	})
}

func isDown(c *transport.Conn) bool {
	select {
	case <-c.Down():
		return true
	default:
		return false
	}
}
