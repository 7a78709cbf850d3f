//go:build realzk

package robustness

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/sasl"
	"github.com/paddock-zk/paddock/internal/test/faultnet"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/recipes/cache"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// withJAAS are servers that know users of DIGEST-MD5.
func withJAAS(t *testing.T, opts realzk.Options) realzk.Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jaas.conf")
	require.NoError(t, os.WriteFile(file, []byte(`Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required
  user_bob="pa,ss \"word\" ü"
  user_eve="other";
};
`), 0o600))
	opts.JVMProperties = map[string]string{"java.security.auth.login.config": file, "file.encoding": "UTF-8"}
	if opts.Properties == nil {
		opts.Properties = make(map[string]string)
	}
	opts.Properties["authProvider.sasl"] = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
	return opts
}

func as(user, password string) func(*framework.Config) {
	return func(cfg *framework.Config) { cfg.SASL = sasl.DigestMD5(user, password) }
}

const bobs = `pa,ss "word" ü`

// A lock, a copy and an election of a user of DIGEST-MD5, whose nodes are for nobody else.
func TestSASL(t *testing.T) {
	for name, opts := range map[string]realzk.Options{
		"one server":                    {Tick: tick},
		"three servers that require it": {Servers: 3, Tick: tick, MaxSessionTimeout: time.Minute, Properties: map[string]string{"sessionRequireClientSASLAuth": "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := realzk.StartT(t, withJAAS(t, opts))
			mine := []framework.ACL{framework.SASLACL(framework.PermAll, "bob")}
			network := faultnet.New(nil)
			defer network.Close()
			bob := kit.Connect(t, e, as("bob", bobs), func(cfg *framework.Config) {
				cfg.DialContext = network.DialContext
				cfg.ACL = func(string) []framework.ACL { return mine }
				cfg.Auth = []framework.Auth{framework.DigestAuth("beside", "it")}
			})
			ctx := t.Context()
			_, err := bob.Create(ctx, "/auth", nil, framework.Persistent, framework.ACLs(framework.AuthACL(framework.PermAll)))
			require.NoError(t, err)
			acl, _, err := bob.GetACL(ctx, "/auth")
			require.NoError(t, err)
			assert.ElementsMatch(t, append(mine, framework.DigestACL(framework.PermAll, framework.Digest("beside", "it"))), acl)

			hold, err := locks.NewInterProcessMutex(bob, "/app/lock").Acquire(ctx)
			require.NoError(t, err)
			copied, err := cache.Start(bob, "/app", cache.Bytes)
			require.NoError(t, err)
			defer copied.Close()
			_, err = copied.Ready(ctx)
			require.NoError(t, err)
			led := false
			latch := leader.NewLatch(bob, "/app/leader")
			require.NoError(t, latch.Run(ctx, func(context.Context, *leader.Term) error { led = true; return leader.ErrLeave }))
			assert.True(t, led)

			eve := kit.Connect(t, e, short, as("eve", "other"))
			_, _, err = eve.Children(ctx, "/app/lock")
			require.ErrorIs(t, err, framework.ErrNoAuth)
			require.ErrorContains(t, err, "READ on /app/lock is needed (credentials given: sasl:eve)")
			_, err = locks.NewInterProcessMutex(eve, "/app/lock").Acquire(ctx)
			require.ErrorIs(t, err, framework.ErrNoAuth)

			// The session proves itself again, and goes on with its hold.
			id := bob.SessionID()
			network.CutAll()
			_, _, err = bob.Get(ctx, "/app/lock")
			require.NoError(t, err)
			_, err = bob.Set(ctx, "/app/lock", []byte("x"), framework.AnyVersion)
			require.NoError(t, err)
			assert.Equal(t, id, bob.SessionID())
			assert.NoError(t, hold.Release())
		})
	}
}

// Whoever cannot prove what it is told to has no session.
func TestSASLRefused(t *testing.T) {
	required := map[string]string{"sessionRequireClientSASLAuth": "true"}
	for name, tc := range map[string]struct {
		server realzk.Options
		change func(*framework.Config)
		want   string
	}{
		"wrong password":           {withJAAS(t, realzk.Options{Tick: tick}), as("bob", "hunter2"), "the server refuses it (auth failed)"},
		"unknown user":             {withJAAS(t, realzk.Options{Tick: tick}), as("nobody", "hunter2"), "the server refuses it (auth failed)"},
		"wrong password, required": {withJAAS(t, realzk.Options{Tick: tick, Properties: required}), as("bob", "hunter2"), "the server refuses it (session closed, SASL required)"},
		"nothing, required":        {withJAAS(t, realzk.Options{Tick: tick, Properties: required}), func(*framework.Config) {}, "the server requires SASL of every client"},
		"failures are let in": {withJAAS(t, realzk.Options{Tick: tick, Properties: map[string]string{"allowSaslFailedClients": "true"}}),
			as("bob", "hunter2"), "the server did not accept it: unknown user or wrong password"},
		"a server without SASL": {realzk.Options{Tick: tick}, as("bob", "hunter2"), "the server has no SASL"},
	} {
		t.Run(name, func(t *testing.T) {
			e := realzk.StartT(t, tc.server)
			c, err := framework.Start(kit.Config(e, short, tc.change, func(cfg *framework.Config) { cfg.CloseTimeout = time.Second }))
			require.NoError(t, err)
			defer func() { _ = c.Close() }()
			_, _, err = c.Get(t.Context(), "/")
			require.ErrorIs(t, err, framework.ErrAuthFailed)
			require.ErrorContains(t, err, tc.want)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}
