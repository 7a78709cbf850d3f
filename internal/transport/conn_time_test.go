package transport

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

// FuzzGuard has a server send any bytes, in place of its answer to the connect
// request or behind it. The connection must end or go on, the next one be good,
// and memory be what came and not what was announced.
func FuzzGuard(f *testing.F) {
	welcome := wire.AppendFrame(nil, &wire.ConnectResponse{Timeout: 9000, SessionID: session1, Password: make([]byte, 16), HasReadOnly: true})
	for _, tail := range [][]byte{
		nil, {0}, {0, 0, 0, 0}, {0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff}, {0x7f, 0xff, 0xff, 0xff}, {0, 0x20, 0, 0}, {0x0f, 0, 0, 0},
		wire.AppendFrame(nil, &wire.ReplyHeader{Xid: ownXid | 1, Zxid: 1 << 40}),
		wire.AppendFrame(nil, &wire.ReplyHeader{Xid: wire.XidPing}),
		wire.AppendFrame(nil, &wire.ReplyHeader{Xid: wire.XidNotification}, &wire.WatcherEvent{Type: wire.EventNodeDeleted, State: 3, Path: "/a"}),
		wire.AppendFrame(nil, &wire.ReplyHeader{Xid: ownXid | 1, Code: -9999}, &wire.GetChildrenResponse{Children: []string{"a"}}),
		bytes.Repeat([]byte{0, 0, 0, 16}, 100),
	} {
		f.Add(false, append(bytes.Clone(welcome), tail...))
		f.Add(true, tail)
	}
	f.Fuzz(func(t *testing.T, welcomed bool, b []byte) {
		synctest.Test(t, func(t *testing.T) { guardSurvives(t, welcomed, b) })
	})
}

func guardSurvives(t *testing.T, welcomed bool, b []byte) {
	t.Helper()
	s := newScript(t, func(p *peer) {
		if welcomed {
			p.welcome(session1, 9*time.Second)
			p.next() // our request
		} else {
			p.asked()
		}
		_, _ = p.Write(b)
	}, func(p *peer) {
		if req := p.asked(); req.SessionID != 0 && req.SessionID != session1 {
			p.send(&wire.ConnectResponse{Password: make([]byte, 16)}) // what b has made it believe
			return
		}
		p.send(&wire.ConnectResponse{Timeout: 9000, SessionID: session1, Password: make([]byte, 16), HasReadOnly: true})
		p.answer(1)
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l, r := open(t, s)
	answered := false
	for began := time.Now(); !answered && time.Since(began) < time.Hour; {
		if c := r.current(); c != nil {
			if call := ask(c); call != nil {
				<-call.Done()
				answered = call.Err() == nil
				assert.True(t, answered || call.Err().Error() != "")
			}
		}
		if !answered {
			time.Sleep(time.Second)
		}
	}
	runtime.ReadMemStats(&after)
	require.True(t, answered, "%v", r.trace())
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20+16*len(b)))
	shut(t, l, s)
}

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
		assert.Equal(t, []string{"up"}, r.trace())
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
// closing the socket takes its time.
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
		close(gate)
		shut(t, l, s)
	})
}
