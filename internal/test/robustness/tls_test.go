//go:build realzk

package robustness

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// issue makes a certificate that only who trusts the authority takes.
func issue(t *testing.T, by *realzk.Authority) tls.Certificate {
	t.Helper()
	cert, err := by.Issue()
	require.NoError(t, err)
	return cert
}

// A real server's secure port: locks are taken and survive a restart of the
// server, and whoever is not who he should be gets nowhere.
func TestTLS(t *testing.T) {
	e := realzk.StartT(t, realzk.Options{Tick: tick, TLS: true})
	secure := func(own ...tls.Certificate) func(*framework.Config) {
		return func(cfg *framework.Config) {
			cfg.SessionTimeout = 8 * time.Second
			cfg.TLS = &tls.Config{RootCAs: e.Authority().Pool(), Certificates: own}
		}
	}
	me := issue(t, e.Authority())
	c, other := kit.Connect(t, e, secure(me)), kit.Connect(t, e, secure(me))
	_, err := c.Create(t.Context(), "/data", nil, framework.Persistent)
	require.NoError(t, err)
	h, err := locks.NewInterProcessMutex(c, "/locks/l").Acquire(t.Context())
	require.NoError(t, err)
	_, err = locks.NewInterProcessMutex(other, "/locks/l").TryAcquire(t.Context(), 0)
	require.ErrorIs(t, err, locks.ErrNotAcquired)

	next := follow(t, c)
	id := c.SessionID()
	require.NoError(t, e.Restart(t.Context(), 0))
	next(listeners.Reconnected)
	assert.Equal(t, id, c.SessionID(), "the same session")
	tx := h.Transaction()
	tx.Set("/data", []byte("x"), framework.AnyVersion)
	_, err = tx.Commit(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.Release())
	h, err = locks.NewInterProcessMutex(other, "/locks/l").Acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.Release())

	stranger, err := realzk.NewAuthority()
	require.NoError(t, err)
	for name, change := range map[string]func(*framework.Config){
		"no certificate":                secure(),
		"one that the server mistrusts": secure(issue(t, stranger)),
		"a server that we mistrust": func(cfg *framework.Config) {
			secure(me)(cfg)
			cfg.TLS.RootCAs = stranger.Pool()
		},
		"plain text": func(*framework.Config) {},
		"TLS to the plain port": func(cfg *framework.Config) {
			secure(me)(cfg)
			cfg.ConnectString = e.PlainAddr(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := framework.Connect(ctx, kit.Config(e, change))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			t.Log(err)
		})
	}
}
