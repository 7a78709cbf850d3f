package transport

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

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
		assert.Equal(t, []string{"up"}, r.trace())
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
