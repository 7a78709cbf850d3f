package framework_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A client leaves its zone when the server there ends, and comes home when it is back: in
// the same session, and not while it holds a lock.
func TestPreferredServers(t *testing.T) {
	const home, away, further = "zk-a-1:2181", "zk-b-1:2181", "zk-c-1:2181"
	for range 10 { // the order of servers is random
		synctest.Test(t, func(t *testing.T) {
			m := newMoving(zktest.Start(t, zktest.InMemory()), home, away, further)
			c := kit.Connect(t, m.srv, func(cfg *framework.Config) {
				cfg.ConnectString, cfg.DialContext, cfg.Prefer = home+","+away+","+further, m.dial, []string{"ZK-A-*"}
			})
			at := func() string { return c.Stats().Server }
			require.Equal(t, home, at())
			m.move(away, further)
			time.Sleep(5 * time.Minute)
			assert.NotEqual(t, home, at())
			id := c.SessionID()
			hold, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
			require.NoError(t, err)

			m.serve(home, away, further)
			time.Sleep(5 * time.Minute)
			require.NotEqual(t, home, at(), "while the lock is held")
			require.NoError(t, hold.Release())
			states := c.States().Subscribe()
			defer states.Stop()
			require.Equal(t, listeners.Reconnected, <-states.C)
			time.Sleep(time.Minute)
			assert.Equal(t, home, at())
			require.Equal(t, listeners.Suspended, <-states.C)
			require.Equal(t, listeners.Reconnected, <-states.C)
			assert.Equal(t, id, c.SessionID())

			time.Sleep(time.Hour)
			assert.Equal(t, home, at())
			assert.Empty(t, states.C, "there is nothing better to look for")
		})
	}
}

// A Keeper takes no session up again, so nobody leaves it for a preferred one.
func TestPreferredServersOfAKeeper(t *testing.T) {
	const home, away = "zk-a-1:2181", "zk-b-1:2181"
	synctest.Test(t, func(t *testing.T) {
		m := newMoving(zktest.Start(t, zktest.InMemory(), zktest.Keeper("25.12")), away)
		c := kit.Connect(t, m.srv, func(cfg *framework.Config) {
			cfg.ConnectString, cfg.DialContext, cfg.Prefer = home+","+away, m.dial, []string{"zk-a-*"}
		})
		id := c.SessionID()
		m.serve(home, away)
		time.Sleep(time.Hour)
		assert.Equal(t, id, c.SessionID())
		assert.Equal(t, away, c.Stats().Server)
	})
}

// Clients come home to all servers of their zone.
func TestHomesShareTheirClients(t *testing.T) {
	const home, second, away = "zk-a-1:2181", "zk-a-2:2181", "zk-b-1:2181"
	synctest.Test(t, func(t *testing.T) {
		m := newMoving(zktest.Start(t, zktest.InMemory()), away)
		var clients []*framework.Client
		for range 20 {
			clients = append(clients, kit.Connect(t, m.srv, func(cfg *framework.Config) {
				cfg.ConnectString, cfg.DialContext, cfg.Prefer = home+","+second+","+away, m.dial, []string{"zk-a-*"}
			}))
		}
		m.serve(home, second, away)
		time.Sleep(5 * time.Minute)
		at := make(map[string]int)
		for _, c := range clients {
			at[c.Stats().Server]++
		}
		assert.Zero(t, at[away])
		assert.Greater(t, at[home], 1)
		assert.Greater(t, at[second], 1)
	})
}

// besideOneThatAnswers dials the servers of m, and at 10.0.0.1 one that answers srvr alone and
// counts that. If the answer is "silent", it gives none and goes on reading.
func besideOneThatAnswers(m *moving, answer string, asked *atomic.Int32) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr != "10.0.0.1:2181" {
			return m.dial(ctx, network, addr)
		}
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			word := make([]byte, 4)
			if _, err := io.ReadFull(theirs, word); err != nil || string(word) != "srvr" {
				return
			}
			asked.Add(1)
			if answer == "silent" {
				_, _ = io.Copy(io.Discard, theirs)
				return
			}
			_, _ = io.WriteString(theirs, answer)
		}()
		return ours, nil
	}
}

// A preferred server may tell that it serves, and not let the client in. The client goes
// there less and less often.
func TestHomeThatLetsNobodyIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMoving(zktest.Start(t, zktest.InMemory()), "10.0.1.1:2181")
		c := kit.Connect(t, m.srv, func(cfg *framework.Config) {
			cfg.ConnectString, cfg.Prefer = "10.0.0.1:2181,10.0.1.1:2181", []string{"10.0.0.*"}
			cfg.DialContext = besideOneThatAnswers(m, "Zookeeper version: 3.8.0\nMode: follower\n", new(atomic.Int32))
		})
		moves := 0
		c.States().Listen(func(s listeners.State) {
			if s == listeners.Suspended {
				moves++
			}
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Greater(t, moves, 5)
		assert.Less(t, moves, 18)
	})
}

// A preferred server that does not serve is no home.
func TestPreferredServerThatDoesNotServe(t *testing.T) {
	for name, answer := range map[string]string{
		"says so":        "This ZooKeeper instance is not currently serving requests\n",
		"is read-only":   "Zookeeper version: 3.8.0\nMode: read-only\nNode count: 5\n",
		"does not tell":  "srvr is not executed because it is not in the whitelist.\n",
		"ends":           "",
		"answers nobody": "silent",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMoving(zktest.Start(t, zktest.InMemory()), "10.0.1.1:2181")
				var asked atomic.Int32
				c := kit.Connect(t, m.srv, func(cfg *framework.Config) {
					cfg.ConnectString, cfg.Prefer = "10.0.0.1:2181,10.0.1.1:2181", []string{"10.0.0.*"}
					cfg.DialContext = besideOneThatAnswers(m, answer, &asked)
				})
				states := c.States().Subscribe()
				defer states.Stop()
				require.Equal(t, listeners.Connected, <-states.C)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				assert.Greater(t, int(asked.Load()), 10)
				assert.Less(t, int(asked.Load()), 42)
				assert.Empty(t, states.C)
			})
		})
	}
}

func TestPreferIsChecked(t *testing.T) {
	for _, bad := range []string{"[fd00:*]", "[fd00:*]*", "", "zk-[", "a/b", "10.0.1.0/24", "zk-a-1:2181", "zk-a-*:2181", "zk-[ab]:2181", "[::1]", "[::1]:2181", "zk-a-*;zk-b-*", "zk-a-* zk-b-*", "a,b"} {
		_, err := framework.Start(framework.Config{ConnectString: "a", Prefer: []string{"b", bad}})
		require.ErrorContains(t, err, "config: Prefer has ", bad)
	}
	for _, good := range []string{"zk-[ab]-*", "[a-c]*", "::1", "2001:db8:*", "fe80:*", "[2f]001:*", "*"} {
		c, err := framework.Start(framework.Config{ConnectString: "a", Prefer: []string{good}, DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }})
		require.NoError(t, err, good)
		require.NoError(t, c.Close())
	}
}

// Patterns that no server matches are told, once for each connection.
func TestPreferNobody(t *testing.T) {
	for pattern, lines := range map[string]int{"zk-x-*": 1, "127.*": 0, "zk-down": 0} {
		t.Run(pattern, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logged, logs := kit.Logged(zapcore.WarnLevel)
				kit.Connect(t, zktest.Start(t, zktest.InMemory()), logged, func(cfg *framework.Config) {
					cfg.Prefer, cfg.ConnectString = []string{pattern}, cfg.ConnectString+",zk-down:2181"
					cfg.LookupHost = func(_ context.Context, host string) ([]string, error) {
						return nil, &net.DNSError{Name: host, IsNotFound: true}
					}
				})
				time.Sleep(5 * time.Minute)
				assert.Equal(t, lines, logs.FilterMessage("none of the servers matches Config.Prefer").Len())
			})
		})
	}
}
