package framework_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/sasl"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

var users = zktest.SASLUsers(map[string]string{"bob": "secret", "eve": "other", `J"ü,r`: "pä\\ss"})

// as is the change of a configuration that proves a user.
func as(user, password string) func(*framework.Config) {
	return func(cfg *framework.Config) { cfg.SASL = sasl.DigestMD5(user, password) }
}

func TestSASL(t *testing.T) {
	for name, opts := range map[string][]zktest.Option{"optional": nil, "required": {zktest.RequireSASL()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, append(opts, zktest.InMemory(), users, zktest.Transcript())...)
				bob := kit.Connect(t, srv, as("bob", "secret"), func(cfg *framework.Config) {
					cfg.Auth = []framework.Auth{framework.DigestAuth("beside", "it")}
				})
				_, err := bob.Create(t.Context(), "/mine", nil, framework.Persistent, framework.ACLs(framework.SASLACL(framework.PermAll, "bob")))
				require.NoError(t, err)
				_, err = bob.Create(t.Context(), "/auth", nil, framework.Persistent, framework.ACLs(framework.AuthACL(framework.PermAll)))
				require.NoError(t, err)
				acl, _, err := bob.GetACL(t.Context(), "/auth")
				require.NoError(t, err)
				assert.ElementsMatch(t, []framework.ACL{
					framework.SASLACL(framework.PermAll, "bob"), framework.DigestACL(framework.PermAll, framework.Digest("beside", "it")),
				}, acl)
				var said strings.Builder
				require.NoError(t, srv.WriteTranscript(&said))
				var asked []string
				for line := range strings.Lines(said.String()) {
					if _, op, ok := strings.Cut(line, "> "); ok {
						asked = append(asked, strings.Fields(op)[0])
					}
				}
				assert.Equal(t, "connect sasl sasl auth", strings.Join(asked[:4], " "), "before anything of ours")

				eve := kit.Connect(t, srv, as("eve", "other"))
				_, _, err = eve.Get(t.Context(), "/mine")
				require.ErrorIs(t, err, framework.ErrNoAuth)
				require.EqualError(t, err, "get /mine: zk: not authenticated: READ on /mine is needed (credentials given: sasl:eve)")
				odd := kit.Connect(t, srv, as(`J"ü,r`, "pä\\ss"))
				_, err = odd.Create(t.Context(), "/odd", nil, framework.Persistent, framework.ACLs(framework.SASLACL(framework.PermAll, `J"ü,r`)))
				require.NoError(t, err)
				_, _, err = odd.Get(t.Context(), "/odd")
				require.NoError(t, err)

				id := bob.SessionID()
				require.NoError(t, srv.Disconnect(id))
				_, _, err = bob.Get(t.Context(), "/mine")
				require.NoError(t, err, "proven again")
				assert.Equal(t, id, bob.SessionID())
				require.NoError(t, srv.ExpireSession(id))
				_, _, err = bob.Get(t.Context(), "/mine")
				require.NoError(t, err, "and in a new session")
				for _, c := range []*framework.Client{bob, eve, odd} {
					require.NoError(t, c.Close())
				}
				assert.Empty(t, srv.Sessions())
			})
		})
	}
}

// With TLS, a certificate and a chroot, the session has all identities at once.
func TestSASLBesideTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		demanding := serving(ca.issue("zk.test", time.Hour))
		demanding.ClientAuth, demanding.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool()
		srv := zktest.Start(t, zktest.InMemory(), users, zktest.RequireSASL(), zktest.TLS(demanding))
		cfg := named(ca.Pool(), map[string]*zktest.Server{"zk.test:2281": srv})
		cfg.TLS.Certificates = append(cfg.TLS.Certificates, ca.issue("orders.test", time.Hour))
		cfg.SASL = sasl.DigestMD5("bob", "secret")
		c := kit.Dial(t, cfg)
		_, err := c.Create(t.Context(), "/app", nil, framework.Persistent)
		require.NoError(t, err)
		cfg.ConnectString += "/app"
		c = kit.Dial(t, cfg)
		_, err = c.Create(t.Context(), "/a", nil, framework.Persistent, framework.ACLs(framework.AuthACL(framework.PermAll)))
		require.NoError(t, err)
		acl, _, err := c.GetACL(t.Context(), "/a")
		require.NoError(t, err)
		require.Len(t, acl, 2)
		assert.Contains(t, acl, framework.SASLACL(framework.PermAll, "bob"))
		assert.Contains(t, acl, framework.X509ACL(framework.PermAll, `CN=orders.test,O=Example\, Inc.`))
		cfg.SASL = sasl.DigestMD5("eve", "other")
		_, _, err = kit.Dial(t, cfg).Get(t.Context(), "/a")
		require.NoError(t, err, "the certificate alone has the rights as well")
		cfg.TLS.Certificates[0] = ca.issue("others.test", time.Hour)
		_, _, err = kit.Dial(t, cfg).Get(t.Context(), "/a")
		require.ErrorIs(t, err, framework.ErrNoAuth)
	})
}

// mechanism is one of a test's own.
type mechanism struct {
	begin func(ctx context.Context, server sasl.Server) (sasl.Exchange, error)
	step  func(challenge []byte) ([]byte, bool, error)
}

func (*mechanism) Name() string { return "TEST" }
func (*mechanism) User() string { return "" }

func (m *mechanism) Begin(ctx context.Context, server sasl.Server) (sasl.Exchange, error) {
	if m.begin != nil {
		return m.begin(ctx, server)
	}
	return m, nil
}

func (m *mechanism) Step(challenge []byte) ([]byte, bool, error) { return m.step(challenge) }

// A failed proof is an error of each call at once, and never a session without the identity.
func TestSASLRefused(t *testing.T) {
	required := []zktest.Option{users, zktest.RequireSASL()}
	for name, tc := range map[string]struct {
		server    []zktest.Option
		mechanism sasl.Mechanism
		want      string
	}{
		"wrong password":           {[]zktest.Option{users}, sasl.DigestMD5("bob", "hunter2"), `DIGEST-MD5 as "bob": the server refuses it (auth failed): unknown user, wrong password`},
		"wrong password, required": {required, sasl.DigestMD5("bob", "hunter2"), `DIGEST-MD5 as "bob": the server refuses it (session closed, SASL required)`},
		"unknown user":             {[]zktest.Option{users}, sasl.DigestMD5("nobody", "hunter2"), `DIGEST-MD5 as "nobody": the server refuses it (auth failed)`},
		"a server without SASL":    {nil, sasl.DigestMD5("bob", "hunter2"), `the server has no SASL: it needs authProvider.sasl`},
		"no user":                  {[]zktest.Option{users}, sasl.DigestMD5("", "hunter2"), "credentials refused: DIGEST-MD5: the user is empty"},
		"nothing, required":        {required, nil, "the server requires SASL of every client: set Config.SASL"},
		"no ticket": {required, &mechanism{begin: func(context.Context, sasl.Server) (sasl.Exchange, error) {
			return nil, fmt.Errorf("no ticket: %w", framework.ErrNoNode)
		}}, "no ticket: zk: node does not exist"},
		"no keytab": {required, &mechanism{begin: func(context.Context, sasl.Server) (sasl.Exchange, error) {
			_, err := os.ReadFile("/none/keytab")
			return nil, err
		}}, "open /none/keytab: no such file"},
		"no exchange": {required, &mechanism{begin: func(context.Context, sasl.Server) (sasl.Exchange, error) {
			return nil, nil
		}}, "neither an exchange nor an error"},
		"a step that fails":    {required, &mechanism{step: func([]byte) ([]byte, bool, error) { return nil, false, errors.New("no key") }}, "no key"},
		"a step that is none":  {required, &mechanism{step: func([]byte) ([]byte, bool, error) { return nil, false, nil }}, "step 1 has no answer, and is not the last"},
		"another mechanism":    {required, &mechanism{step: func([]byte) ([]byte, bool, error) { return []byte("hunter2"), false, nil }}, "the server refuses it"},
		"a first step is all":  {nil, &mechanism{step: func([]byte) ([]byte, bool, error) { return []byte{}, true, nil }}, "the server has no SASL"},
		"a proof that is none": {required, &mechanism{step: func([]byte) ([]byte, bool, error) { return nil, true, nil }}, "the server requires SASL of every client"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logged, logs := kit.Logged(zapcore.DebugLevel)
				srv := zktest.Start(t, append(tc.server, zktest.InMemory())...)
				c, err := framework.Start(kit.Config(srv, logged, func(cfg *framework.Config) {
					cfg.SASL, cfg.CloseTimeout = tc.mechanism, time.Second
				}))
				require.NoError(t, err)
				told := c.Errors().Subscribe()
				defer told.Stop()
				began := time.Now()
				_, _, err = c.Get(t.Context(), "/")
				require.ErrorIs(t, err, framework.ErrAuthFailed)
				require.ErrorContains(t, err, tc.want)
				require.NotErrorIs(t, err, framework.ErrNoNode, "what a mechanism fails with is no answer")
				assert.Less(t, time.Since(began), time.Second)
				require.ErrorIs(t, <-told.C, framework.ErrAuthFailed)
				_ = c.Close()
				for _, line := range logs.All() {
					assert.NotContains(t, fmt.Sprint(line.Message, line.ContextMap()), "hunter2")
				}
			})
		})
	}
}

// A password that was refused is not shown again to end a session that nobody has used.
func TestSASLRefusedOnce(t *testing.T) {
	for name, opts := range map[string][]zktest.Option{"optional": {users}, "required": {users, zktest.RequireSASL()}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, append(opts, zktest.InMemory())...)
				dialed := 0
				began := time.Now()
				_, err := framework.Connect(t.Context(), kit.Config(srv, as("bob", "hunter2"), func(cfg *framework.Config) {
					cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
						dialed++
						return srv.DialContext(ctx, network, addr)
					}
				}))
				require.ErrorIs(t, err, framework.ErrAuthFailed)
				assert.Equal(t, 1, dialed)
				assert.Zero(t, time.Since(began))
			})
		})
	}
}

// A ClickHouse Keeper has no SASL, and ends the connection at its first request.
func TestSASLAtAKeeper(t *testing.T) {
	for _, release := range []string{"25.12", "26.7"} {
		t.Run(release, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Keeper(release))
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := framework.Connect(ctx, kit.Config(srv, as("bob", "hunter2")))
				require.ErrorIs(t, err, framework.ErrAuthFailed)
				require.ErrorContains(t, err, `DIGEST-MD5 as "bob": the servers seem to have no SASL, as ClickHouse Keeper: 3 connections in a row`)
				assert.Less(t, time.Since(began), time.Second)
			})
		})
	}
}

// A server that dies at the first request of SASL is not taken for one without it.
func TestSASLCutInARow(t *testing.T) {
	for name, tc := range map[string]struct {
		cut     []int // requests
		refused bool
	}{
		"two":                      {[]int{1, 2}, false},
		"two, an answer, and two":  {[]int{1, 2, 5, 6}, false},
		"three":                    {[]int{1, 2, 3}, true},
		"two, an answer and three": {[]int{1, 2, 5, 6, 7}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), users, zktest.RequireSASL())
				nth := 0
				srv.On(zktest.Match{Op: "sasl", Func: func(zktest.Request) bool {
					nth++
					return slices.Contains(tc.cut, nth)
				}}, zktest.CutBefore())
				c, err := framework.Start(kit.Config(srv, as("bob", "secret")))
				require.NoError(t, err)
				told := c.Errors().Subscribe()
				defer told.Stop()
				time.Sleep(5 * time.Second)
				require.NoError(t, srv.Disconnect(c.SessionID()))
				time.Sleep(5 * time.Second)
				_, err = c.Create(t.Context(), "/a", nil, framework.Ephemeral)
				require.NoError(t, err, "the next connection proves it again")
				synctest.Wait()
				select {
				case err := <-told.C:
					require.True(t, tc.refused, "%v", err)
					require.ErrorIs(t, err, framework.ErrAuthFailed)
				default:
					require.False(t, tc.refused)
				}
				require.NoError(t, c.Close())
				assert.Empty(t, srv.Sessions())
			})
		})
	}
}

// A mechanism that gets no answer in time, or does not reach who gives out its tickets, may do so
// later: the call goes on.
func TestSASLMechanismThatFailsForNow(t *testing.T) {
	for name, fails := range map[string]func(ctx context.Context) error{
		"no answer": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"no server": func(context.Context) error { return &net.OpError{Op: "dial", Err: errors.New("connection refused")} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), users, zktest.RequireSASL())
				bob := sasl.DigestMD5("bob", "secret")
				tries := 0
				var asked sasl.Server
				m := &mechanism{begin: func(ctx context.Context, server sasl.Server) (sasl.Exchange, error) {
					if tries++; tries <= 2 {
						return nil, fails(ctx)
					}
					asked = server
					return bob.Begin(ctx, server)
				}}
				c, err := framework.Start(kit.Config(srv, func(cfg *framework.Config) { cfg.SASL = m }))
				require.NoError(t, err)
				defer func() { _ = c.Close() }()
				_, _, err = c.Get(t.Context(), "/")
				require.NoError(t, err)
				assert.Equal(t, 3, tries)
				host, _, _ := net.SplitHostPort(srv.ConnectString())
				assert.Equal(t, sasl.Server{Host: host, Addr: srv.ConnectString()}, asked)
			})
		})
	}
}

// A connection that ends within the exchange is a lost connection, and no refusal. The session goes on.
func TestSASLCutAnywhere(t *testing.T) {
	for _, fault := range []zktest.Fault{zktest.CutBefore(), zktest.CutAfter(), zktest.CutReply(3), zktest.CutReply(30), zktest.DropReply(), zktest.Delay(time.Second)} {
		for nth := 1; nth <= 4; nth++ { // two steps in each connection
			t.Run(fmt.Sprintf("%v/%d", fault, nth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), users, zktest.RequireSASL())
					srv.On(zktest.Match{Op: "sasl", Nth: nth}, fault)
					c := kit.Connect(t, srv, as("bob", "secret"))
					next := states(t, c)
					next(listeners.Connected)
					_, err := c.Create(t.Context(), "/a", nil, framework.Ephemeral)
					require.NoError(t, err)
					id := c.SessionID()
					require.NoError(t, srv.Disconnect(id))
					next(listeners.Suspended, listeners.Reconnected)
					assert.Equal(t, id, c.SessionID())
					_, _, err = c.Get(t.Context(), "/a")
					require.NoError(t, err)
					require.NoError(t, c.Close())
					assert.Empty(t, srv.Sessions())
				})
			})
		}
	}
}

// A session that is given up, or closed by the next connection, proves itself before it can be closed.
func TestSASLOfASessionThatIsToBeClosed(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, c *framework.Client, srv *zktest.Server){
		"given up": func(t *testing.T, c *framework.Client, srv *zktest.Server) {
			time.Sleep(6 * time.Second) // LostAfter
			require.Equal(t, listeners.Lost, c.State())
			srv.Accept()
			soon, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, c.BlockUntilConnected(soon))
		},
		"closed": func(t *testing.T, c *framework.Client, srv *zktest.Server) {
			closed := make(chan error, 1)
			go func() { closed <- c.Close() }()
			synctest.Wait()
			srv.Accept()
			require.NoError(t, <-closed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), users, zktest.RequireSASL())
				c := kit.Connect(t, srv, as("bob", "secret"), func(cfg *framework.Config) { cfg.LostAfter = 5 * time.Second })
				_, err := c.Create(t.Context(), "/a", nil, framework.Ephemeral)
				require.NoError(t, err)
				id := c.SessionID()
				srv.Refuse()
				require.NoError(t, srv.Disconnect(id))
				end(t, c, srv)
				for _, s := range srv.Sessions() {
					assert.NotEqual(t, id, s.ID)
				}
				assert.Empty(t, srv.Ephemerals(id))
			})
		})
	}
}

// A user who is taken off the servers' list has no connection any more, and is told why.
func TestSASLUserWhoIsRefusedFromNowOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), users)
		c := kit.Connect(t, srv, as("bob", "secret"), func(cfg *framework.Config) { cfg.Retry = retry.None() })
		refusal := srv.On(zktest.Match{Op: "sasl"}, zktest.Fail(-115))
		require.NoError(t, srv.Disconnect(c.SessionID()))
		time.Sleep(kit.SessionTimeout / 10)
		_, _, err := c.Get(t.Context(), "/")
		require.ErrorIs(t, err, framework.ErrAuthFailed)
		refusal.Remove()
		time.Sleep(kit.SessionTimeout / 4)
		_, _, err = c.Get(t.Context(), "/")
		require.NoError(t, err)
	})
}

// A session that was used may have nodes. It is closed also if the servers begin to require SASL,
// and do so for a moment only.
func TestSASLRequiredFromNowOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/a", nil, framework.Ephemeral)
		require.NoError(t, err)
		srv.On(zktest.Match{Op: "closeSession", Nth: 1}, zktest.Fail(-124))
		require.NoError(t, c.Close())
		assert.Empty(t, srv.Sessions())
	})
}
