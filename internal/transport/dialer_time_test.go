package transport

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

func TestDialerWithoutAResult(t *testing.T) {
	for name, none := range map[string]net.Conn{"nil": nil, "nil in an interface": (*net.TCPConn)(nil)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t)
				l, r := open(t, s, func(cfg *Config) {
					cfg.Dial = func(context.Context, string, string) (net.Conn, error) { return none, nil }
				})
				r.await(t, "failed", 1)
				assert.EqualError(t, r.failures()[0], "Config.DialContext returned neither a connection nor an error")
				shut(t, l, s)
			})
		})
	}
}
