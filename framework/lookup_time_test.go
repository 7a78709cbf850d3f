package framework_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// oneName gives all servers of a configuration, which are in memory, one name
// with an address for each.
func oneName(cfg *framework.Config) {
	servers := make(map[string]string)
	var hosts []string
	for i, server := range strings.Split(cfg.ConnectString, ",") {
		host := fmt.Sprintf("10.0.0.%d", i+1)
		hosts = append(hosts, host)
		servers[host+":2181"] = server
	}
	dial := cfg.DialContext
	cfg.ConnectString = "zk.test:2181"
	cfg.LookupHost = func(context.Context, string) ([]string, error) { return hosts, nil }
	cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return dial(ctx, network, servers[addr])
	}
}

func TestEnsembleBehindOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := zktest.StartCluster(t, 3, zktest.InMemory())
		cfg := framework.Config{
			ConnectString: cl.ConnectString(), DialContext: cl.DialContext, SessionTimeout: 10 * time.Second, ConnectTimeout: 2 * time.Second,
		}
		oneName(&cfg)
		c := kit.Dial(t, cfg)
		assert.Equal(t, []string{cfg.ConnectString}, c.Servers())
		next := states(t, c)
		next(listeners.Connected)
		id, frozen := c.SessionID(), 0
		for range 9 {
			time.Sleep(time.Minute)
			began := time.Now()
			require.NoError(t, cl.Disconnect(id))
			next(listeners.Suspended, listeners.Reconnected)
			assert.LessOrEqual(t, time.Since(began), 10*time.Second/15, "another member")

			time.Sleep(time.Minute)
			if cl.MemberOf(id) == cl.Leader() {
				continue // the others could not go on without it
			}
			m := cl.Member(cl.MemberOf(id))
			m.Freeze()
			began = time.Now()
			next(listeners.Suspended, listeners.Reconnected)
			// Two thirds of the session timeout of silence, then another member at once.
			assert.LessOrEqual(t, time.Since(began), 7*time.Second)
			assert.Equal(t, id, c.SessionID())
			m.Thaw()
			frozen++
		}
		assert.NotZero(t, frozen)
	})
}

// TLS verifies the name, whatever its addresses are, and passes over an address
// whose server cannot show that it has it.
func TestTLSVerifiesTheNameAtEachAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		start := func(name string) *zktest.Server {
			return zktest.Start(t, zktest.InMemory(), zktest.TLS(serving(ca.issue(name, time.Hour))))
		}
		good, wrong, address := start("zk.test"), start("other.test"), start("10.0.0.3")
		servers := map[string]*zktest.Server{"10.0.0.1:2281": wrong, "10.0.0.2:2281": good, "10.0.0.3:2281": address}
		cfg := named(ca.Pool(), servers)
		cfg.ConnectString = "zk.test:2281"
		cfg.LookupHost = func(context.Context, string) ([]string, error) {
			return []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, nil
		}
		c := kit.Dial(t, cfg)
		next := states(t, c)
		next(listeners.Connected)
		for range 10 {
			require.NoError(t, good.Disconnect(c.SessionID()))
			next(listeners.Suspended, listeners.Reconnected)
		}
		require.NoError(t, c.Close())

		delete(servers, "10.0.0.2:2281")
		cfg.Retry = retry.None()
		c, err := framework.Start(cfg)
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		_, _, err = c.Get(t.Context(), "/")
		var host x509.HostnameError
		require.True(t, errors.As(err, &host) || strings.Contains(err.Error(), "no such host"), "%v", err)
		assert.ErrorContains(t, err, "zk.test:2281 (10.0.0.")
	})
}

// With TLS an address is tried under each of its names, as the certificate may be
// for one of them only.
func TestTLSOneAddressUnderTwoNames(t *testing.T) {
	for range 4 {
		synctest.Test(t, func(t *testing.T) {
			ca := newAuthority(t)
			srv := zktest.Start(t, zktest.InMemory(), zktest.TLS(serving(ca.issue("zk.test", time.Hour))))
			cfg := named(ca.Pool(), map[string]*zktest.Server{"10.0.0.1:2281": srv})
			cfg.ConnectString = "zk.test:2281,alias.test:2281"
			cfg.LookupHost = func(context.Context, string) ([]string, error) { return []string{"10.0.0.1"}, nil }
			began := time.Now()
			require.NoError(t, kit.Dial(t, cfg).Sync(t.Context(), "/"))
			assert.Zero(t, time.Since(began), "in the first cycle")
		})
	}
}
