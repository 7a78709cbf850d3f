package transport

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

const session1 = 0x1234

// hostile lists what a server may answer after the handshake that is not the
// protocol. Each must end the connection, and nothing else.
var hostile = map[string]func(*peer){
	"a notification of 4 bytes":     func(p *peer) { p.raw(4, 0xff, 0xff, 0xff, 0xff) },
	"a frame of no bytes":           func(p *peer) { p.raw(0) },
	"a frame of 15 bytes":           func(p *peer) { p.raw(15, make([]byte, 15)...) },
	"a negative length":             func(p *peer) { p.raw(-1, 1, 2, 3) },
	"a huge length":                 func(p *peer) { p.raw(1<<31-1, 1, 2, 3) },
	"a reply that nobody asked for": func(p *peer) { p.send(&wire.ReplyHeader{Xid: ownXid | 77}) },
	"a notification cut short": func(p *peer) {
		p.send(&wire.ReplyHeader{Xid: wire.XidNotification}, &wire.PathWatchRequest{Path: "/"})
	},
}

func TestHostileFramesEndTheConnection(t *testing.T) {
	for name, misbehave := range hostile {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t,
					func(p *peer) { p.welcome(session1, 9*time.Second); misbehave(p); p.answer(1) },
					func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
				l, r := open(t, s)
				r.await(t, "down", 1)
				assert.ErrorIs(t, r.failures()[0], ErrProtocol)
				r.await(t, "up", 2)
				call := ask(r.current())
				<-call.Done()
				assert.NoError(t, call.Err(), "the next connection works")
				shut(t, l, s)
			})
		})
	}
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
				assert.LessOrEqual(t, time.Since(began), 3*time.Second+mostPause, "bounded by ConnectTimeout")
				shut(t, l, s)
			})
		})
	}
}

func TestAnnouncedLengthDoesNotAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(p *peer) {
			p.welcome(session1, 9*time.Second)
			p.raw(512<<20, 1, 2, 3)
			p.next()
		})
		l, r := open(t, s, func(c *Config) { c.MaxReply = 1 << 30 })
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r.await(t, "down", 1) // silence for two thirds of the session timeout
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
		shut(t, l, s)
	})
}

func TestChangedSessionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t,
			func(p *peer) { p.welcome(session1, 9*time.Second) },
			func(p *peer) { p.welcome(session1+1, 9*time.Second) },
			func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
		l, r := open(t, s)
		r.await(t, "up", 2)
		assert.Equal(t, []string{"up", "down", "failed", "up"}, r.story())
		assert.ErrorIs(t, r.failures()[1], ErrProtocol)
		assert.Equal(t, int64(session1), r.current().Session())
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
		assert.Equal(t, []string{"expired", "up"}, r.story())
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
		assert.Equal(t, []string{"up", "down", "expired", "up"}, r.story())
		shut(t, l, s)
	})
}

func TestCallsThatLeaveTogetherAreOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sizes := make(chan int, 10)
		s := newScript(t, func(p *peer) {
			p.welcome(session1, 9*time.Second)
			buf := make([]byte, 1<<16)
			n, _ := p.in.Read(buf)
			sizes <- n
			p.next()
		})
		l, r := open(t, s)
		r.await(t, "up", 1)
		a := NewCall(wire.OpCreate2, &wire.CreateRequest{Path: "/a", ACL: []wire.ACL{}})
		b := NewCall(wire.OpGetChildren, &wire.PathWatchRequest{Path: "/"})
		require.NoError(t, r.current().Send(a, b))
		assert.Equal(t, a.Size()+b.Size()+8, <-sizes)
		shut(t, l, s)
	})
}

func TestLostCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t,
			func(p *peer) { p.welcome(session1, 9*time.Second); p.next() }, // reads one request and hangs up
			func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
		l, r := open(t, s)
		r.await(t, "up", 1)
		c := r.current()
		var order []string
		call := NewCall(wire.OpSync, &wire.PathRequest{Path: "/"})
		call.OnReply = func(*Call) { order = append(order, "reply") }
		require.NoError(t, c.Send(call))
		<-call.Done()
		var lost *LostError
		require.ErrorAs(t, call.Err(), &lost)
		assert.True(t, lost.Sent)
		assert.ErrorIs(t, call.Err(), ErrLost)
		assert.Equal(t, []string{"reply"}, order)
		<-c.Down()

		err := c.Send(NewCall(wire.OpSync, &wire.PathRequest{Path: "/"}))
		require.ErrorAs(t, err, &lost)
		assert.False(t, lost.Sent, "the connection had ended")
		shut(t, l, s)
	})
}

func TestCancelTakesBackWhatWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
		l, r := open(t, s)
		r.await(t, "up", 1)
		c := r.current()
		// Sent and taken back before the writer has run: it waits for this goroutine.
		c.mu.Lock()
		call := NewCall(wire.OpSync, &wire.PathRequest{Path: "/"})
		call.phase = queued
		c.out = append(c.out, outgoing{call: call})
		c.mu.Unlock()
		assert.True(t, c.Cancel(call))
		<-call.Done()
		assert.ErrorIs(t, call.Err(), errCancelled)
		assert.False(t, c.Cancel(call), "a second time")

		answered := ask(c)
		<-answered.Done()
		assert.False(t, c.Cancel(answered))
		assert.NoError(t, answered.Err())
		shut(t, l, s)
	})
}

func TestPingsAreAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(0) })
		l, r := open(t, s)
		r.await(t, "up", 1)
		began := time.Now()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.mu.Lock()
		acks := r.acks
		r.mu.Unlock()
		require.Len(t, acks, 3, "a ping each third of the session timeout")
		assert.Equal(t, 3*time.Second, acks[0].Sent.Sub(began))
		assert.False(t, acks[0].Write)
		assert.Equal(t, []string{"up"}, r.story())
		shut(t, l, s)
	})
}

func TestSilenceEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(p *peer) {
			p.welcome(session1, 9*time.Second)
			for h, _ := p.next(); h.Op != 0; h, _ = p.next() {
			}
		})
		l, r := open(t, s)
		r.await(t, "up", 1)
		began := time.Now()
		r.await(t, "down", 1)
		assert.Equal(t, 6*time.Second, time.Since(began), "two thirds of the session timeout")
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
		assert.Equal(t, []string{"failed", "up"}, r.story())
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

func TestAbandonedSessionIsClosedWhereItIsFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan wire.Op, 1)
		s := newScript(t,
			func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) },
			func(p *peer) {
				p.welcome(session1, 9*time.Second)
				h, _ := p.next()
				closed <- h.Op
				p.send(&wire.ReplyHeader{Xid: h.Xid, Zxid: 5})
			},
			func(p *peer) { p.welcome(session1+1, 9*time.Second); p.answer(1) })
		l, r := open(t, s)
		r.await(t, "up", 1)
		l.Abandon(session1 + 99) // another one: nothing happens
		l.Abandon(session1)
		r.await(t, "up", 2)
		assert.Equal(t, []string{"up", "down", "expired", "up"}, r.story())
		assert.Equal(t, wire.OpCloseSession, <-closed)
		assert.Equal(t, int64(session1+1), r.current().Session())
		shut(t, l, s)
	})
}

func TestLostConnectionIsReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
		l, r := open(t, s)
		r.await(t, "up", 1)
		time.Sleep(5 * time.Second)
		began := time.Now()
		r.current().Kill(errors.New("test"))
		r.await(t, "up", 2)
		assert.Zero(t, time.Since(began))
		shut(t, l, s)
	})
}

func TestCloseTellsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ops := make(chan wire.Op, 10)
		s := newScript(t, func(p *peer) {
			p.welcome(session1, 9*time.Second)
			h, _ := p.next()
			ops <- h.Op
			p.send(&wire.ReplyHeader{Xid: h.Xid, Zxid: 5})
		})
		l, r := open(t, s)
		r.await(t, "up", 1)
		began := time.Now()
		require.NoError(t, l.Close(time.Minute))
		assert.Zero(t, time.Since(began))
		assert.Equal(t, wire.OpCloseSession, <-ops)
		s.stop()
	})
}

func TestCloseReconnectsToTellTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ops := make(chan wire.Op, 10)
		s := newScript(t,
			func(p *peer) { p.welcome(session1, 9*time.Second); p.next() }, // hangs up on the first request
			func(p *peer) {
				p.welcome(session1, 9*time.Second)
				h, _ := p.next()
				ops <- h.Op
				p.send(&wire.ReplyHeader{Xid: h.Xid, Zxid: 5})
			})
		l, r := open(t, s)
		r.await(t, "up", 1)
		require.NoError(t, l.Close(time.Minute))
		assert.Equal(t, wire.OpCloseSession, <-ops)
		s.stop()
	})
}

func TestCloseWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
		l, r := open(t, s)
		r.await(t, "up", 1)
		s.mu.Lock()
		s.serve = nil
		s.mu.Unlock()
		r.current().Kill(errors.New("test"))
		began := time.Now()
		assert.ErrorIs(t, l.Close(2*time.Second), ErrNotTold)
		assert.LessOrEqual(t, time.Since(began), 3*time.Second)
		s.stop()
	})
}

func TestCloseBeforeTheFirstConnection(t *testing.T) {
	for name, serve := range map[string][]func(*peer){
		"nobody there": nil,
		"says nothing": {func(p *peer) { p.next() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, serve...)
				l, _ := open(t, s)
				time.Sleep(100 * time.Millisecond)
				began := time.Now()
				require.NoError(t, l.Close(time.Minute))
				assert.LessOrEqual(t, time.Since(began), time.Second)
				s.stop()
			})
		})
	}
}

func TestCloseAtAnyMoment(t *testing.T) {
	for at := range 60 {
		synctest.Test(t, func(t *testing.T) {
			s := newScript(t,
				func(p *peer) { p.welcome(session1, 300*time.Millisecond) },
				func(p *peer) { p.asked(); p.send(&wire.ConnectResponse{Password: make([]byte, 16)}) },
				func(p *peer) { p.welcome(session1, 300*time.Millisecond); p.answer(1) },
				func(p *peer) { p.asked(); p.next() })
			l, _ := open(t, s, func(c *Config) { c.ConnectTimeout = 100 * time.Millisecond })
			time.Sleep(time.Duration(at) * 10 * time.Millisecond)
			_ = l.Close(time.Second) // may not have told the server; nothing may be left
			s.stop()
		})
	}
}

func TestDialerThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		hang := make(chan struct{})
		l, _ := open(t, s, func(c *Config) {
			c.Dial = func(context.Context, string, string) (net.Conn, error) {
				<-hang
				return nil, errNobody
			}
		})
		time.Sleep(time.Second)
		assert.ErrorIs(t, l.Close(time.Minute), ErrStuck)
		close(hang)
	})
}

func TestReadOnlyServerIsLeftForAWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readOnly := func(p *peer) {
			p.asked()
			p.send(&wire.ConnectResponse{Timeout: 9000, SessionID: session1, Password: make([]byte, 16), HasReadOnly: true, ReadOnly: true})
			p.answer(1)
		}
		var asked atomic.Int32
		isro := func(p *peer) {
			word := make([]byte, 4)
			_, _ = p.in.Read(word)
			assert.Equal(t, "isro", string(word))
			if asked.Add(1) < 3 {
				_, _ = p.Write([]byte("ro"))
				return
			}
			_, _ = p.Write([]byte("rw"))
		}
		s := newScript(t, readOnly, isro, isro, isro, func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
		l, r := open(t, s, func(c *Config) { c.ReadOnly, c.Servers = true, []string{"a:1", "b:1"} })
		r.await(t, "up", 1)
		assert.True(t, r.current().ReadOnly())
		first := r.current().Addr()
		r.await(t, "up", 2)
		assert.False(t, r.current().ReadOnly())
		assert.NotEqual(t, first, r.current().Addr())
		assert.ErrorIs(t, r.failures()[0], errFoundWriter)
		shut(t, l, s)
	})
}

func TestRawConnectionWorksBesideOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(p *peer) {
			p.welcome(session1, 9*time.Second)
			for {
				h, _ := p.next()
				switch h.Op {
				case 0:
					return
				case wire.OpGetData:
					p.send(&wire.ReplyHeader{Xid: h.Xid, Zxid: 3}, &wire.GetDataResponse{Data: []byte("x")})
					p.send(&wire.ReplyHeader{Xid: wire.XidNotification, Zxid: -1}, &wire.WatcherEvent{Type: wire.EventNodeDeleted, State: 3, Path: "/a"})
				default:
					p.send(&wire.ReplyHeader{Xid: h.Xid, Zxid: 3})
				}
			}
		})
		l, r := open(t, s)
		r.await(t, "up", 1)
		ours := ask(r.current())
		data, _, events, err := l.Raw().GetW("/a")
		require.NoError(t, err)
		assert.Equal(t, "x", string(data))
		assert.Equal(t, "/a", (<-events).Path, "go-zookeeper's watch")
		r.await(t, "event", 1)
		<-ours.Done()
		assert.NoError(t, ours.Err())
		assert.Equal(t, int64(3), l.LastZxid())
		shut(t, l, s)
	})
}

func TestSomebodyClosesTheRawConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
		l, r := open(t, s)
		r.await(t, "up", 1)
		l.Raw().Close()
		r.await(t, "down", 1)
		shut(t, l, s)
	})
}

// A reply that is longer than we take is the failure of its request, not of the
// connection: the next connection would get the same again.
func TestReplyThatIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 8 << 10
		s := newScript(t, func(p *peer) {
			p.welcome(session1, 9*time.Second)
			h, _ := p.next()
			p.send(&wire.ReplyHeader{Xid: h.Xid, Zxid: 7}, &wire.SetDataRequest{Path: "/a", Data: make([]byte, 10*most)})
			p.answer(8)
		})
		l, r := open(t, s, func(c *Config) { c.MaxReply = most })
		r.await(t, "up", 1)
		call := ask(r.current())
		<-call.Done()
		require.ErrorIs(t, call.Err(), ErrTooLong)
		assert.True(t, call.Replied())
		assert.Equal(t, wire.CodeOK, call.Code())
		assert.Equal(t, int64(7), l.LastZxid())
		next := ask(r.current())
		<-next.Done()
		require.NoError(t, next.Err())
		assert.Equal(t, []string{"up"}, r.story())
		shut(t, l, s)
	})
}

// Long replies lie in memory that is used again, but not before it is given back.
func TestLongRepliesKeepTheirMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds, lengths = 20, 5
		data := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 1<<(i%lengths)*2*long) }
		s := newScript(t, func(p *peer) {
			p.welcome(session1, 9*time.Second)
			for i := range rounds {
				h, _ := p.next()
				p.send(&wire.ReplyHeader{Xid: h.Xid, Zxid: 1}, &wire.SetDataRequest{Data: data(i)})
			}
			p.answer(2)
		})
		l, r := open(t, s)
		r.await(t, "up", 1)
		var calls []*Call
		var got []wire.SetDataRequest
		for i := range rounds {
			calls = append(calls, ask(r.current()))
			got = append(got, wire.SetDataRequest{})
			<-calls[i].Done()
			require.NoError(t, calls[i].Decode(&got[i]))
			if gone := i - lengths; gone >= 0 {
				assert.Equal(t, data(gone), got[gone].Data)
				calls[gone].Free()
				require.ErrorIs(t, calls[gone].Decode(new(wire.SetDataRequest)), wire.ErrMalformed, "there is nothing left")
				calls[gone].Free() // has nothing left to give
			}
		}
		shut(t, l, s)
	})
}

// Nobody asked for it, or it ends in the middle, or it is beyond all measure.
func TestReplyThatIsTooLongForTheConnection(t *testing.T) {
	const most = 8 << 10
	for name, misbehave := range map[string]func(p *peer, xid int32){
		"unasked": func(p *peer, xid int32) {
			p.send(&wire.ReplyHeader{Xid: xid + 1}, &wire.SetDataRequest{Data: make([]byte, 2*most)})
		},
		"an event": func(p *peer, _ int32) {
			p.send(&wire.ReplyHeader{Xid: wire.XidNotification}, &wire.SetDataRequest{Data: make([]byte, 2*most)})
		},
		"cut": func(p *peer, xid int32) {
			p.raw(2*most, byte(xid>>24), byte(xid>>16), byte(xid>>8), byte(xid), 0, 0, 0, 0)
		},
		"cut later": func(p *peer, xid int32) {
			p.raw(1<<20, append([]byte{byte(xid >> 24), byte(xid >> 16), byte(xid >> 8), byte(xid)}, make([]byte, 3*most)...)...)
		},
		"gigantic":   func(p *peer, xid int32) { p.raw(1<<30, byte(xid>>24), byte(xid>>16), byte(xid>>8), byte(xid)) },
		"and silent": func(p *peer, xid int32) { p.raw(1<<20, make([]byte, 12)...); p.next() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, func(p *peer) {
					p.welcome(session1, 9*time.Second)
					h, _ := p.next()
					misbehave(p, h.Xid)
				}, func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
				l, r := open(t, s, func(c *Config) { c.MaxReply = most })
				r.await(t, "up", 1)
				call := ask(r.current())
				<-call.Done()
				var lost *LostError
				require.ErrorAs(t, call.Err(), &lost)
				r.await(t, "up", 2)
				shut(t, l, s)
			})
		})
	}
}

// slowToClose is a connection whose Close waits.
type slowToClose struct {
	net.Conn
	gate chan struct{}
}

func (c *slowToClose) Close() error {
	<-c.gate
	return c.Conn.Close()
}

// A connection that is ended is down at once, and the next one is there, although
// closing the socket takes its time. Close of the link waits for it, but not for ever.
func TestSocketThatDoesNotClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
		gate := make(chan struct{})
		l, r := open(t, s, func(c *Config) {
			c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				nc, err := s.dial(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return &slowToClose{nc, gate}, nil
			}
		})
		r.await(t, "up", 1)
		synctest.Wait()
		began := time.Now()
		r.current().Kill(errors.New("test"))
		assert.Zero(t, time.Since(began))
		r.await(t, "down", 1)
		r.await(t, "up", 2)
		assert.LessOrEqual(t, time.Since(began), time.Second, "the pause before the next connection")
		began = time.Now()
		require.ErrorIs(t, l.Close(time.Minute), ErrStuck)
		assert.LessOrEqual(t, time.Since(began), 3*time.Second)
		close(gate)
		s.stop()
	})
}
