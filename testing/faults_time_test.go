package zktest_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a, b := begin(t, srv, 10*time.Second), begin(t, srv, 10*time.Second)

		srv.Stall(a.session, zktest.FromClient)
		xid := a.send(wire.OpCreate, createReq("/a"))
		synctest.Wait()
		assert.False(t, b.exists("/a"), "held before it is applied")
		srv.Unstall(a.session)
		_, err := a.receive(xid, nil)
		require.NoError(t, err)

		srv.Stall(a.session, zktest.ToClient)
		xid = a.send(wire.OpCreate, createReq("/b"))
		synctest.Wait()
		assert.True(t, b.exists("/b"), "applied, and the reply is held")
		time.Sleep(5 * time.Second)
		a.write(&wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing})
		time.Sleep(8 * time.Second)
		assert.Len(t, srv.Sessions(), 1, "what a sends keeps its session alive; b was silent")
		srv.Unstall(a.session)
		_, err = a.receive(xid, nil)
		require.NoError(t, err)

		srv.Stall(0, zktest.BothWays)
		late := dial(t, srv)
		a.nc.Close()
		again := make(chan error)
		go func() { again <- late.hello(10*time.Second, a.session, a.password) }()
		require.NoError(t, srv.WaitSessionGone(context.Background(), a.session), "expires behind the stall")
		srv.Unstall(0)
		require.NoError(t, <-again)
		assert.Zero(t, late.session)
	})
}

func TestAdvanceAndMoveClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Superuser("super:lK75jTNcA+U9vtVEw5vB51mj/w4="))
		short, long := begin(t, srv, 10*time.Second), begin(t, srv, 40*time.Second)
		short.create("/e", wire.FlagEphemeral)
		var res wire.Create2Response
		long.must(wire.OpCreateTTL, &wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{Path: "/t", ACL: open, Flags: wire.FlagPersistentTTL}, TTL: 20_000}, &res)
		begun := time.Now()
		srv.Advance(30 * time.Second)
		assert.False(t, long.exists("/e"), "a session of ten seconds is over")
		assert.True(t, long.exists("/t"), "no sweep was due")
		srv.Advance(30 * time.Second)
		assert.Zero(t, time.Since(begun))
		assert.Len(t, srv.Sessions(), 1, "the other was heard in between")
		assert.False(t, long.exists("/t"), "swept after a minute")
		long.must(wire.OpCreate2, createReq("/later"), &res)
		assert.Equal(t, time.Now().Add(time.Minute).UnixMilli(), res.Stat.Ctime)
		srv.MoveClock(-2 * time.Hour)
		long.must(wire.OpCreate2, createReq("/earlier"), &res)
		assert.Equal(t, time.Now().Add(time.Minute-2*time.Hour).UnixMilli(), res.Stat.Ctime)
		time.Sleep(39 * time.Second)
		assert.Len(t, srv.Sessions(), 1)
		time.Sleep(4 * time.Second)
		assert.Empty(t, srv.Sessions(), "sessions age as before")
	})
}

// The server disconnects a client that connects and asks for no session.
func TestHandshakeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.WithLimits(zktest.Limits{Handshake: 3 * time.Second}))
		c, begun := dial(t, srv), time.Now()
		_, err := c.nc.Write([]byte{0, 0})
		require.NoError(t, err)
		_, err = c.read()
		require.ErrorIs(t, err, io.EOF)
		assert.Equal(t, 3*time.Second, time.Since(begun))
	})
}

// A client lets a session of thirty seconds expire and comes back. The
// machine may be busy for once.
func TestExpiryCostsNoTime(t *testing.T) {
	best := time.Hour
	for range 5 {
		begun := time.Now()
		expireAndReturn(t)
		best = min(best, time.Since(begun))
	}
	t.Logf("%v of wall time", best)
	assert.Less(t, best, 50*time.Millisecond)
}

func expireAndReturn(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a := begin(t, srv, 30*time.Second)
		a.create("/e", wire.FlagEphemeral)
		time.Sleep(40 * time.Second)
		again, err := a.again(srv)
		require.NoError(t, err)
		assert.Zero(t, again.session)
		assert.False(t, begin(t, srv, 30*time.Second).exists("/e"))
	})
}

// simulate has clients that go on whatever happens to them, for a minute, and
// returns what was fired and what the clients saw.
func simulate(t *testing.T, seed uint64, replay []zktest.Fired) (log []zktest.Fired, seen string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := zktest.StartCluster(t, 3, zktest.InMemory(), zktest.Seed(seed), zktest.Tick(time.Second),
			zktest.LatencyBy(zktest.Uniform(time.Millisecond, 9*time.Millisecond)), zktest.Transcript())
		playing := c.Play(zktest.Plan{
			Seed: seed, Rate: 0.2, Match: zktest.Match{Func: func(r zktest.Request) bool { return r.Op != "ping" }},
			Faults: []zktest.Fault{zktest.CutBefore(), zktest.CutAfter(), zktest.CutReply(7), zktest.Delay(time.Second), zktest.Fail(-4)},
			Pause:  zktest.Exponential(3*time.Second, 20*time.Second), Verbs: c.Verbs(8 * time.Second),
			Replay: replay,
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		var logs [3]strings.Builder
		for i := range logs {
			wg.Go(func() { wander(ctx, c, fmt.Sprint("client", i), &logs[i]) })
		}
		wg.Wait()
		playing.Stop()
		log = playing.Log()
		var b strings.Builder
		for i := range logs {
			b.WriteString(logs[i].String())
		}
		require.NoError(t, c.WriteTranscript(&b))
		seen = b.String()
	})
	return log, seen
}

// wander connects to one member after the other and makes nodes.
func wander(ctx context.Context, c *zktest.Cluster, name string, log io.Writer) {
	addrs := strings.Split(c.ConnectString(), ",")
	pause := rand.New(rand.NewPCG(uint64(len(name)), uint64(name[len(name)-1])))
	dial := c.Dialer(name)
	var session int64
	var password []byte
	for i := 0; ctx.Err() == nil; i++ {
		timer := time.NewTimer(time.Duration(pause.Int64N(int64(time.Second))))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		nc, err := dial(ctx, "tcp", addrs[i%len(addrs)])
		if err != nil {
			fmt.Fprintln(log, name, "dial failed")
			continue
		}
		stop := context.AfterFunc(ctx, func() { nc.Close() })
		p := &client{nc: nc}
		session, password = p.wander(log, name, session, password)
		stop()
		nc.Close()
	}
}

func (c *client) wander(log io.Writer, name string, session int64, password []byte) (int64, []byte) {
	c.r = newReader(c.nc)
	if password == nil {
		password = make([]byte, 16)
	}
	c.write(&wire.ConnectRequest{Timeout: 4000, SessionID: session, Password: password, HasReadOnly: true})
	frame, err := c.read()
	if err != nil {
		return session, password
	}
	var res wire.ConnectResponse
	res.Decode(wire.NewDecoder(frame))
	fmt.Fprintf(log, "%s session %#x\n", name, res.SessionID)
	for i := range int32(20) {
		c.write(&wire.RequestHeader{Xid: i, Op: wire.OpCreate}, &wire.CreateRequest{Path: "/" + name, Flags: wire.FlagEphemeralSequence, ACL: open})
		frame, err := c.read()
		if err != nil {
			break
		}
		fmt.Fprintf(log, "%s %d %x\n", name, i, frame)
	}
	if res.SessionID == 0 {
		return 0, nil
	}
	return res.SessionID, append([]byte(nil), res.Password...)
}

func lines(log []zktest.Fired) string {
	var b strings.Builder
	for _, f := range log {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

// requireSame compares to the byte and shows the first line that differs.
func requireSame(t *testing.T, want, got string) {
	t.Helper()
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		require.Equal(t, w[i], g[i], "line %d, after %s", i, w[max(0, i-1)])
	}
	require.Equal(t, len(w), len(g), "%s\n%s", strings.Join(w[max(0, len(w)-5):], "\n"), strings.Join(g[max(0, len(g)-5):], "\n"))
}

// The same seed fires the same faults in the same order, and its log brings
// them about again; another seed fires others.
func TestPlanRepeats(t *testing.T) {
	first, seen := simulate(t, 1, nil)
	require.Greater(t, len(first), 10)
	for range 3 {
		again, seenAgain := simulate(t, 1, nil)
		requireSame(t, lines(first), lines(again))
		requireSame(t, seen, seenAgain)
	}
	replayed, seenAgain := simulate(t, 1, first)
	requireSame(t, lines(first), lines(replayed))
	requireSame(t, seen, seenAgain)
	other, _ := simulate(t, 2, nil)
	assert.NotEqual(t, first, other)
	verbs, faults := 0, 0
	for _, f := range first {
		if f.Verb != "" {
			verbs++
		} else {
			faults++
		}
	}
	t.Logf("%d verbs and %d faults, for instance %v", verbs, faults, first[0])
	assert.Positive(t, verbs)
	assert.Positive(t, faults)
}
