package transport

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var errMute = errors.New("mute")

// mute is a connection that says it could not write what it has written.
type mute struct{ net.Conn }

func (m mute) Write(p []byte) (int, error) {
	n, err := m.Conn.Write(p)
	return n, errors.Join(errMute, err)
}

// Read lets the failure of the write be noticed first.
func (m mute) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return m.Conn.Read(p)
}

func TestConnectionThatCannotBeWrittenToDoesNotGoUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(p *peer) { p.welcome(7, 9*time.Second); p.answer(1) })
		first := true
		l, r := open(t, s, func(cfg *Config) {
			cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				nc, err := s.dial(ctx, network, addr)
				if first && err == nil {
					nc = mute{nc}
				}
				first = false
				return nc, err
			}
		})
		r.await(t, "up", 1)
		require.Equal(t, []string{"failed", "up"}, r.story())
		require.ErrorIs(t, r.failures()[0], errMute)
		shut(t, l, s)
	})
}
