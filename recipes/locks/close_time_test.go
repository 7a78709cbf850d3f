package locks_test

import (
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

// A release that is on its way when the client is closed still hears of its
// success.
func TestReleaseWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		released := make(chan error, 1)
		go func() { released <- h.Release() }()
		time.Sleep(d)
		require.NoError(t, c.Close())
		assert.NoError(t, <-released)
	})
}

// closings are the states in which a client that holds a lock can be closed.
var closings = map[string]struct {
	put    func(t *testing.T, srv *zktest.Server, c *framework.Client) // brings it there
	change func(cfg *framework.Config)
	fails  bool          // the servers cannot be told
	within time.Duration // for how long Close takes at most
}{
	"connected": {put: func(*testing.T, *zktest.Server, *framework.Client) {}},
	"suspended, and the server comes back": {put: func(_ *testing.T, srv *zktest.Server, _ *framework.Client) {
		unreachable(srv)
		time.AfterFunc(2*time.Second, srv.Accept)
	}, within: 4 * time.Second},
	"suspended": {put: func(_ *testing.T, srv *zktest.Server, _ *framework.Client) { unreachable(srv) }, fails: true, within: 5 * time.Second},
	"lost, and the server is back": {put: func(_ *testing.T, srv *zktest.Server, c *framework.Client) {
		unreachable(srv)
		time.Sleep(10*time.Second + 1) // LostAfter
		srv.Accept()
	}, within: 2 * time.Second},
	"lost, and the server comes back": {put: func(_ *testing.T, srv *zktest.Server, c *framework.Client) {
		unreachable(srv)
		time.Sleep(11 * time.Second)
		time.AfterFunc(2*time.Second, srv.Accept)
	}, within: 4 * time.Second},
	"lost": {put: func(_ *testing.T, srv *zktest.Server, _ *framework.Client) {
		unreachable(srv)
		time.Sleep(11 * time.Second)
	}, fails: true, within: 5 * time.Second},
	"lost, and the server says nothing": {put: func(_ *testing.T, srv *zktest.Server, _ *framework.Client) {
		unreachable(srv)
		time.Sleep(11 * time.Second)
		srv.Freeze()
		srv.Accept()
	}, fails: true, within: 7 * time.Second},
	"lost, and in the next session": {put: func(t *testing.T, srv *zktest.Server, c *framework.Client) {
		unreachable(srv)
		time.Sleep(11 * time.Second)
		srv.Accept()
		require.NoError(t, c.BlockUntilConnected(t.Context()))
	}},
	"expired": {put: func(t *testing.T, srv *zktest.Server, c *framework.Client) {
		require.NoError(t, srv.ExpireSession(c.SessionID()))
		time.Sleep(time.Millisecond)
		for c.SessionID() != 0 {
			time.Sleep(time.Millisecond)
		}
	}, within: time.Second},
	"expired, and in the next session": {put: func(t *testing.T, srv *zktest.Server, c *framework.Client) {
		require.NoError(t, srv.ExpireSession(c.SessionID()))
		time.Sleep(time.Second)
		require.NoError(t, c.BlockUntilConnected(t.Context()))
	}},
	"credentials refused from now on": {put: func(t *testing.T, srv *zktest.Server, c *framework.Client) {
		srv.On(zktest.Match{Op: "auth"}, zktest.Fail(-115))
		require.NoError(t, srv.Disconnect(c.SessionID()))
		time.Sleep(time.Second)
	}, change: func(cfg *framework.Config) { cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("a:b")}} }, within: 2 * time.Second},
}

// unreachable makes a server accept nobody, and ends the connections that it has.
func unreachable(srv *zktest.Server) {
	srv.Refuse()
	srv.DisconnectAll()
}

// Close returns nil if the session is known to be over, and only then is the node of
// a hold said to be gone.
func TestCloseInEveryState(t *testing.T) {
	for name, tc := range closings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				c := kit.Connect(t, srv, func(cfg *framework.Config) {
					cfg.SessionTimeout, cfg.LostAfter, cfg.CloseTimeout = 30*time.Second, 10*time.Second, 5*time.Second
					if tc.change != nil {
						tc.change(cfg)
					}
				})
				id := c.SessionID()
				h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				require.NoError(t, err)
				all := shown(t, h)
				tc.put(t, srv, c)
				endedWhenGiven(t, srv, id, all)
				closedAs(t, c, tc.fails, tc.within)
				assertEnded(t, all, "closed")
				if !tc.fails {
					assert.Empty(t, srv.Sessions())
				}
				assert.Error(t, h.Release())
			})
		})
	}
}

// closedAs closes a client several times at once, and again.
func closedAs(t *testing.T, c *framework.Client, fails bool, within time.Duration) {
	t.Helper()
	began := time.Now()
	results := make(chan error, 3)
	for range cap(results) {
		go func() { results <- c.Close() }()
	}
	err := <-results
	assert.LessOrEqual(t, time.Since(began), within+time.Second)
	for range cap(results) - 1 {
		assert.Equal(t, err, <-results)
	}
	assert.Equal(t, err, c.Close())
	if !fails {
		assert.NoError(t, err)
		return
	}
	assert.ErrorContains(t, err, "session not closed")
	assert.ErrorContains(t, err, "for up to a session timeout")
}

// A client that has not got as far as to hold anything leaves no session either.
func TestCloseOfAClientThatIsNotConnected(t *testing.T) {
	for name, tc := range map[string]struct {
		srv    func(t *testing.T) *zktest.Server
		change func(cfg *framework.Config)
		waits  listeners.State // for this one before
	}{
		"nobody there": {srv: func(t *testing.T) *zktest.Server {
			srv := zktest.Start(t, zktest.InMemory())
			srv.Refuse()
			return srv
		}},
		"says nothing": {srv: func(t *testing.T) *zktest.Server {
			srv := zktest.Start(t, zktest.InMemory())
			srv.Freeze()
			return srv
		}},
		"credentials refused": {srv: func(t *testing.T) *zktest.Server { return zktest.Start(t, zktest.InMemory()) },
			change: func(cfg *framework.Config) { cfg.Auth = []framework.Auth{{Scheme: "nobody-knows", Data: []byte("x")}} }},
		"read-only": {srv: func(t *testing.T) *zktest.Server {
			cl := zktest.StartCluster(t, 3, zktest.InMemory(), zktest.ReadOnlyMode())
			require.NoError(t, cl.Member(0).Stop())
			require.NoError(t, cl.Member(1).Stop())
			time.Sleep(time.Minute)
			return cl.Member(2)
		}, change: func(cfg *framework.Config) { cfg.CanBeReadOnly = true }, waits: listeners.ReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := tc.srv(t)
				cfg := framework.Config{ConnectString: srv.ConnectString(), DialContext: srv.DialContext, SessionTimeout: 30 * time.Second}
				if tc.change != nil {
					tc.change(&cfg)
				}
				c, err := framework.Start(cfg)
				require.NoError(t, err)
				time.Sleep(3 * time.Second)
				if tc.waits != 0 {
					require.Equal(t, tc.waits, c.State())
				}
				closedAs(t, c, false, 2*time.Second)
				if name != "says nothing" { // it may begin a session when it goes on, for nobody
					assert.Empty(t, srv.Sessions())
				}
			})
		})
	}
}
