package transport

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

var errMute = errors.New("mute")

// mute is a connection that says it could not write what it has written.
type mute struct{ net.Conn }

func (m mute) Write(p []byte) (int, error) {
	n, err := m.Conn.Write(p)
	return n, errors.Join(errMute, err)
}

// Read lets the failure of the write be noticed first.
func (m mute) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return m.Conn.Read(p)
}

func TestConnectionThatCannotBeWrittenToDoesNotGoUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(p *peer) { p.welcome(7, 9*time.Second); p.answer(1) })
		first := true
		l, r := open(t, s, func(cfg *Config) {
			cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				nc, err := s.dial(ctx, network, addr)
				if first && err == nil {
					nc = mute{nc}
				}
				first = false
				return nc, err
			}
		})
		r.await(t, "up", 1)
		require.Equal(t, []string{"failed", "up"}, r.trace())
		require.ErrorContains(t, r.failures()[0], errMute.Error())
		shut(t, l, s)
	})
}

func TestHostileHandshakes(t *testing.T) {
	for name, tc := range map[string]struct {
		serve func(*peer)
		want  error
	}{
		"says nothing":           {func(p *peer) { p.asked(); p.next() }, context.DeadlineExceeded},
		"stops in the middle":    {func(p *peer) { p.asked(); p.raw(36, 0, 0, 0); p.next() }, context.DeadlineExceeded},
		"announces a gigabyte":   {func(p *peer) { p.asked(); p.raw(1<<30, 0, 0, 0) }, ErrProtocol},
		"a negative length":      {func(p *peer) { p.asked(); p.raw(-5) }, ErrProtocol},
		"too short":              {func(p *peer) { p.asked(); p.raw(4, 1, 2, 3, 4) }, ErrProtocol},
		"not a connect response": {func(p *peer) { p.asked(); p.raw(24, bytes.Repeat([]byte{0x7f}, 24)...) }, ErrProtocol},
		"closes":                 {func(p *peer) { p.asked() }, nil},
		"a session of two weeks": {func(p *peer) { p.welcome(session1, 14*24*time.Hour) }, ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, tc.serve, func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
				began := time.Now()
				l, r := open(t, s)
				r.await(t, "up", 1)
				require.NotEmpty(t, r.failures())
				if errors.Is(tc.want, context.DeadlineExceeded) {
					var timeout net.Error
					require.ErrorAs(t, r.failures()[0], &timeout)
					assert.True(t, timeout.Timeout())
				} else if tc.want != nil {
					assert.ErrorIs(t, r.failures()[0], tc.want)
				}
				assert.LessOrEqual(t, time.Since(began), 3*time.Second+longestPause, "bounded by ConnectTimeout")
				shut(t, l, s)
			})
		})
	}
}

// ClickHouse Keeper answers a renewal so. The client asked for the former session for
// ever, and left a new one behind each time.
func TestRenewalAnsweredWithAnotherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, closed := make(chan int64, 10), make(chan wire.Op, 1)
		s := newScript(t,
			func(p *peer) { asked <- p.welcome(session1, 9*time.Second).SessionID },
			func(p *peer) {
				asked <- p.welcome(session1+1, 9*time.Second).SessionID
				h, _ := p.next()
				closed <- h.Op
				p.send(&wire.ReplyHeader{Xid: h.Xid})
			},
			func(p *peer) { asked <- p.welcome(session1+2, 9*time.Second).SessionID; p.answer(1) })
		l, r := open(t, s)
		r.await(t, "up", 2)
		assert.Equal(t, []string{"up", "down", "expired", "up"}, r.trace())
		assert.Equal(t, wire.OpCloseSession, <-closed, "nothing is left behind")
		assert.Equal(t, []int64{0, session1, 0}, []int64{<-asked, <-asked, <-asked})
		assert.Equal(t, int64(session1+2), r.current().SessionID())
		shut(t, l, s)
	})
}

// A server may not answer the end of the session that nobody has asked for.
func TestReplacedSessionThatCannotBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t,
			func(p *peer) { p.welcome(session1, 9*time.Second) },
			func(p *peer) { p.welcome(session1+1, 9*time.Second); p.next() },
			func(p *peer) { p.welcome(session1+2, 9*time.Second); p.answer(1) })
		l, r := open(t, s)
		r.await(t, "up", 2)
		assert.Equal(t, []string{"up", "down", "expired", "up"}, r.trace())
		shut(t, l, s)
	})
}

// The session may go on without us, so Close must not say that it has ended.
func TestSessionIsReplacedDuringClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := make(chan struct{})
		s := newScript(t,
			func(p *peer) { p.welcome(session1, 9*time.Second); <-cut },
			func(p *peer) { p.welcome(session1+1, 9*time.Second); p.answer(1) })
		l, r := open(t, s)
		r.await(t, "up", 1)
		began := time.Now()
		time.AfterFunc(time.Second, func() { close(cut) })
		err := l.Close(time.Minute)
		require.ErrorIs(t, err, ErrNotTold)
		assert.ErrorContains(t, err, "the servers do not take the session up again")
		assert.Less(t, time.Since(began), 5*time.Second)
		assert.Equal(t, []string{"up", "down", "expired"}, r.trace()[:3], "a dial may have failed behind it, as the script has ended")
		s.stop()
	})
}

// ClickHouse Keeper, which gives no password, ends the connection when it has ended the
// session. ZooKeeper answers, so that there the session may go on.
func TestSessionThatEndsWithoutAnAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		password []byte
		want     error
	}{
		"ZooKeeper": {bytes.Repeat([]byte{7}, 16), ErrNotTold},
		"Keeper":    {make([]byte, 16), nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				granted := wire.ConnectResponse{Timeout: 9000, SessionID: session1, Password: tc.password}
				s := newScript(t,
					func(p *peer) { p.asked(); p.send(&granted); p.next() },
					func(p *peer) { p.welcome(session1+1, 9*time.Second); p.answer(1) })
				l, r := open(t, s)
				r.await(t, "up", 1)
				began := time.Now()
				require.ErrorIs(t, l.Close(time.Minute), tc.want)
				assert.Less(t, time.Since(began), 5*time.Second)
				s.stop()
			})
		})
	}
}

// Close finds a handshake on its way. The session that it brings is ended, and that a Keeper
// does not answer is not taken for a session that is left.
func TestCloseDuringAHandshakeWithAKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan wire.Op, 100)
		s := newScript(t, func(p *peer) {
			p.asked()
			time.Sleep(100 * time.Millisecond)
			p.send(&wire.ConnectResponse{Timeout: 9000, SessionID: session1, Password: make([]byte, 16)})
			h, _ := p.next()
			ended <- h.Op
		})
		l, _ := open(t, s)
		time.Sleep(50 * time.Millisecond)
		began := time.Now()
		require.NoError(t, l.Close(5*time.Second))
		assert.Less(t, time.Since(began), time.Second)
		assert.Equal(t, wire.OpCloseSession, <-ended)
		s.stop()
	})
}

// A ClickHouse Keeper without a leader answers so.
func TestServerThatIsNotActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t,
			func(p *peer) {
				p.asked()
				p.send(&wire.ConnectResponse{ProtocolVersion: 42, Timeout: 9000, SessionID: -1, Password: make([]byte, 16)})
			},
			func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
		l, r := open(t, s)
		r.await(t, "up", 1)
		assert.Equal(t, []string{"failed", "up"}, r.trace())
		assert.ErrorIs(t, r.failures()[0], errNotActive)
		shut(t, l, s)
	})
}

func TestSessionTimeoutOfZeroMeansExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t,
			func(p *peer) { p.welcome(session1, 0); p.next() }, // go-zookeeper would panic
			func(p *peer) { p.welcome(session1+1, 9*time.Second); p.answer(1) })
		l, r := open(t, s)
		r.await(t, "up", 1)
		assert.Equal(t, []string{"expired", "up"}, r.trace())
		shut(t, l, s)
	})
}

func TestConnectRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := make(chan *wire.ConnectRequest, 10)
		s := newScript(t,
			func(p *peer) {
				requests <- p.welcome(session1, 6*time.Second)
				h, _ := p.next()
				p.send(&wire.ReplyHeader{Xid: h.Xid, Zxid: 4711})
			},
			func(p *peer) { requests <- p.asked(); p.send(&wire.ConnectResponse{Password: make([]byte, 16)}) },
			func(p *peer) { requests <- p.welcome(session1+1, 6*time.Second); p.answer(1) })
		l, r := open(t, s, func(c *Config) { c.ReadOnly = true })
		r.await(t, "up", 1)
		<-ask(r.current()).Done()
		r.await(t, "up", 2)

		first, renewed, fresh := <-requests, <-requests, <-requests
		assert.Zero(t, first.SessionID)
		assert.Equal(t, int32(9000), first.Timeout)
		assert.True(t, first.ReadOnly)
		assert.Equal(t, int64(session1), renewed.SessionID)
		assert.Equal(t, int64(4711), renewed.LastZxidSeen, "what our own replies have shown")
		assert.Equal(t, int32(9000), renewed.Timeout, "what was configured, not what was granted")
		assert.Zero(t, fresh.SessionID)
		assert.Zero(t, fresh.LastZxidSeen, "a new session begins anew")
		assert.Equal(t, []string{"up", "down", "expired", "up"}, r.trace())
		shut(t, l, s)
	})
}

func TestCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan wire.AuthRequest, 10)
		asked := make(chan int64, 10)
		auth := func(code wire.Code) func(*peer) {
			return func(p *peer) {
				asked <- p.welcome(session1, 9*time.Second).SessionID
				for range 2 {
					h, body := p.next()
					var a wire.AuthRequest
					a.Decode(wire.NewDecoder(body))
					seen <- a
					p.send(&wire.ReplyHeader{Xid: h.Xid, Code: code})
				}
				if code == wire.CodeOK {
					p.answer(1)
				}
			}
		}
		s := newScript(t, auth(wire.CodeAuthFailed), auth(wire.CodeOK))
		l, r := open(t, s, func(c *Config) {
			c.Auth = []Auth{
				{"digest", func() []byte { return []byte("user:secret") }},
				{"x", func() []byte { return nil }},
			}
		})
		r.await(t, "up", 1)
		assert.Equal(t, []string{"failed", "up"}, r.trace())
		assert.ErrorIs(t, r.failures()[0], ErrAuthFailed)
		assert.NotContains(t, r.failures()[0].Error(), "secret")
		assert.Zero(t, <-asked)
		assert.Equal(t, int64(session1), <-asked, "the session of the first attempt is continued, not leaked")
		for range 2 {
			assert.Equal(t, "user:secret", string((<-seen).Auth), "presented on each connection")
			assert.Equal(t, "x", (<-seen).Scheme)
		}
		shut(t, l, s)
	})
}
