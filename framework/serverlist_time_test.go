package framework_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// moving is an ensemble whose members go to other addresses. To a client that is the
// replacement of a member by another one.
type moving struct {
	srv *zktest.Server

	mu    sync.Mutex // guards the fields below
	alive []string
	conns map[string][]net.Conn
	dials map[string]int
}

func newMoving(srv *zktest.Server, servers ...string) *moving {
	return &moving{srv: srv, alive: servers, conns: make(map[string][]net.Conn), dials: make(map[string]int)}
}

func (m *moving) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dials[addr]++
	for _, server := range m.alive {
		if server == addr {
			nc, err := m.srv.DialContext(ctx, network, m.srv.ConnectString())
			m.conns[addr] = append(m.conns[addr], nc)
			return nc, err
		}
	}
	return nil, errors.New("refused")
}

// move replaces servers. Connections to those that are gone end as a server ends them.
func (m *moving) move(to ...string) {
	m.serve(to...)
	m.srv.DisconnectAll()
}

// serve says which servers let clients in.
func (m *moving) serve(servers ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alive = servers
}

func (m *moving) servers() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.alive...)
}

// named are the servers by names: zk-1-2 is the one at 10.0.1.2.
func (m *moving) named() map[string]netip.AddrPort {
	all := make(map[string]netip.AddrPort)
	for _, server := range m.servers() {
		addr := netip.MustParseAddrPort(server)
		ip := addr.Addr().As4()
		all[fmt.Sprintf("zk-%d-%d", ip[2], ip[3])] = addr
	}
	return all
}

// All members are replaced one after the other, while a lock is held. The hold is kept to
// the end, unless the client knows the first members alone.
func TestHoldsThroughTheReplacementOfAllServers(t *testing.T) {
	const pause = 30 * time.Second
	// A resolver keeps channels for all that come later, so they must belong to no bubble.
	_, _ = (&net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("nobody is asked")
	}}).LookupHost(t.Context(), "zk")
	steps := [][]string{
		{"10.0.0.2:2181", "10.0.0.3:2181", "10.0.1.1:2181"},
		{"10.0.0.3:2181", "10.0.1.1:2181", "10.0.1.2:2181"},
		{"10.0.1.1:2181", "10.0.1.2:2181", "10.0.1.3:2181"},
	}
	for name, tc := range map[string]struct {
		set   func(t *testing.T, m *moving, cfg *framework.Config) (told func())
		kept  bool
		first string
	}{
		"static list": {kept: false},
		"names": {kept: true, first: "zk:2181", set: func(_ *testing.T, m *moving, cfg *framework.Config) func() {
			cfg.LookupHost = func(context.Context, string) ([]string, error) {
				var hosts []string
				for _, server := range m.servers() {
					hosts = append(hosts, strings.TrimSuffix(server, ":2181"))
				}
				return hosts, nil
			}
			return func() {}
		}},
		"list of a function": {kept: true, set: func(_ *testing.T, m *moving, cfg *framework.Config) func() {
			cfg.ServerList = func(context.Context) ([]string, error) { return m.servers(), nil }
			return func() {}
		}},
		"file": {kept: true, set: func(t *testing.T, m *moving, cfg *framework.Config) func() {
			file := filepath.Join(t.TempDir(), "servers")
			write := func() {
				require.NoError(t, os.WriteFile(file+".new", []byte(strings.Join(m.servers(), "\n")+"\n"), 0o600))
				require.NoError(t, os.Rename(file+".new", file))
			}
			write()
			cfg.ServerList = framework.ServersInFile(file)
			return write
		}},
		"SRV records": {kept: true, set: func(_ *testing.T, m *moving, cfg *framework.Config) func() {
			dns := kit.Resolver(m.named)
			cfg.LookupHost = dns.LookupHost
			before := net.DefaultResolver
			net.DefaultResolver = dns
			cfg.ServerList = framework.ServersBySRV("_client._tcp.zk.")
			net.DefaultResolver = before
			return func() {}
		}},
		"the ensemble's configuration": {kept: true, set: func(t *testing.T, m *moving, cfg *framework.Config) func() {
			cfg.FollowEnsemble = true
			super := kit.Connect(t, m.srv, func(cfg *framework.Config) { cfg.Auth = []framework.Auth{framework.DigestAuth("super", "secret")} })
			write := func() {
				var lines []string
				for i, server := range m.servers() {
					lines = append(lines, fmt.Sprintf("server.%d=%s:2888:3888:participant;0.0.0.0:2181", i, strings.TrimSuffix(server, ":2181")))
				}
				require.NoError(t, super.Sync(t.Context(), "/")) // until it is connected again
				_, err := super.Set(t.Context(), "/zookeeper/config", []byte(strings.Join(lines, "\n")), framework.AnyVersion)
				require.NoError(t, err)
			}
			write()
			return write
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Superuser(framework.Digest("super", "secret")))
				m := newMoving(srv, "10.0.0.1:2181", "10.0.0.2:2181", "10.0.0.3:2181")
				told := func() {}
				c := kit.Connect(t, m.srv, func(cfg *framework.Config) {
					cfg.ConnectString, cfg.DialContext = "10.0.0.1:2181,10.0.0.2:2181,10.0.0.3:2181", m.dial
					if tc.first != "" {
						cfg.ConnectString = tc.first
					}
					if tc.set != nil {
						told = tc.set(t, m, cfg)
					}
				})
				hold, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				require.NoError(t, err)
				for _, step := range steps {
					time.Sleep(pause)
					m.move(step...)
					told()
				}
				time.Sleep(pause)
				assert.Equal(t, tc.kept, hold.Err() == nil, "%v", hold.Err())
				if !tc.kept {
					m.move("10.0.0.1:2181") // for Close
					return
				}
				require.NoError(t, hold.Release())
			})
		})
	}
}

// A list that changes during an outage is tried within a second, though pauses between
// rounds of servers are longer by then.
func TestListThatChangesDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMoving(zktest.Start(t, zktest.InMemory()), "10.0.0.1:2181")
		var mu sync.Mutex
		list, err, port := []string{"10.0.0.1:2181"}, error(nil), 40000
		tell := func(servers []string, e error) {
			mu.Lock()
			defer mu.Unlock()
			list, err = servers, e
		}
		c := kit.Connect(t, m.srv, func(cfg *framework.Config) {
			cfg.ConnectString, cfg.DialContext, cfg.SessionTimeout = "10.0.0.1:2181", m.dial, 40*time.Second
			cfg.ServerList = func(context.Context) ([]string, error) {
				mu.Lock()
				defer mu.Unlock()
				if port++; err != nil {
					return nil, fmt.Errorf("%w: read udp 10.0.0.9:%d: i/o timeout", err, port)
				}
				return list, nil
			}
		})
		var reports []string
		c.Errors().Listen(func(err error) {
			mu.Lock()
			defer mu.Unlock()
			text, _, _ := strings.Cut(err.Error(), ": read udp")
			reports = append(reports, text)
		})
		m.move("10.0.1.1") // nowhere
		time.Sleep(10 * time.Second)
		tell(nil, errors.New("no such name"))
		time.Sleep(10 * time.Second)
		require.False(t, c.State().IsConnected())
		m.move("10.0.1.1:2181")
		tell([]string{"10.0.1.1"}, nil)
		time.Sleep(1100 * time.Millisecond)
		assert.True(t, c.State().IsConnected())
		assert.Equal(t, []string{"10.0.1.1:2181"}, c.Servers())
		tell([]string{"a:b"}, nil)
		time.Sleep(30 * time.Second)
		assert.True(t, c.State().IsConnected())
		good := []string{" 10.0.0.2:2181", "", "10.0.0.2", "10.0.0.1"}
		for _, list := range [][]string{good, {""}, good, {"user:secret@10.0.0.1"}, good} { // "" as strings.Split makes it of nothing
			tell(list, nil)
			time.Sleep(20 * time.Second)
		}
		assert.ElementsMatch(t, []string{"10.0.0.1:2181", "10.0.0.2:2181"}, c.Servers())
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, []string{
			"list servers of 10.0.0.1:2181: no such name",
			`list servers of 10.0.0.1:2181: server "a:b": port "b" is not a number from 1 to 65535`,
			"list servers of 10.0.0.1:2181: the list is empty",
			"list servers of 10.0.0.1:2181: has an @ among its servers: credentials belong in Auth",
		}, reports, "each once, though texts differ")
	})
}

// A function that does not see the end of its context holds up Close, but not the end of the
// session and its nodes.
func TestCloseDuringAListThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		other, slow, asked := kit.Connect(t, srv), make(chan struct{}), make(chan context.Context, 1)
		c := kit.Connect(t, srv, func(cfg *framework.Config) {
			cfg.ServerList = func(ctx context.Context) ([]string, error) {
				asked <- ctx
				<-slow
				return []string{"10.0.0.2"}, nil
			}
		})
		states := c.States().Subscribe()
		_, err := c.Create(t.Context(), "/a", nil, framework.Ephemeral)
		require.NoError(t, err)
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		synctest.Wait()
		require.ErrorIs(t, context.Cause(<-asked), framework.ErrClosed)
		there, _, err := other.Exists(t.Context(), "/a")
		require.NoError(t, err)
		assert.False(t, there)
		require.Empty(t, closed, "it waits for the function")
		assert.Equal(t, listeners.Lost, c.State())
		assert.Zero(t, c.SessionID())
		for range states.C { // its end tells of the state
		}
		close(slow)
		require.NoError(t, <-closed)
	})
}
