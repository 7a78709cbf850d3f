package transport

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

// What has no reply ends with its connection as soon as something later has one, and at
// the next ping at the latest.
func TestReplyThatNeverComes(t *testing.T) {
	read := func() *Call { return NewCall(wire.OpExists, &wire.PathWatchRequest{Path: "/a"}) }
	remove := func() *Call { return NewCall(wire.OpDelete, &wire.PathVersionRequest{Path: "/a", Version: -1}) }
	send := func(t *testing.T, c *Conn, call *Call) *Call {
		t.Helper()
		require.NoError(t, c.Send(call))
		return call
	}
	raw := func(t *testing.T, c *Conn, _ *Call) *Call {
		t.Helper()
		go func() { _, _, _ = c.transport.Raw().Exists("/raw") }()
		return nil
	}
	for name, tc := range map[string]struct {
		missing func(*testing.T, *Conn, *Call) *Call
		call    func() *Call
		later   func(*testing.T, *Conn, *Call) *Call
	}{
		"a read, later a write":          {send, read, send},
		"a write, later a read":          {send, remove, send},
		"a call, later a ping":           {send, read, nil},
		"go-zookeeper's, later a call":   {raw, read, send},
		"a call, later go-zookeeper's":   {send, read, raw},
		"a ping, later a call":           {nil, read, send},
		"go-zookeeper's, later the ping": {raw, read, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, func(p *peer) {
					p.welcome(session1, 9*time.Second)
					p.next() // has no reply
					p.answer(1)
				}, func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
				l, r := open(t, s)
				r.await(t, "up", 1)
				c, began := r.current(), time.Now()
				var missing *Call
				if tc.missing != nil {
					missing = tc.missing(t, c, tc.call())
				} else {
					time.Sleep(3 * time.Second)
				}
				synctest.Wait()
				if tc.later != nil {
					tc.later(t, c, remove())
				}
				<-c.Down()
				assert.LessOrEqual(t, time.Since(began), 3*time.Second, "a ping at the latest")
				require.ErrorIs(t, r.failures()[0], ErrProtocol)
				assert.ErrorContains(t, r.failures()[0], "no reply to request")
				if missing != nil {
					<-missing.Done()
					var lost *LostError
					require.ErrorAs(t, missing.Err(), &lost)
					assert.True(t, lost.Sent)
				}
				r.await(t, "up", 2)
				again := send(t, r.current(), read())
				<-again.Done()
				require.NoError(t, again.Err())
				shut(t, l, s)
			})
		})
	}
}

// Some refusals do not wait for the replies before them, and events and credentials have
// no place in the order.
func TestRepliesThatOvertake(t *testing.T) {
	for name, early := range map[string]func(p *peer, second int32){
		"read-only": func(p *peer, xid int32) { p.send(&wire.ReplyHeader{Xid: xid, Code: wire.CodeNotReadOnly}) },
		"unknown":   func(p *peer, xid int32) { p.send(&wire.ReplyHeader{Xid: xid, Code: wire.CodeUnimplemented}) },
		"an event": func(p *peer, xid int32) {
			p.send(&wire.ReplyHeader{Xid: wire.XidNotification}, &wire.WatcherEvent{Path: "/a"})
		},
		"credentials": func(p *peer, xid int32) { p.send(&wire.ReplyHeader{Xid: wire.XidAuth}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, func(p *peer) {
					p.welcome(session1, 9*time.Second)
					first, _ := p.next()
					second, _ := p.next()
					early(p, second.Xid)
					p.send(&wire.ReplyHeader{Xid: first.Xid, Zxid: 1})
					if name == "an event" || name == "credentials" {
						p.send(&wire.ReplyHeader{Xid: second.Xid, Zxid: 1})
					}
					p.answer(1)
				})
				l, r := open(t, s)
				r.await(t, "up", 1)
				a, b := NewCall(wire.OpExists, &wire.PathWatchRequest{Path: "/a"}), NewCall(wire.OpSync, &wire.PathRequest{Path: "/"})
				require.NoError(t, r.current().Send(a, b))
				for _, call := range []*Call{a, b, ask(r.current())} {
					<-call.Done()
					require.NoError(t, call.Err())
				}
				time.Sleep(time.Minute)
				assert.Empty(t, r.failures())
				shut(t, l, s)
			})
		})
	}
}

// Requests are found however many were answered before, and nothing is kept of those.
func TestUnanswered(t *testing.T) {
	var u unanswered
	for i := range int32(1000) {
		u.add(request{xid: 2 * i})
		u.add(request{xid: 2*i + 1})
		r, ok, err := u.take(wire.ReplyHeader{Xid: i})
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, i, r.xid)
		assert.Len(t, u.all(), int(i)+1)
	}
	assert.Less(t, len(u.queue), 2100)
	_, ok, err := u.take(wire.ReplyHeader{Xid: 7})
	require.NoError(t, err)
	assert.False(t, ok, "answered before")
	_, _, err = u.take(wire.ReplyHeader{Xid: 1500})
	require.ErrorContains(t, err, "no reply to request 0x3e8, but to 0x5dc behind it")
	assert.Len(t, u.all(), 1000, "it is still there")
}
