package zktest_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestSessionsExpireOnTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(time.Second))
		started := time.Now()
		time.Sleep(300 * time.Millisecond)
		watcher := begin(t, srv, 20*time.Second)
		c := begin(t, srv, 5*time.Second)
		c.create("/b", wire.FlagEphemeral)
		c.create("/a", wire.FlagEphemeral)
		watcher.must(wire.OpGetData, watch("/a"), nil)
		watcher.must(wire.OpGetData, watch("/b"), nil)

		time.Sleep(4 * time.Second)
		assert.True(t, c.exists("/a")) // at 4.3 s: the client is heard again
		_, err := c.read()
		assert.Equal(t, io.EOF, err, "the connection ends with the session")
		assert.Equal(t, 10*time.Second, time.Since(started), "on the tick after 4.3 s + 5 s")
		assert.False(t, watcher.exists("/a"))
		require.Len(t, watcher.events, 2)
		assert.Equal(t, "/a", watcher.events[0].Path, "in the order of the paths")
		assert.Equal(t, "/b", watcher.events[1].Path)
	})
}

func TestSilentConnectionKeepsNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a, b := begin(t, srv, 4*time.Second), begin(t, srv, 4*time.Second)
		require.NoError(t, srv.WaitSessionGone(context.Background(), a.session))
		assert.Empty(t, srv.Sessions(), "both, on one tick")
		_, err := b.read()
		assert.Equal(t, io.EOF, err)
	})
}

func TestReconnectTakesTheSessionOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a := begin(t, srv, 8*time.Second)
		a.must(wire.OpGetData, watch("/"), nil)
		time.Sleep(5 * time.Second)
		b := dial(t, srv)
		require.NoError(t, b.hello(12*time.Second, a.session, a.password))
		_, err := a.read()
		assert.Equal(t, io.EOF, err, "the older connection is closed")
		assert.Empty(t, srv.Watches(), "its watches are gone")
		assert.Equal(t, 12*time.Second, srv.Sessions()[0].Timeout, "the timeout is the new one")

		wrong := dial(t, srv)
		require.NoError(t, wrong.hello(12*time.Second, a.session, make([]byte, 16)))
		assert.Zero(t, wrong.session)
		begun := time.Now()
		require.NoError(t, srv.WaitSessionGone(context.Background(), a.session))
		assert.InDelta(t, 13*time.Second, time.Since(begun), float64(time.Second))
	})
}

func TestStopStopsTheClockOfSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a := begin(t, srv, 4*time.Second)
		require.NoError(t, srv.Stop())
		time.Sleep(time.Hour)
		require.NoError(t, srv.Restart())
		begun := time.Now()
		require.NoError(t, srv.WaitSessionGone(context.Background(), a.session))
		assert.InDelta(t, 5*time.Second, time.Since(begun), float64(time.Second), "a full timeout from the restart")
	})
}

func TestFreezeHoldsWhatIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a, b := begin(t, srv, 10*time.Second), begin(t, srv, 4*time.Second)
		b.create("/b", wire.FlagEphemeral)
		a.must(wire.OpGetData, watch("/b"), nil)

		srv.Freeze()
		srv.Freeze() // twice is once
		xid := a.send(wire.OpCreate, createReq("/a"))
		late := dial(t, srv)
		go func() { _ = late.hello(10*time.Second, 0, nil) }()
		require.NoError(t, srv.WaitSessionGone(context.Background(), b.session), "sessions age and expire")
		synctest.Wait()
		assert.Zero(t, srv.Requests()["delete"])
		assert.Equal(t, 1, srv.Requests()["create"], "nothing is handled")
		assert.Len(t, srv.Sessions(), 1, "nobody gets a session")

		srv.Thaw()
		srv.Thaw()
		code, err := a.receive(xid, nil)
		require.NoError(t, err)
		require.Zero(t, code)
		require.Len(t, a.events, 1, "the event comes first")
		_, err = b.read()
		assert.Equal(t, io.EOF, err, "only now does b hear that its session is over")
		synctest.Wait()
		assert.Len(t, srv.Sessions(), 2)
	})
}

func TestCutWhileFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a, b := begin(t, srv, 10*time.Second), begin(t, srv, 4*time.Second)
		srv.Freeze()
		a.send(wire.OpCreate, createReq("/a"))
		require.NoError(t, srv.WaitSessionGone(context.Background(), b.session))
		synctest.Wait()
		require.NoError(t, srv.Disconnect(a.session))
		_, err := a.read()
		require.Error(t, err)
		require.NoError(t, srv.Restart(), "a server that was frozen runs after it")
		again, err := a.again(srv)
		require.NoError(t, err)
		assert.False(t, again.exists("/a"))
	})
}

func TestLatencyMakesRoundTripsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const oneWay = 3 * time.Millisecond
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(oneWay))
		begun := time.Now()
		trips := func() time.Duration {
			d := time.Since(begun)
			begun = time.Now()
			return d / (2 * oneWay)
		}
		a := begin(t, srv, 10*time.Second)
		assert.EqualValues(t, 2, trips(), "connection and handshake")
		a.create("/a", 0)
		assert.EqualValues(t, 1, trips())
		x, y := a.send(wire.OpCreate, createReq("/x")), a.send(wire.OpGetChildren, &wire.PathWatchRequest{Path: "/"})
		for _, xid := range []int32{x, y} {
			_, err := a.receive(xid, nil)
			require.NoError(t, err)
		}
		assert.EqualValues(t, 1, trips(), "what leaves together costs one trip")
		srv.SetLatency(5 * oneWay)
		a.create("/b", 0)
		assert.EqualValues(t, 5, trips())

		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_, err := srv.DialContext(ctx, "tcp", srv.ConnectString())
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestDelayHoldsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a, b := begin(t, srv, 10*time.Second), begin(t, srv, 10*time.Second)
		rule := srv.On(zktest.Match{Op: "create", Session: a.session}, zktest.Delay(2*time.Second))
		begun := time.Now()
		first := a.send(wire.OpCreate, createReq("/a"))
		second := a.send(wire.OpExists, watch("/a"))
		b.create("/b", 0)
		assert.Zero(t, time.Since(begun), "others do not wait")
		_, err := a.receive(first, nil)
		require.NoError(t, err)
		code, err := a.receive(second, nil)
		require.NoError(t, err)
		assert.Zero(t, code)
		assert.Equal(t, 2*time.Second, time.Since(begun))

		xid := a.send(wire.OpCreate, createReq("/late"))
		time.Sleep(time.Second)
		require.NoError(t, srv.Disconnect(a.session))
		_, err = a.receive(xid, nil)
		require.Error(t, err)
		rule.Remove()
		time.Sleep(time.Minute / 10)
		assert.False(t, b.exists("/late"), "a request on a connection that is gone is not applied")
	})
}

func TestSweepRemovesContainersAndTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.SweepInterval(10*time.Second), zktest.SessionTimeouts(time.Hour, time.Hour))
		c := begin(t, srv, time.Hour)
		container := func(path string) {
			c.must(wire.OpCreateContainer, &wire.CreateRequest{Path: path, ACL: open, Flags: wire.FlagContainer}, nil)
		}
		ttl := func(path string, d time.Duration) {
			c.must(wire.OpCreateTTL, &wire.CreateTTLRequest{
				CreateRequest: wire.CreateRequest{Path: path, ACL: open, Flags: wire.FlagPersistentTTL}, TTL: d.Milliseconds(),
			}, nil)
		}
		use := func(path string) {
			c.create(path+"/c", 0)
			c.must(wire.OpDelete, &wire.PathVersionRequest{Path: path + "/c", Version: -1}, nil)
		}
		container("/never")
		container("/used")
		use("/used")
		ttl("/short", 5*time.Second)
		ttl("/long", 15*time.Second)
		c.must(wire.OpGetData, watch("/used"), nil)

		time.Sleep(9 * time.Second)
		assert.True(t, c.exists("/used"))
		time.Sleep(2 * time.Second)
		assert.False(t, c.exists("/used"))
		require.Len(t, c.events, 1)
		assert.False(t, c.exists("/short"))
		assert.True(t, c.exists("/long"))
		time.Sleep(10 * time.Second)
		assert.False(t, c.exists("/long"))
		assert.True(t, c.exists("/never"), "a container that never had a child stays")

		use("/never")
		srv.SweepContainers()
		assert.False(t, c.exists("/never"))
		time.Sleep(time.Minute)

		quiet := zktest.Start(t, zktest.InMemory(), zktest.SweepInterval(0))
		c = begin(t, quiet, 30*time.Second)
		container("/k")
		use("/k")
		time.Sleep(20 * time.Second)
		assert.True(t, c.exists("/k"), "nobody sweeps")
	})
}

func TestHandshakeMustComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := dial(t, srv)
		begun := time.Now()
		_, err := c.read()
		assert.Equal(t, io.EOF, err)
		assert.Equal(t, 10*time.Second, time.Since(begun))
	})
}

func TestTimeoutIsNegotiated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			opts        []zktest.Option
			asked, want time.Duration
		}{
			{nil, time.Second, 4 * time.Second},
			{nil, 10 * time.Second, 10 * time.Second},
			{nil, time.Hour, 40 * time.Second},
			{[]zktest.Option{zktest.Tick(100 * time.Millisecond)}, time.Hour, 2 * time.Second},
			{[]zktest.Option{zktest.Tick(time.Second), zktest.SessionTimeouts(time.Minute, time.Hour)}, 0, time.Minute},
			{nil, -time.Second, 4 * time.Second},
		} {
			srv := zktest.Start(t, append(tc.opts, zktest.InMemory())...)
			begin(t, srv, tc.asked)
			assert.Equal(t, tc.want, srv.Sessions()[0].Timeout, "%v", tc.asked)
		}
	})
}

func TestWaitSeesWhatLastsForAnInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := begin(t, srv, 10*time.Second)
		done := make(chan error, 1)
		go func() { done <- srv.WaitChildren(context.Background(), "/p", 2) }()
		synctest.Wait()
		req := wire.MultiRequest{}
		req.Ops = append(req.Ops, wire.MultiOp{Op: wire.OpCreate, Request: createReq("/p")})
		c.must(wire.OpMulti, &req, nil)
		for i := range 5 {
			c.send(wire.OpCreate, createReq(fmt.Sprintf("/p/%d", i)))
		}
		require.NoError(t, <-done)
	})
}

func TestClientThatDoesNotReadIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := begin(t, srv, 10*time.Second), begin(t, srv, 10*time.Second)
		c.must(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, 1_000_000), ACL: open}, nil)
		for range 100 {
			c.send(wire.OpGetData, &wire.PathWatchRequest{Path: "/big"})
		}
		synctest.Wait()
		assert.Less(t, srv.Requests()["getData"], 100)
		assert.Empty(t, srv.Sessions()[0].Remote)
		assert.True(t, other.exists("/big"))
	})
}

func TestClientThatDoesNotReadDoesNotHoldUpClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := begin(t, srv, 10*time.Second)
		c.must(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, 1_000_000), ACL: open}, nil)
		for range 10 {
			c.send(wire.OpGetData, &wire.PathWatchRequest{Path: "/big"})
		}
		c.send(wire.OpCloseSession, wire.Empty{})
		synctest.Wait()
		require.NoError(t, srv.Close())
	})
}

// A server over TCP would stop the clock of the bubble, and the test would hang.
func TestServerOverTCPInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(100 * 24 * time.Hour)
		_, err := zktest.New()
		require.ErrorContains(t, err, "add InMemory")
		_, err = zktest.NewCluster(3)
		require.ErrorContains(t, err, "add InMemory")
		tb := &fakeTB{TB: t}
		srv := zktest.Start(tb, zktest.InMemory())
		c := begin(t, srv, 10*time.Second)
		tb.cleanups[0]()
		assert.Empty(t, tb.errors)
		assert.Equal(t, []string{fmt.Sprintf("zktest: session %#x is connected at the end of the test: if a deadlock follows, its client was not closed", c.session)}, tb.logs)
	})
}

// A client that has closed its connection just now is not named.
func TestConnectionThatHasJustEndedInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		srv := zktest.Start(tb, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := begin(t, srv, 10*time.Second)
		require.NoError(t, c.nc.Close())
		tb.cleanups[0]()
		assert.Empty(t, tb.logs)
	})
}
