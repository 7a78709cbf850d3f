package zktest_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A Keeper does not look at the session that a client asks for.
func TestKeeperTakesNoSessionUpAgain(t *testing.T) {
	for name, cut := range map[string]func(*zktest.Server){
		"lost connection": (*zktest.Server).DisconnectAll,
		"restart":         func(s *zktest.Server) { _ = s.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Keeper("26.7"))
				c := begin(t, srv, time.Second)
				assert.Equal(t, make([]byte, 16), c.password)
				c.create("/e", wire.FlagEphemeral)
				cut(srv)
				again, err := c.again(srv)
				require.NoError(t, err)
				assert.NotEqual(t, c.session, again.session)
				assert.True(t, again.exists("/e"), "the former session goes on")
				began := time.Now()
				for again.exists("/e") {
					time.Sleep(100 * time.Millisecond)
				}
				assert.InDelta(t, 10*time.Second, time.Since(began), float64(600*time.Millisecond), "the least timeout")
			})
		})
	}
}

// A client of later data is let in, and the end of a session has no answer.
func TestKeeperSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Keeper("26.7"))
		c := dial(t, srv)
		c.write(&wire.ConnectRequest{LastZxidSeen: 1000, Timeout: 200_000, Password: make([]byte, 16), HasReadOnly: true})
		frame, err := c.read()
		require.NoError(t, err)
		var res wire.ConnectResponse
		d := wire.NewDecoder(frame)
		res.Decode(d)
		require.NoError(t, d.Err())
		assert.False(t, res.HasReadOnly)
		assert.Equal(t, int32(100_000), res.Timeout)
		_, err = c.call(wire.OpCloseSession, wire.Empty{}, nil)
		require.ErrorIs(t, err, io.EOF)
		assert.Empty(t, srv.Sessions())
	})
}

func TestMemberOfKeepersWithoutALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.StartCluster(t, 3, zktest.InMemory(), zktest.Keeper("26.7"))
		require.NoError(t, cluster.WaitLeader(t.Context()))
		require.NoError(t, cluster.Member(1).Stop())
		require.NoError(t, cluster.Member(2).Stop())
		time.Sleep(time.Minute)
		c := dial(t, cluster.Member(0))
		c.write(&wire.ConnectRequest{Timeout: 10_000, Password: make([]byte, 16), HasReadOnly: true})
		frame, err := c.read()
		require.NoError(t, err)
		var res wire.ConnectResponse
		d := wire.NewDecoder(frame)
		res.Decode(d)
		require.NoError(t, d.Err())
		assert.Equal(t, int64(-1), res.SessionID)
		assert.Equal(t, int32(42), res.ProtocolVersion)
		_, err = c.read()
		require.Error(t, err)
	})
}

func TestWhatKeepersKnow(t *testing.T) {
	create := &wire.CreateRequest{Path: "/c", ACL: open, Flags: wire.FlagContainer}
	root := &wire.PathRequest{Path: "/"}
	for name, tc := range map[string]struct {
		op    wire.Op
		req   wire.Record
		knows map[string]bool
	}{
		"create2":         {wire.OpCreate2, &wire.CreateRequest{Path: "/a", ACL: open}, map[string]bool{"25.12": true, "26.7": true}},
		"check":           {wire.OpCheck, &wire.PathVersionRequest{Path: "/", Version: -1}, map[string]bool{"25.12": true, "26.7": true}},
		"addWatch":        {wire.OpAddWatch, &wire.AddWatchRequest{Path: "/"}, map[string]bool{"25.12": true, "26.7": true}},
		"createContainer": {wire.OpCreateContainer, create, map[string]bool{"26.7": true}},
		"createTTL":       {wire.OpCreateTTL, &wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{Path: "/t", ACL: open, Flags: wire.FlagPersistentTTL}, TTL: 1000}, map[string]bool{"26.7": true}},
		"a container in a multi": {wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{{Op: wire.OpCreateContainer, Request: create}}},
			map[string]bool{"26.7": true}},
		"getEphemerals":        {wire.OpGetEphemerals, root, nil},
		"getAllChildrenNumber": {wire.OpGetAllChildrenNumber, root, nil},
		"whoAmI":               {wire.OpWhoAmI, wire.Empty{}, nil},
		"sasl":                 {wire.OpSASL, &wire.SASLRequest{}, nil},
		"unreadable":           {wire.OpGetData, wire.Empty{}, nil},
		"unknown":              {500, root, nil},
	} {
		for _, version := range zktest.KeeperVersions() {
			t.Run(name+"/"+version, func(t *testing.T) {
				c := begin(t, zktest.Start(t, zktest.InMemory(), zktest.Keeper(version)), time.Second)
				code, err := c.call(tc.op, tc.req, nil)
				if !tc.knows[version] {
					require.Error(t, err, "no answer")
					return
				}
				require.NoError(t, err)
				assert.Equal(t, wire.CodeOK, code)
			})
		}
	}
}

// An operation of a multiRead that is refused has its own type, and no body.
func TestKeeperRefusesReads(t *testing.T) {
	c := begin(t, zktest.Start(t, zktest.InMemory(), zktest.Keeper("25.12")), time.Second)
	ops := []wire.MultiOp{
		{Op: wire.OpGetData, Request: &wire.PathWatchRequest{Path: "/none"}},
		{Op: wire.OpGetChildren, Request: &wire.PathWatchRequest{Path: "/"}},
	}
	var res wire.MultiResponse
	xid := c.send(wire.OpMultiRead, &wire.MultiRequest{Ops: ops})
	frame, err := c.read()
	require.NoError(t, err)
	body := frame[wire.ReplyHeaderLen:]
	assert.Equal(t, []byte{0, 0, 0, 4, 0, 0xff, 0xff, 0xff, 0x9b, 0, 0, 0, 8}, body[:13], "getData, not done, no node; then the next")
	d := wire.NewDecoder(body)
	res.Decode(d)
	require.NoError(t, d.Err(), xid)
	require.Len(t, res.Results, 2)
	assert.Equal(t, wire.MultiResult{Op: wire.OpError, Code: wire.CodeNoNode}, res.Results[0])
	assert.Equal(t, wire.OpGetChildren, res.Results[1].Op)
}

// A container has an owner that is no session.
func TestContainersOfAKeeper(t *testing.T) {
	c := begin(t, zktest.Start(t, zktest.InMemory(), zktest.Keeper("26.7")), time.Second)
	c.must(wire.OpCreateContainer, &wire.CreateRequest{Path: "/c", ACL: open, Flags: wire.FlagContainer}, nil)
	c.send(wire.OpExists, &wire.PathWatchRequest{Path: "/c"})
	frame, err := c.read()
	require.NoError(t, err)
	var stat wire.StatResponse
	stat.Decode(wire.NewDecoder(frame[wire.ReplyHeaderLen:]))
	assert.Zero(t, stat.Stat.EphemeralOwner, "as our client reads it")
	owner := frame[wire.ReplyHeaderLen+4*8+3*4:]
	assert.Equal(t, []byte{0x80, 0, 0, 0, 0, 0, 0, 0}, owner[:8], "as it is sent")
	c.create("/c/p", 0)
	var res wire.StatResponse
	c.must(wire.OpExists, &wire.PathWatchRequest{Path: "/c/p"}, &res)
	assert.Zero(t, res.Stat.EphemeralOwner)
}

func TestWordsOfAKeeper(t *testing.T) {
	srv := zktest.Start(t, zktest.Keeper("26.7"))
	assert.Contains(t, say(t, srv, "srvr"), "ClickHouse Keeper version: v26.7-zktest\nLatency")
	assert.Contains(t, say(t, srv, "stat"), "ClickHouse Keeper version: v26.7-zktest\nClients")
	assert.Contains(t, say(t, srv, "mntr"), "zk_version\tv26.7-zktest\n")
	assert.Contains(t, say(t, srv, "envi"), "clickhouse.keeper.version=v26.7-zktest\n")
	assert.Empty(t, say(t, srv, "dump"), "it hangs up")
	assert.NotEmpty(t, say(t, zktest.Start(t, zktest.Keeper("26.7"), zktest.FourLetterWords("*")), "dump"))
}

func TestKeeperRefusesOptions(t *testing.T) {
	for want, opts := range map[string][]zktest.Option{
		`Keeper "26", want one of ["25.12" "26.7"]`: {zktest.Keeper("26")},
		"Keeper and Version exclude each other":     {zktest.Keeper("26.7"), zktest.Version("3.9")},
		"Keeper knows no SASL: leave SASLUsers out": {zktest.Keeper("26.7"), zktest.SASLUsers(map[string]string{"a": "b"})},
	} {
		_, err := zktest.New(append(opts, zktest.InMemory())...)
		require.EqualError(t, err, "zktest: "+want)
	}
}
