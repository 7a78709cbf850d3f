//go:build realzk

package robustness

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
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

// withUsers are servers that know users of DIGEST-MD5.
func withUsers(opts realzk.Options) realzk.Options {
	opts.JAAS = realzk.DigestUsers(map[string]string{"bob": bobs, "eve": "other"})
	return opts
}

// required has servers let in nobody else.
var required = map[string]string{"sessionRequireClientSASLAuth": "true"}

func as(user, password string) func(*framework.Config) {
	return func(cfg *framework.Config) { cfg.SASL = sasl.DigestMD5(user, password) }
}

// over has a client speak TLS if the servers do.
func over(e *realzk.Ensemble) func(*framework.Config) {
	return func(cfg *framework.Config) { cfg.TLS = e.TLS() }
}

const bobs = `pa,ss "word" ü`

// A lock, a copy and an election of a user of DIGEST-MD5, whose nodes are for nobody else.
func TestSASL(t *testing.T) {
	for name, opts := range map[string]realzk.Options{
		"one server": {Tick: tick},
		"three servers that require it, over TLS": {Servers: 3, Tick: tick, MaxSessionTimeout: time.Minute, Properties: required, TLS: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := realzk.StartT(t, withUsers(opts))
			mine := []framework.ACL{framework.SASLACL(framework.PermAll, "bob")}
			network := faultnet.New(nil)
			network.Secure(e.TLS(), nil)
			defer network.Close()
			bob := kit.Connect(t, e, as("bob", bobs), over(e), func(cfg *framework.Config) {
				cfg.DialContext = network.DialContext
				cfg.ACL = func(string) []framework.ACL { return mine }
				cfg.Auth = []framework.Auth{framework.DigestAuth("beside", "it")}
			})
			ctx := t.Context()
			_, err := bob.Create(ctx, "/auth", nil, framework.Persistent, framework.ACLs(framework.AuthACL(framework.PermAll)))
			require.NoError(t, err)
			acl, _, err := bob.GetACL(ctx, "/auth")
			require.NoError(t, err)
			all := append(mine, framework.DigestACL(framework.PermAll, framework.Digest("beside", "it")))
			if opts.TLS {
				all = append(all, framework.X509ACL(framework.PermAll, "CN=paddock"))
			}
			assert.ElementsMatch(t, all, acl)

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

			eve := kit.Connect(t, e, short, as("eve", "other"), over(e))
			_, _, err = eve.Children(ctx, "/app/lock")
			require.ErrorIs(t, err, framework.ErrNoAuth)
			shown := ""
			if opts.TLS {
				shown = "x509:CN=paddock, "
			}
			require.ErrorContains(t, err, "READ on /app/lock is needed (credentials given: "+shown+"sasl:eve)")
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
			_, err = e.MemberOf(ctx, id)
			require.NoError(t, err)
			assert.NoError(t, hold.Release())
		})
	}
}

// The members of three that require TLS and SASL end and come back one after another, the
// leader first. A hold and a term of an election live on.
func TestSecureMembersRestarted(t *testing.T) {
	e := realzk.StartT(t, withUsers(realzk.Options{Servers: 3, Tick: time.Second, Properties: required, TLS: true}))
	ctx := t.Context()
	// Half of it has to outlast an election and some handshakes: more than 4 s on a busy machine.
	lives := kit.Within(20*time.Second, 0)
	c := kit.Connect(t, e, as("bob", bobs), over(e), lives)
	_, err := c.Create(ctx, "/data", nil, framework.Persistent)
	require.NoError(t, err)
	hold, err := locks.NewInterProcessMutex(c, "/lock").Acquire(ctx)
	require.NoError(t, err)
	terms, leave := make(chan *leader.Term, 10), make(chan struct{})
	elected := make(chan error, 1)
	go func() {
		elected <- leader.NewLatch(c, "/leader").Run(ctx, func(ctx context.Context, term *leader.Term) error {
			terms <- term
			select {
			case <-leave:
				return leader.ErrLeave
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	<-terms
	waiter := kit.Connect(t, e, as("bob", bobs), over(e), lives)
	next := kit.Acquire(t, locks.NewInterProcessMutex(waiter, "/lock"))
	id, other := c.SessionID(), waiter.SessionID()

	first, err := e.Leader(ctx)
	require.NoError(t, err)
	for i := range 3 {
		member := (first + i) % 3
		require.NoError(t, e.Kill(member))
		ended := time.Now()
		// A transaction whose outcome is unknown tells nothing, and is made again.
		kit.Eventually(t, "a write under the hold", func() error {
			tx := hold.Transaction()
			tx.Set("/data", nil, framework.AnyVersion)
			_, err := tx.Commit(ctx)
			return err
		})
		t.Logf("written %v after the end of member %d", time.Since(ended).Round(time.Millisecond), member)
		require.NoError(t, e.Restart(ctx, member))
		require.NoError(t, e.AwaitServing(ctx))
	}
	require.NoError(t, hold.Err())
	assert.Equal(t, id, c.SessionID())
	assert.Equal(t, other, waiter.SessionID())
	assert.Empty(t, terms, "one term")
	assert.True(t, next.Pending())
	close(leave)
	require.NoError(t, <-elected)
	require.NoError(t, hold.Release())
	require.NoError(t, next.Soon().Release())
}

// All members that clients know leave an ensemble that requires TLS and SASL, and end. Each
// client learns of the others in its own way, and its hold lives on. One that learns of nobody
// loses it.
func TestSecureMembersReplaced(t *testing.T) {
	opts := withUsers(realzk.Options{Servers: 5, Tick: tick, Properties: required, TLS: true, Reconfig: true, SuperPassword: "secret"})
	e := realzk.StartT(t, opts)
	ctx := t.Context()
	var gone atomic.Int32 // members, the first ones
	servers := func() []string { return e.Addrs()[gone.Load():] }
	named := func() map[string]netip.AddrPort {
		all := make(map[string]netip.AddrPort)
		for i, addr := range servers() {
			all[fmt.Sprint("zk", int(gone.Load())+i)] = netip.MustParseAddrPort(addr)
		}
		return all
	}
	file := filepath.Join(t.TempDir(), "servers")
	write := func() {
		require.NoError(t, os.WriteFile(file+".new", []byte(strings.Join(servers(), "\n")), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	write()
	dns := kit.Resolver(named)
	before := net.DefaultResolver
	net.DefaultResolver = dns
	records := framework.ServersBySRV("_client._tcp.zk.")
	net.DefaultResolver = before

	holders := make(map[string]*framework.Client)
	holds := make(map[string]*locks.Hold)
	for way, change := range map[string]func(*framework.Config){
		"the ensemble's configuration": func(cfg *framework.Config) { cfg.FollowEnsemble = true },
		"a file":                       func(cfg *framework.Config) { cfg.ServerList = framework.ServersInFile(file) },
		"SRV records":                  func(cfg *framework.Config) { cfg.ServerList, cfg.LookupHost = records, dns.LookupHost },
		"a name": func(cfg *framework.Config) { // with one port, and addresses by which nobody can dial here
			cfg.ConnectString = "zk:2181"
			cfg.LookupHost = func(context.Context, string) (all []string, _ error) {
				for i := int(gone.Load()); i < e.Size(); i++ {
					all = append(all, fmt.Sprint("10.0.0.", i))
				}
				return all, nil
			}
			cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				var i int
				if _, err := fmt.Sscanf(addr, "10.0.0.%d:", &i); err != nil {
					return nil, err
				}
				return new(net.Dialer).DialContext(ctx, network, e.Addr(i))
			}
		},
		"nothing": func(cfg *framework.Config) { cfg.CloseTimeout = time.Second },
	} {
		c := kit.Connect(t, e, as("bob", bobs), over(e), kit.Within(8*time.Second, 0), func(cfg *framework.Config) {
			cfg.ConnectString = strings.Join(e.Addrs()[:3], ",")
		}, change)
		hold, err := locks.NewInterProcessMutex(c, "/lock/"+way).Acquire(ctx)
		require.NoError(t, err)
		holders[way], holds[way] = c, hold
	}
	operator := kit.Connect(t, e, as("bob", bobs), over(e), func(cfg *framework.Config) {
		cfg.ConnectString = strings.Join(e.Addrs()[3:], ",")
		cfg.Auth = []framework.Auth{framework.DigestAuth("super", "secret")}
	})
	for member := range 3 {
		kit.Eventually(t, "it leaves", func() error {
			_, err := operator.Conn().IncrementalReconfig(nil, []string{strconv.Itoa(member + 1)}, -1)
			return err
		})
		gone.Add(1)
		write()
		kit.Until(t, "the client knows", func() bool { return len(holders["the ensemble's configuration"].Servers()) == 4-member })
		require.NoError(t, e.Kill(member))
		for way, c := range holders {
			if way != "nothing" || member < 2 {
				require.NoError(t, c.Sync(ctx, "/"), way)
			}
		}
	}
	for way, hold := range holds {
		if way == "nothing" {
			<-hold.Context().Done()
			assert.ErrorIs(t, hold.Release(), locks.ErrLockLost)
			continue
		}
		assert.NoError(t, hold.Release(), way)
	}
}

// Whoever cannot prove what it is told to has no session.
func TestSASLRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		server realzk.Options
		change func(*framework.Config)
		want   string
	}{
		"wrong password":           {withUsers(realzk.Options{Tick: tick}), as("bob", "hunter2"), "the server refuses it (auth failed)"},
		"unknown user":             {withUsers(realzk.Options{Tick: tick}), as("nobody", "hunter2"), "the server refuses it (auth failed)"},
		"wrong password, required": {withUsers(realzk.Options{Tick: tick, Properties: required}), as("bob", "hunter2"), "the server refuses it (session closed, SASL required)"},
		"nothing, required":        {withUsers(realzk.Options{Tick: tick, Properties: required}), func(*framework.Config) {}, "the server requires SASL of every client"},
		"failures are let in": {withUsers(realzk.Options{Tick: tick, Properties: map[string]string{"allowSaslFailedClients": "true"}}),
			as("bob", "hunter2"), "the server did not accept it: unknown user or wrong password"},
		"a server without SASL": {realzk.Options{Tick: tick}, as("bob", "hunter2"), "the server has no SASL"},
	} {
		t.Run(name, func(t *testing.T) {
			e := realzk.StartT(t, tc.server)
			c, err := framework.Start(kit.Config(e, short, tc.change, func(cfg *framework.Config) { cfg.CloseTimeout = time.Second }))
			require.NoError(t, err)
			_, _, err = c.Get(t.Context(), "/")
			assert.ErrorIs(t, err, framework.ErrAuthFailed)
			assert.ErrorContains(t, err, tc.want)
			assert.NotContains(t, err.Error(), "hunter2")
			require.NoError(t, c.Close())
		})
	}
}
