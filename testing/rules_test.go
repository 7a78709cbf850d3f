package zktest_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

func createReq(path string) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, Data: []byte("data"), ACL: open}
}

func TestCutBefore(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		a := begin(t, srv, 10*time.Second)
		rule := srv.On(zktest.Match{Op: "create", Path: "/x"}, zktest.CutBefore())
		a.create("/y", 0)
		_, err := a.call(wire.OpCreate, createReq("/x"), nil)
		require.Error(t, err)
		assert.Equal(t, 1, rule.Fired())
		rule.Remove()
		rule.Remove()
		b, err := a.again(srv)
		require.NoError(t, err)
		assert.False(t, b.exists("/x"))
		b.create("/x", 0)
		assert.Equal(t, 1, rule.Fired())
	})
}

func TestCutAfter(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		a := begin(t, srv, 10*time.Second)
		a.must(wire.OpGetChildren, watch("/"), nil)
		srv.On(zktest.Match{Op: "create", Path: "/x"}, zktest.CutAfter())
		y := a.send(wire.OpCreate, createReq("/y"))
		x := a.send(wire.OpCreate, createReq("/x"))
		code, err := a.receive(y, nil)
		require.NoError(t, err, "replies to earlier requests go out")
		require.Zero(t, code)
		require.Len(t, a.events, 1, "events too")
		_, err = a.receive(x, nil)
		assert.Equal(t, io.EOF, err)
		b, err := a.again(srv)
		require.NoError(t, err)
		assert.True(t, b.exists("/x"))
	})
}

func TestFail(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory())
	a := begin(t, srv, 10*time.Second)
	rule := srv.On(zktest.Match{Op: "create", Nth: 2}, zktest.Fail(int32(wire.CodeThrottledOp)))
	a.create("/1", 0)
	code, err := a.call(wire.OpCreate, createReq("/2"), nil)
	require.NoError(t, err)
	assert.Equal(t, wire.CodeThrottledOp, code)
	assert.False(t, a.exists("/2"))
	a.create("/2", 0)
	assert.Equal(t, 1, rule.Fired())
}

func TestCall(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory())
	a, b := begin(t, srv, 10*time.Second), begin(t, srv, 10*time.Second)
	var seen []zktest.Request
	srv.On(zktest.Match{Op: "create", Func: func(r zktest.Request) bool { return r.Session == a.session }},
		zktest.Call(func(r zktest.Request) {
			seen = append(seen, r)
			assert.NoError(t, srv.ExpireSession(b.session)) // a verb from inside
		}))
	b.create("/b", wire.FlagEphemeral)
	a.must(wire.OpCreate, createReq("/a"), nil)
	assert.Equal(t, []zktest.Request{{Op: "create", Path: "/a", Session: a.session, Data: []byte("data"), Paths: []string{"/a"}}}, seen)
	assert.False(t, a.exists("/b"))
}

func TestCallMayStopAndCloseTheServer(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		a := begin(t, srv, 10*time.Second)
		done := make(chan error, 1)
		srv.On(zktest.Match{Op: "create"}, zktest.Call(func(zktest.Request) { done <- srv.Restart() }))
		_, err := a.call(wire.OpCreate, createReq("/a"), nil)
		require.Error(t, err)
		require.NoError(t, <-done)
		b, err := a.again(srv)
		require.NoError(t, err)
		assert.False(t, b.exists("/a"), "the connection was over before the request was handled")

		srv.On(zktest.Match{Op: "delete"}, zktest.Call(func(zktest.Request) { done <- srv.Close() }))
		_, err = b.call(wire.OpDelete, &wire.PathVersionRequest{Path: "/a"}, nil)
		require.Error(t, err)
		require.NoError(t, <-done)
	})
}

func TestMatchSelects(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory())
	a, b := begin(t, srv, 10*time.Second), begin(t, srv, 10*time.Second)
	count := func(m zktest.Match) *zktest.Rule { return srv.On(m, zktest.Call(func(zktest.Request) {})) }
	all, bs, locks, pings, connects := count(zktest.Match{}), count(zktest.Match{Session: b.session}),
		count(zktest.Match{Path: "/locks/*"}), count(zktest.Match{Op: "ping"}), count(zktest.Match{Op: "connect"})
	exact := count(zktest.Match{Op: "multi", Path: "/locks/b"})

	a.create("/locks", 0)
	a.create("/locks/a", 0)
	b.must(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
		{Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/", Version: -1}},
		{Op: wire.OpCreate, Request: createReq("/locks/b")},
	}}, nil)
	b.must(wire.OpGetChildren, &wire.PathWatchRequest{Path: "/locks"}, nil)
	b.must(wire.OpSetData, &wire.SetDataRequest{Path: "/locks/b", Version: -1}, nil)
	b.must(wire.OpSetACL, &wire.SetACLRequest{Path: "/locks/b", ACL: open, Version: -1}, nil)
	b.must(wire.OpGetACL, &wire.PathRequest{Path: "/locks/b"}, nil)
	b.must(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/locks/b"}, nil)
	b.must(wire.OpRemoveWatches, &wire.WatchesRequest{Path: "/locks/b", Type: wire.WatchAny}, nil)
	b.must(wire.OpCreateTTL, &wire.CreateTTLRequest{
		CreateRequest: wire.CreateRequest{Path: "/locks/t", ACL: open, Flags: wire.FlagPersistentTTL}, TTL: 5,
	}, nil)
	a.must(wire.OpDelete, &wire.PathVersionRequest{Path: "/locks/a"}, nil)
	begin(t, srv, 10*time.Second)

	assert.Equal(t, 12, all.Fired())
	assert.Equal(t, 8, bs.Fired())
	assert.Equal(t, 9, locks.Fired())
	assert.Zero(t, pings.Fired())
	assert.Equal(t, 1, connects.Fired())
	assert.Equal(t, 1, exact.Fired())
	assert.PanicsWithValue(t, "zktest: Match.Path: syntax error in pattern \"[\"", func() {
		srv.On(zktest.Match{Path: "["}, zktest.CutBefore())
	})
}

func TestRulesThatCouldNeverFireAreRefused(t *testing.T) {
	srv := zktest.Start(t)
	for _, op := range []string{"", "create", "getData", "multiRead", "deleteContainer", "ping", "connect", "sasl", "unknown"} {
		assert.True(t, zktest.ValidMatch(zktest.Match{Op: op}), op)
	}
	for _, m := range []zktest.Match{{Op: "get"}, {Op: "Create"}, {Op: "op 12"}, {Path: "["}, {Nth: -1}} {
		assert.False(t, zktest.ValidMatch(m), "%+v", m)
		assert.Panics(t, func() { srv.On(m, zktest.CutBefore()) }, "%+v", m)
	}
	assert.PanicsWithValue(t, `zktest: Match.Op: unknown operation "get"; see Match for their names`, func() { srv.On(zktest.Match{Op: "get"}, zktest.CutBefore()) })
}

func TestConnectFaults(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory())
	a := begin(t, srv, 10*time.Second)

	rule := srv.On(zktest.Match{Op: "connect"}, zktest.CutBefore())
	require.Error(t, dial(t, srv).hello(time.Second, 0, nil))
	assert.Len(t, srv.Sessions(), 1)
	rule.Remove()

	rule = srv.On(zktest.Match{Op: "connect"}, zktest.CutAfter())
	require.Error(t, dial(t, srv).hello(time.Second, 0, nil))
	assert.Len(t, srv.Sessions(), 2, "a session that its client does not know")
	_, err := a.again(srv)
	require.Error(t, err)
	rule.Remove()

	rule = srv.On(zktest.Match{Op: "connect", Session: a.session}, zktest.Fail(int32(wire.CodeSessionExpired)))
	b, err := a.again(srv)
	require.NoError(t, err)
	assert.Zero(t, b.session)
	rule.Remove()
	b, err = a.again(srv)
	require.NoError(t, err)
	assert.Equal(t, a.session, b.session)
}

func TestRandomIsReplayedBySeed(t *testing.T) {
	play := func(seed uint64) (outcomes []string) {
		srv, err := zktest.New(zktest.InMemory())
		require.NoError(t, err)
		defer srv.Close()
		rule := srv.On(zktest.Match{Op: "create"}, zktest.Random(seed,
			zktest.CutBefore(), zktest.CutAfter(), zktest.Random(seed, zktest.Fail(-101), zktest.Fail(-127))))
		c := begin(t, srv, 10*time.Second)
		for range 60 {
			code, err := c.call(wire.OpCreate, &wire.CreateRequest{Path: "/n-", ACL: open, Flags: wire.FlagSequence}, nil)
			if err != nil {
				outcomes = append(outcomes, "cut")
				c, err = c.again(srv)
				require.NoError(t, err)
				continue
			}
			outcomes = append(outcomes, code.String())
		}
		kinds := make(map[string]int)
		for _, o := range outcomes {
			kinds[o]++
		}
		assert.Len(t, kinds, 4, "%v", kinds)
		assert.Equal(t, 60-kinds["ok"], rule.Fired())
		return outcomes
	}
	assert.Equal(t, play(1), play(1))
	assert.NotEqual(t, play(1), play(2))
}

func TestFailedAuthEndsTheConnection(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory())
	a := begin(t, srv, 10*time.Second)
	srv.On(zktest.Match{Op: "auth"}, zktest.Fail(int32(wire.CodeAuthFailed)))
	code, err := a.call(wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: []byte("bob:secret")}, nil)
	require.NoError(t, err)
	assert.Equal(t, wire.CodeAuthFailed, code)
	_, err = a.read()
	assert.Equal(t, io.EOF, err)

	b := begin(t, srv, 10*time.Second)
	code, err = b.call(wire.Op(999), wire.Empty{}, nil)
	require.NoError(t, err)
	assert.Equal(t, wire.CodeUnimplemented, code)
	assert.Equal(t, 1, srv.Requests()["unknown"])
}

func TestRuleThatMeetsNoRequestFailsTheTest(t *testing.T) {
	any1 := func(zktest.Request) bool { return false }
	for name, c := range map[string]struct {
		rule func(srv *zktest.Server)
		want string // "" if the test passes
	}{
		"another operation": {func(srv *zktest.Server) {
			srv.On(zktest.Match{Op: "create2", Path: "/services/*", Nth: 1}, zktest.CutAfter())
		}, "zktest: a rule met no request: cut after, on create2 of /services/*, number 1; it matched 0 times. Requests were 1 connect, 2 create, 1 getData"},
		"another session": {func(srv *zktest.Server) { srv.On(zktest.Match{Session: 7}, zktest.DropReply()) },
			"zktest: a rule met no request: drop the reply by session 0x7; it matched 0 times. Requests were 1 connect, 2 create, 1 getData"},
		"a higher number": {func(srv *zktest.Server) { srv.On(zktest.Match{Op: "create", Nth: 3}, zktest.Fail(-4)) },
			"zktest: a rule met no request: fail connection loss, on create, number 3; it matched 2 times. Requests were 1 connect, 2 create, 1 getData"},
		"a function is not asked": {func(srv *zktest.Server) { srv.On(zktest.Match{Op: "delete", Func: any1}, zktest.CutAfter()) },
			"zktest: a rule met no request: cut after, on delete; it matched 0 times. Requests were 1 connect, 2 create, 1 getData"},
		"a number of all requests": {func(srv *zktest.Server) { srv.On(zktest.Match{Nth: 100}, zktest.CutBefore()) }, ""},
		"one of a family fires": {func(srv *zktest.Server) {
			for _, op := range []string{"create", "setData", "delete"} {
				srv.On(zktest.Match{Op: op}, zktest.Delay(time.Microsecond))
			}
		}, ""},
		"it fires":           {func(srv *zktest.Server) { srv.On(zktest.Match{Op: "create"}, zktest.Delay(0)) }, ""},
		"a function says no": {func(srv *zktest.Server) { srv.On(zktest.Match{Func: any1}, zktest.CutAfter()) }, ""},
		"chance says no":     {func(srv *zktest.Server) { srv.On(zktest.Match{Op: "create"}, zktest.Random(1)) }, ""},
		"it was removed":     {func(srv *zktest.Server) { srv.On(zktest.Match{Op: "delete"}, zktest.CutAfter()).Remove() }, ""},
		"the test has asked": {func(srv *zktest.Server) { srv.On(zktest.Match{Op: "delete"}, zktest.CutAfter()).Fired() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tb := &fakeTB{TB: t}
			srv := zktest.Start(tb, zktest.InMemory())
			c.rule(srv)
			a := begin(t, srv, 10*time.Second)
			a.create("/a", 0)
			a.create("/b", 0)
			a.must(wire.OpGetData, &wire.PathWatchRequest{Path: "/a"}, nil)
			tb.cleanups[0]()
			if c.want == "" {
				assert.Empty(t, tb.errors)
				return
			}
			assert.Equal(t, []string{c.want}, tb.errors)
		})
	}
}
