package zktest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestCutReplyInTheMiddle(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		for n, want := range map[int]int{-1: 1, 3: 3, 10: 10, 1000: 4 + 16 + 4 + 2 - 1} {
			c := begin(t, srv, 10*time.Second)
			rule := srv.On(zktest.Match{Op: "create"}, zktest.CutReply(n))
			c.send(wire.OpCreate, createReq("/a"))
			got := 0
			for {
				i, err := c.r.Read(make([]byte, 100))
				got += i
				if err != nil {
					break
				}
			}
			rule.Remove()
			assert.Equal(t, want, got)
			assert.Equal(t, 1, rule.Fired())
			b := begin(t, srv, 10*time.Second)
			assert.True(t, b.exists("/a"), "applied")
			b.must(wire.OpDelete, &wire.PathVersionRequest{Path: "/a", Version: -1}, nil)
		}
	})
}

func TestChoose(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory())
	c := begin(t, srv, 10*time.Second)
	rule := srv.On(zktest.Match{}, zktest.Choose(func(r zktest.Request) zktest.Fault {
		if strings.HasPrefix(r.Path, "/no") && len(r.Paths) == 1 && r.Member == 0 {
			return zktest.Fail(-4)
		}
		return zktest.Fault{}
	}))
	c.create("/yes", 0)
	code, err := c.call(wire.OpCreate, createReq("/no"), nil)
	require.NoError(t, err)
	assert.Equal(t, wire.CodeConnectionLoss, code)
	assert.Equal(t, 1, rule.Fired())
}

func TestTranscriptOfAFailingTest(t *testing.T) {
	for _, fails := range []bool{true, false} {
		tb := &fakeTB{TB: t, fails: fails}
		srv := zktest.Start(tb, zktest.InMemory(), zktest.Transcript())
		c := begin(t, srv, 10*time.Second)
		c.must(wire.OpGetData, watch("/"), nil)
		c.must(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{{Op: wire.OpCreate, Request: createReq("/a")}, {Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/a"}}}}, nil)
		c.must(wire.OpSetData, &wire.SetDataRequest{Path: "/", Data: []byte("new"), Version: -1}, nil)
		tb.cleanups[0]()
		log := strings.Join(tb.logs, "\n")
		if !fails {
			assert.Empty(t, log)
			continue
		}
		for _, want := range []string{
			"> connect", "> getData #1", `Path="/" Watch=true`, `> multi #2 [create Path="/a"`, `[check Path="/a"]`,
			`< #2 ok`, `! Type=dataChanged`, `Data="new"`,
		} {
			assert.Contains(t, log, want)
		}
	}
}

func (tb *fakeTB) Failed() bool { return tb.fails }
func (tb *fakeTB) Logf(format string, args ...any) {
	tb.logs = append(tb.logs, fmt.Sprintf(format, args...))
}

// The next frame is the reply to a later request, be the dropped one a write, a read or a
// ping.
func TestDropReply(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		c := begin(t, srv, 10*time.Second)
		for op, send := range map[string]func(){
			"create": func() { c.send(wire.OpCreate, createReq("/a")) },
			"exists": func() { c.send(wire.OpExists, &wire.PathWatchRequest{Path: "/a"}) },
			"ping":   func() { c.write(&wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing}) },
		} {
			rule := srv.On(zktest.Match{Op: op, Nth: 1}, zktest.DropReply())
			send()
			later := c.send(wire.OpGetData, &wire.PathWatchRequest{Path: "/"})
			frame, err := c.read()
			require.NoError(t, err)
			var h wire.ReplyHeader
			h.Decode(wire.NewDecoder(frame))
			assert.Equal(t, later, h.Xid, op)
			assert.Equal(t, 1, rule.Fired())
			rule.Remove()
			send()
			frame, err = c.read()
			require.NoError(t, err, "%s is answered again", op)
			assert.NotEmpty(t, frame)
		}
		assert.True(t, c.exists("/a"), "applied")
	})
}

func TestCodesThatNoServerHas(t *testing.T) {
	for _, code := range []int32{0, 101} {
		assert.PanicsWithValue(t, fmt.Sprintf("zktest: Fail(%d): ZooKeeper's codes are negative, such as -101", code), func() { zktest.Fail(code) })
	}
}

// They would panic in a goroutine of the server.
func TestFaultsWithoutAFunction(t *testing.T) {
	assert.PanicsWithValue(t, "zktest: Call without a function", func() { zktest.Call(nil) })
	assert.PanicsWithValue(t, "zktest: Choose without a function", func() { zktest.Choose(nil) })
	assert.PanicsWithValue(t, "zktest: DelayBy without a distribution", func() { zktest.DelayBy(1, nil) })
}
