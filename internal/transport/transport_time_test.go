package transport

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

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
		assert.Equal(t, []string{"up", "down", "expired", "up"}, r.trace())
		assert.Equal(t, wire.OpCloseSession, <-closed)
		assert.Equal(t, int64(session1+1), r.current().SessionID())
		shut(t, l, s)
	})
}

// So do the ids of requests that end a session behind a lost reply.
func TestXidsGoOnWhereASessionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var xids []int32
		closes := func(p *peer) wire.RequestHeader {
			p.welcome(session1, 9*time.Second)
			h, _ := p.next()
			assert.Equal(t, wire.OpCloseSession, h.Op)
			xids = append(xids, h.Xid)
			return h
		}
		s := newScript(t,
			func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) },
			func(p *peer) { closes(p) },
			func(p *peer) { p.send(&wire.ReplyHeader{Xid: closes(p).Xid, Zxid: 5}) },
			func(p *peer) { p.welcome(session1+1, 9*time.Second); p.answer(1) })
		l, r := open(t, s)
		r.await(t, "up", 1)
		l.Abandon(session1)
		r.await(t, "up", 2)
		if assert.Len(t, xids, 2) {
			assert.Greater(t, xids[1], xids[0])
		}
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

// The ids of requests go on with the next connection. Servers compare them: one that is sent a
// request took a write of the session with the same id, from another server, for that.
func TestXidsGoOnWithTheNextConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan int32, 100)
		s := newScript(t, func(p *peer) {
			p.welcome(session1, 9*time.Second)
			for {
				h, _ := p.next()
				if h.Op == 0 {
					return
				}
				if h.Op == wire.OpDelete {
					seen <- h.Xid
				}
				p.send(&wire.ReplyHeader{Xid: h.Xid, Zxid: 1})
			}
		})
		l, r := open(t, s)
		for i := range 3 {
			r.await(t, "up", i+1)
			for range 2 {
				call := NewCall(wire.OpDelete, &wire.PathVersionRequest{Path: "/a", Version: -1})
				require.NoError(t, r.current().Send(call))
				<-call.Done()
			}
			r.current().Kill(errors.New("test"))
		}
		for last := int32(ownXid); len(seen) > 0; {
			xid := <-seen
			assert.Greater(t, xid, last)
			last = xid
		}
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

// A server may say more in its answer than it should.
func TestCloseAnsweredAtLength(t *testing.T) {
	for name, code := range map[string]wire.Code{"closed": wire.CodeOK, "refused": wire.CodeMarshallingError} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, func(p *peer) {
					p.welcome(session1, 9*time.Second)
					for h, _ := p.next(); h.Op != 0; h, _ = p.next() {
						body := make(wire.Body, 2<<20)
						if h.Op != wire.OpCloseSession {
							body = nil
						}
						p.send(&wire.ReplyHeader{Xid: h.Xid, Zxid: 1, Code: code}, &body)
					}
				})
				l, r := open(t, s)
				r.await(t, "up", 1)
				began := time.Now()
				err := l.Close(time.Second)
				if code == wire.CodeOK {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, ErrNotTold)
				}
				assert.LessOrEqual(t, time.Since(began), time.Second)
				s.stop()
			})
		})
	}
}
