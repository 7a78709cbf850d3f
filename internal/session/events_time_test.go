package session

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/listeners"
	zktest "github.com/paddock-zk/paddock/testing"
)

// leaping is a clock that leaps ahead when it is read the next time.
type leaping struct {
	ahead atomic.Int64
	armed atomic.Bool
	leap  time.Duration
}

func (c *leaping) Now() time.Time {
	if c.armed.Swap(false) {
		c.ahead.Add(int64(c.leap))
	}
	return time.Now().Add(time.Duration(c.ahead.Load()))
}

func (c *leaping) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// arming arms a clock with the first answer of a server.
type arming struct {
	net.Conn
	clock *leaping
	done  bool
}

func (c *arming) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.done && err == nil {
		c.done = true
		c.clock.armed.Store(true)
	}
	return n, err
}

// The deadline may pass while a connection that renews the session is set up. It
// is LOST then, and nobody is told of a connection that cannot be used.
func TestSessionIsLostWhileItIsRenewed(t *testing.T) {
	clock := &leaping{leap: time.Minute}
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		dials := 0
		s, err := Open(Config{
			Seams: Seams{Clock: clock},
			Transport: transport.Config{
				Servers: []string{srv.ConnectString()}, SessionTimeout: 10 * time.Second, ConnectTimeout: time.Second, MaxReply: 1 << 20, MaxRequest: 1 << 20,
				Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
					nc, err := srv.DialContext(ctx, network, addr)
					if dials++; dials == 2 {
						nc = &arming{Conn: nc, clock: clock}
					}
					return nc, err
				},
			},
			CloseTimeout: time.Second, Logger: zap.NewNop(),
		})
		require.NoError(t, err)
		defer func() { _ = s.Close() }()
		c, err := s.AwaitConn(t.Context(), false)
		require.NoError(t, err)
		states := s.States().Subscribe()
		defer states.Stop()
		assert.Equal(t, listeners.Connected, <-states.C)
		c.Kill(errors.New("test"))
		assert.Equal(t, listeners.Suspended, <-states.C)
		assert.Equal(t, listeners.Lost, <-states.C)
		assert.Equal(t, listeners.Reconnected, <-states.C, "with a new session")
		assert.Equal(t, int64(time.Minute), clock.ahead.Load(), "the clock has leapt")
	})
}
