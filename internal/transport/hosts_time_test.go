package transport

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

// longestPause is that of the session timeout that tests ask for.
const longestPause = 9 * time.Second * 2 / 15

func TestReconnectPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		l, r := open(t, s, func(c *Config) { c.Servers = []string{"a:1", "b:1"} })
		time.Sleep(20 * time.Second)
		synctest.Wait()
		dials := s.dials()
		assert.Equal(t, dials[0], dials[1], "each server is tried at once")
		assert.Greater(t, len(dials), 20)
		for i := 2; i < len(dials); i++ {
			pause := dials[i].Sub(dials[i-1])
			least, most := Pause(i/2, 9*time.Second, 0, false)
			assert.LessOrEqual(t, pause, most, "then there is a pause before each server")
			assert.GreaterOrEqual(t, pause, least)
		}
		assert.ErrorContains(t, r.failures()[0], errNobody.Error())
		shut(t, l, s)
	})
}

// However a server treats a client, it is not dialed in a tight loop.
func TestDialsPerSecond(t *testing.T) {
	expired := func(p *peer) { p.asked(); p.send(&wire.ConnectResponse{Password: make([]byte, 16)}) }
	granting := func(p *peer) { p.welcome(session1, 9*time.Second) }
	alternately := func(serve ...func(*peer)) func() func(*peer) {
		n := -1
		return func() func(*peer) { n++; return serve[n%len(serve)] }
	}
	for name, next := range map[string]func() func(*peer){
		"refuses":                        func() func(*peer) { return nil },
		"accepts and closes":             func() func(*peer) { return func(*peer) {} },
		"grants a session and closes":    func() func(*peer) { return granting },
		"answers once and closes":        func() func(*peer) { return func(p *peer) { granting(p); p.next() } },
		"never has a session":            func() func(*peer) { return expired },
		"grants, closes and has expired": alternately(granting, expired),
		"closes half a second later":     func() func(*peer) { return func(p *peer) { granting(p); time.Sleep(lasting / 2) } },
		"not ZooKeeper": func() func(*peer) {
			return func(p *peer) { p.asked(); _, _ = p.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }
		},
		"without a majority, says it has": func() func(*peer) { return readOnlyServer("ro") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t)
				dial := s.dial
				l, r := open(t, s, func(cfg *Config) {
					cfg.ReadOnly = true
					cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
						s.serving(addr, next())
						return dial(ctx, network, addr)
					}
				})
				const minute = 60
				for range minute * 10 {
					time.Sleep(time.Second / 10)
					synctest.Wait()
					if c := r.current(); c != nil {
						ask(c)
					}
				}
				dials := s.dials()
				most := 0
				for i := range dials {
					within := 0
					for _, at := range dials[i:] {
						if at.Sub(dials[i]) < time.Second {
							within++
						}
					}
					most = max(most, within)
				}
				t.Logf("at most %d dials within a second, %.1f on average", most, float64(len(dials))/minute)
				assert.LessOrEqual(t, most, 8)
				assert.LessOrEqual(t, len(dials), 4*minute)
				shut(t, l, s)
			})
		})
	}
}

// A server that says that the session has expired is well, and gives a new one at once.
func TestNewSessionWhereTheOldOneHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serving("a:1", well)
		l, r := open(t, s, func(c *Config) { c.Servers = []string{"a:1", "b:1"} })
		r.await(t, "up", 1)
		time.Sleep(time.Minute)
		s.serving("a:1", nil)
		r.current().Kill(errors.New("test"))
		time.Sleep(time.Minute)
		n := 0
		s.serving("a:1", func(p *peer) {
			if req := p.asked(); req.SessionID != 0 {
				p.send(&wire.ConnectResponse{Password: make([]byte, 16)})
				return
			}
			n++
			p.send(&wire.ConnectResponse{Timeout: 9000, SessionID: session1 + 1, Password: make([]byte, 16), HasReadOnly: true})
			p.answer(1)
		})
		s.serving("b:1", mutely)
		r.await(t, "expired", 1)
		began := time.Now()
		r.await(t, "up", 2)
		assert.Zero(t, time.Since(began))
		assert.Equal(t, 1, n)
		shut(t, l, s)
	})
}

// Requests on the raw connection have no contexts, so go-zookeeper must be made
// to fail them; but only if there can be any, as it pauses for a second.
func TestRequestsOnTheRawConnectionFailWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		l, r := open(t, s)
		time.Sleep(time.Minute)
		raw := l.Raw()
		for range 5 {
			began := time.Now()
			_, _, err := raw.Get("/")
			require.ErrorIs(t, err, zk.ErrNoServer)
			assert.LessOrEqual(t, time.Since(began), flushEvery+time.Second+longestPause)
		}
		s.serving("server:2181", well)
		began := time.Now()
		r.await(t, "up", 1)
		assert.LessOrEqual(t, time.Since(began), time.Second+longestPause)
		assert.Equal(t, "server:2181", raw.Server())
		shut(t, l, s)
	})
}

// Dialing and handshake with a server share one ConnectTimeout.
func TestSlowDialAndHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serving("server:2181", mutely)
		began := time.Now()
		l, r := open(t, s, func(cfg *Config) {
			dial := cfg.Dial
			cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				time.Sleep(2 * time.Second)
				return dial(ctx, network, addr)
			}
		})
		r.await(t, "failed", 1)
		assert.Equal(t, 3*time.Second, time.Since(began))
		shut(t, l, s)
	})
}

// A server that answers a part of the handshake in time has up to twice ConnectTimeout, which is
// 3 s here. Whoever left it and came again would have it begin anew.
func TestServerThatAnswersSlowly(t *testing.T) {
	credentials := func(p *peer) { p.next(); p.send(&wire.ReplyHeader{Xid: wire.XidAuth}) }
	grant := wire.AppendFrame(nil, &wire.ConnectResponse{Timeout: 9000, SessionID: session1, Password: make([]byte, 16)})
	for name, tc := range map[string]struct {
		serve  func(p *peer)
		event  string
		within time.Duration
	}{
		"each step late": {func(p *peer) {
			time.Sleep(2 * time.Second)
			p.welcome(session1, 9*time.Second)
			time.Sleep(2 * time.Second)
			credentials(p)
			p.answer(1)
		}, "up", 4 * time.Second},
		"no second step": {func(p *peer) { time.Sleep(2 * time.Second); p.welcome(session1, 9*time.Second); p.frame(); p.frame() }, "failed", 5 * time.Second},
		"more than twice as late": {func(p *peer) {
			time.Sleep(2900 * time.Millisecond)
			p.welcome(session1, 9*time.Second)
			time.Sleep(2900 * time.Millisecond)
			p.frame()
			p.send(&wire.ReplyHeader{Xid: 7})
			time.Sleep(time.Second)
			p.answer(1)
		}, "failed", 6 * time.Second},
		"a byte each third second": {func(p *peer) {
			p.asked()
			for _, b := range grant {
				time.Sleep(time.Second / 3)
				_, _ = p.Write([]byte{b})
			}
		}, "failed", 4333 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, tc.serve, mutely)
				began := time.Now()
				l, r := open(t, s, func(cfg *Config) { cfg.Auth = []Auth{{Scheme: "digest", Data: func() []byte { return []byte("a:b") }}} })
				r.await(t, tc.event, 1)
				assert.Equal(t, tc.within, time.Since(began).Round(time.Millisecond))
				assert.Equal(t, []string{tc.event}, r.trace())
				shut(t, l, s)
			})
		})
	}
}

// Servers that were learned may have moved, and then only the first ones lead to others.
func TestLearnedServersThatHaveMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serving := func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) }
		s := newScript(t)
		s.serving("first:2181", serving)
		s.serving("learned-1:2181", serving)
		s.serving("learned-2:2181", serving)
		l, r := open(t, s, func(cfg *Config) { cfg.Servers = []string{"first:2181"} })
		r.await(t, "up", 1)
		l.SetServers([]string{"learned-1:2181", "learned-2:2181"})
		time.Sleep(time.Minute)
		r.current().Kill(errNobody)
		r.await(t, "up", 2)
		assert.NotEqual(t, "first:2181", r.current().Addr(), "while the learned ones answer")
		time.Sleep(time.Minute)
		s.serving("learned-1:2181", nil)
		s.serving("learned-2:2181", nil)
		r.current().Kill(errNobody)
		began := time.Now()
		r.await(t, "up", 3)
		assert.Equal(t, "first:2181", r.current().Addr())
		assert.Less(t, time.Since(began), time.Second)
		assert.Equal(t, []string{"learned-1:2181", "learned-2:2181"}, l.Servers())
		shut(t, l, s)
	})
}

// Names of the first servers are looked up again, as ConnectString mostly has names. If the
// server there has no majority, it is left for another one there.
func TestLearnedServersThatHaveMovedBehindAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serving := func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) }
		s := newScript(t)
		s.serving("10.0.0.1:2181", serving)
		there := &names{table: map[string][]string{"first": {"10.0.0.1"}}}
		l, r := open(t, s, resolving(there, "first:2181"), func(cfg *Config) { cfg.ReadOnly = true })
		r.await(t, "up", 1)
		l.SetServers([]string{"10.0.0.1:2181", "learned:2181"})
		time.Sleep(time.Minute)
		there.set("first", "10.0.0.2")
		s.serving("10.0.0.1:2181", nil)
		s.serving("10.0.0.2:2181", func(p *peer) {
			p.asked()
			p.send(&wire.ConnectResponse{Timeout: 9000, SessionID: session1, Password: make([]byte, 16), HasReadOnly: true, ReadOnly: true})
			p.answer(1)
		})
		r.current().Kill(errNobody)
		began := time.Now()
		r.await(t, "up", 2)
		assert.Equal(t, "first:2181 (10.0.0.2:2181)", r.current().Addr())
		assert.Less(t, time.Since(began), time.Second)

		s.serving("10.0.0.3:2181", func(p *peer) {
			if word, err := p.in.Peek(4); err == nil && string(word) == "isro" {
				_, _ = p.Write([]byte("rw"))
				return
			}
			serving(p)
		})
		there.set("first", "10.0.0.2", "10.0.0.3")
		r.await(t, "up", 3)
		assert.Equal(t, "first:2181 (10.0.0.3:2181)", r.current().Addr())
		shut(t, l, s)
	})
}

// Connections that the other side ends are replaced over a fifteenth of the session timeout:
// of that which the servers have granted, or of LostAfter. Those that end for another reason
// are replaced at once.
func TestPauseAfterALoss(t *testing.T) {
	const asked, granted = 9 * time.Second, 6 * time.Second
	for name, tc := range map[string]struct {
		change func(*Config)
		end    func(c *Conn, p *peer)
		most   time.Duration
	}{
		"ended by the server": {end: func(_ *Conn, p *peer) { _ = p.Close() }, most: granted / 15},
		"given up soon":       {change: func(cfg *Config) { cfg.LostAfter = 3 * time.Second }, end: func(_ *Conn, p *peer) { _ = p.Close() }, most: time.Second / 5},
		"ended by the server, and the list changes": {end: func(c *Conn, p *peer) {
			_ = p.Close()
			synctest.Wait()
			c.transport.SetServers([]string{"server:2181", "other:2181"})
		}, most: granted / 15},
		"ended by us": {end: func(c *Conn, _ *peer) { c.Kill(errors.New("test")) }},
		"ended at a large request": {end: func(c *Conn, p *peer) {
			_ = c.Send(NewCall(wire.OpSetData, &wire.SetDataRequest{Path: "/", Data: make([]byte, 5000)}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var longest time.Duration
			for range 50 {
				synctest.Test(t, func(t *testing.T) {
					peers := make(chan *peer, 2)
					s := newScript(t, func(p *peer) {
						p.welcome(session1, granted)
						peers <- p
						for h, body := p.next(); h.Op != 0 && len(body) < 4000; h, body = p.next() {
							p.send(&wire.ReplyHeader{Xid: h.Xid, Zxid: 1})
						}
					})
					l, r := open(t, s, func(cfg *Config) {
						cfg.SessionTimeout = asked
						if tc.change != nil {
							tc.change(cfg)
						}
					})
					r.await(t, "up", 1)
					time.Sleep(time.Minute)
					began := time.Now()
					tc.end(r.current(), <-peers)
					r.await(t, "up", 2)
					longest = max(longest, time.Since(began))
					shut(t, l, s)
				})
			}
			assert.LessOrEqual(t, longest, tc.most)
			assert.GreaterOrEqual(t, longest, tc.most/2, "by chance less: once in 2^50")
		})
	}
}

// Nobody who closes a client waits for a long pause.
func TestCloseDoesNotWaitForAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serving("server:2181", well)
		l, r := open(t, s, func(cfg *Config) { cfg.SessionTimeout = 40 * time.Second })
		r.await(t, "up", 1)
		time.Sleep(time.Minute)
		s.serving("server:2181", nil)
		s.mu.Lock()
		_ = s.conns[0].Close()
		s.mu.Unlock()
		time.Sleep(10 * time.Minute)
		s.serving("server:2181", well)
		began := time.Now()
		require.NoError(t, l.Close(5*time.Second))
		assert.LessOrEqual(t, time.Since(began), time.Second/2)
		s.stop()
	})
}

// A connection that a client gives up to go home has no request on its way, whose outcome
// would be unknown.
func TestConnectionIsGivenUpWhileItIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		s := newScript(t, func(p *peer) {
			p.welcome(session1, 9*time.Second)
			for h, _ := p.next(); h.Op != 0; h, _ = p.next() {
				<-answer
				p.send(&wire.ReplyHeader{Xid: h.Xid, Zxid: 1})
			}
		})
		l, r := open(t, s)
		r.await(t, "up", 1)
		c := r.current()
		call := NewCall(wire.OpExists, &wire.PathWatchRequest{Path: "/"})
		require.NoError(t, c.Send(call))
		assert.False(t, c.end(errGoingHome, true), "before it is sent")
		synctest.Wait()
		assert.False(t, c.end(errGoingHome, true), "before it is answered")
		close(answer)
		<-call.Done()
		synctest.Wait()
		assert.True(t, c.end(errGoingHome, true))
		r.await(t, "down", 1)
		shut(t, l, s)
	})
}

// Servers that need longer for the handshakes of all their clients than a client waits get more
// time, until there is a connection.
func TestServerThatIsLateAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lasted := make(chan time.Duration, 10)
		late := func(p *peer) {
			defer func(began time.Time) { lasted <- time.Since(began).Round(time.Millisecond) }(time.Now())
			time.Sleep(2 * time.Second)
			p.welcome(session1, 9*time.Second)
			p.frame()
			p.frame()
		}
		well := func(p *peer) {
			p.welcome(session1, 9*time.Second)
			p.next()
			p.send(&wire.ReplyHeader{Xid: wire.XidAuth})
			time.Sleep(2 * time.Second)
		}
		s := newScript(t, late, late, late, late, late, well, late, late, mutely)
		l, r := open(t, s, func(cfg *Config) { cfg.Auth = []Auth{{Scheme: "digest", Data: func() []byte { return []byte("a:b") }}} })
		for i, want := range []string{"5s", "5s", "6.5s", "8.75s", "11s", "5s", "5s"} {
			assert.Equal(t, want, (<-lasted).String(), i)
		}
		r.await(t, "failed", 7)
		shut(t, l, s)
	})
}
