package transport

import (
	"bytes"
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
	require.True(t, answered, "%v", r.story())
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20+16*len(b)))
	shut(t, l, s)
}
