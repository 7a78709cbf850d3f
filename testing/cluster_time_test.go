package zktest_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// inCluster runs a test on a cluster of three, and sorts its members: the
// leader comes first.
func inCluster(t *testing.T, fn func(t *testing.T, c *zktest.Cluster, leader, f1, f2 int), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := zktest.StartCluster(t, 3, append([]zktest.Option{zktest.InMemory(), zktest.Tick(time.Second)}, opts...)...)
		leader := c.Leader()
		require.NotEqual(t, -1, leader)
		fn(t, c, leader, (leader+1)%3, (leader+2)%3)
	})
}

// assertOver reads until the server ends the connection.
func assertOver(t *testing.T, c *client) {
	t.Helper()
	for {
		if _, err := c.read(); err != nil {
			return
		}
	}
}

// live keeps sending pings for as long as the server answers.
func (c *client) live(every time.Duration) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c.write(&wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing})
			select {
			case <-time.After(every):
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

func TestMembersApplyOneLog(t *testing.T) {
	inCluster(t, func(t *testing.T, c *zktest.Cluster, leader, f1, f2 int) {
		a, b := begin(t, c.Member(f1), 10*time.Second), begin(t, c.Member(f2), 10*time.Second)
		code, err := b.call(wire.OpExists, watch("/x"), nil)
		require.NoError(t, err)
		assert.Equal(t, wire.CodeNoNode, code)
		a.create("/x", 0)
		assert.True(t, b.exists("/x"))
		require.Len(t, b.events, 1)
		var dumps [3]bytes.Buffer
		for i := range dumps {
			require.NoError(t, c.Member(i).Dump(&dumps[i]))
			assert.Equal(t, dumps[0].String(), dumps[i].String())
		}
		assert.Equal(t, f1, c.MemberOf(a.session))
		assert.Equal(t, f2, c.MemberOf(b.session))
	})
}

func TestLaggingFollowerIsStaleUntilSync(t *testing.T) {
	inCluster(t, func(t *testing.T, c *zktest.Cluster, leader, f1, f2 int) {
		a, b := begin(t, c.Member(leader), 10*time.Second), begin(t, c.Member(f1), 10*time.Second)
		c.Lag(f1, 300*time.Millisecond)
		a.create("/x", 0)
		assert.False(t, b.exists("/x"), "stale")
		before := time.Now()
		b.must(wire.OpSync, &wire.PathRequest{Path: "/"}, nil)
		assert.Equal(t, 300*time.Millisecond, time.Since(before))
		assert.True(t, b.exists("/x"))

		before = time.Now()
		first, second := b.send(wire.OpCreate, createReq("/y")), b.send(wire.OpCreate, createReq("/z"))
		read := b.send(wire.OpExists, &wire.PathWatchRequest{Path: "/z"})
		for _, xid := range []int32{first, second, read} {
			code, err := b.receive(xid, nil)
			require.NoError(t, err)
			assert.Equal(t, wire.CodeOK, code, "a client sees its own writes")
		}
		assert.Equal(t, 300*time.Millisecond, time.Since(before), "writes wait together, reads behind them")
		c.Lag(f1, 0)
	})
}

// A follower that is cut off from its leader goes on answering for syncLimit
// ticks, while the leader's clock for its sessions runs out.
func TestCutOffFollowerAnswersWhileItsSessionsExpire(t *testing.T) {
	inCluster(t, func(t *testing.T, c *zktest.Cluster, leader, f1, f2 int) {
		mine, other := begin(t, c.Member(f1), 2*time.Second), begin(t, c.Member(leader), 20*time.Second)
		mine.create("/mine", wire.FlagEphemeral)
		defer mine.live(300 * time.Millisecond)()
		defer other.live(time.Second)()
		time.Sleep(4 * time.Second)
		require.Len(t, c.Sessions(), 2, "the leader hears of the client with the answers to its pings")

		time.Sleep(100 * time.Millisecond)
		c.Partition([]int{leader, f2}, []int{f1})
		cut := time.Now()
		require.NoError(t, c.WaitSessionGone(context.Background(), mine.session))
		assert.InDelta(t, 3*time.Second, time.Since(cut), float64(time.Second), "the timeout, from the last ping before the cut, to a tick")
		assert.Equal(t, []string{"/mine"}, c.Member(f1).Ephemerals(mine.session), "the follower does not know")
		assert.Empty(t, c.Ephemerals(0))
		assertOver(t, mine)
		assert.InDelta(t, 10*time.Second, time.Since(cut), float64(time.Second), "it has answered for ten ticks")

		c.Heal()
		require.NoError(t, c.WaitServing(context.Background()))
		again, err := mine.again(c.Member(f1))
		require.NoError(t, err)
		assert.Zero(t, again.session, "it is over")
	}, zktest.SyncLimit(10))
}

func TestWritesNeedAMajority(t *testing.T) {
	inCluster(t, func(t *testing.T, c *zktest.Cluster, leader, f1, f2 int) {
		old, next := begin(t, c.Member(leader), 20*time.Second), begin(t, c.Member(f1), 20*time.Second)
		old.create("/before", 0)
		c.Partition([]int{leader}, []int{f1, f2})
		assert.Equal(t, -1, c.Leader())
		old.send(wire.OpCreate, createReq("/lost"))
		held := next.send(wire.OpCreate, createReq("/held"))
		assertOver(t, old)
		_, err := next.receive(held, nil)
		require.Error(t, err, "followers that hear no leader serve nobody")

		require.NoError(t, c.WaitLeader(context.Background()))
		assert.NotEqual(t, leader, c.Leader())
		moved, err := next.again(c.Member(f2))
		require.NoError(t, err)
		require.NotZero(t, moved.session, "the session has moved")
		assert.True(t, moved.exists("/before"))
		assert.False(t, moved.exists("/held"))
		moved.create("/after", wire.FlagEphemeral)

		late := dial(t, c.Member(leader))
		require.Error(t, late.hello(10*time.Second, 0, nil), "the old leader serves nobody")
		c.Heal()
		require.NoError(t, c.WaitServing(context.Background()))
		back, err := old.again(c.Member(leader))
		require.NoError(t, err)
		require.NotZero(t, back.session)
		assert.True(t, back.exists("/after"), "it has caught up")
		assert.False(t, back.exists("/lost"))
	})
}

func TestAShortPartitionLosesNothing(t *testing.T) {
	inCluster(t, func(t *testing.T, c *zktest.Cluster, leader, f1, f2 int) {
		a := begin(t, c.Member(f1), 20*time.Second)
		c.PartitionOneWay(leader, f1)
		first := a.send(wire.OpCreate, createReq("/a"))
		synctest.Wait()
		assert.Equal(t, 1, c.Requests()["create"])
		b := begin(t, c.Member(leader), 20*time.Second)
		assert.True(t, b.exists("/a"), "the leader heard")
		c.Partition([]int{leader, f2}, []int{f1})
		second := a.send(wire.OpCreate, createReq("/b"))
		time.Sleep(2 * time.Second)
		assert.False(t, b.exists("/b"))
		c.Heal()
		for _, xid := range []int32{first, second} {
			code, err := a.receive(xid, nil)
			require.NoError(t, err)
			assert.Equal(t, wire.CodeOK, code)
		}
		assert.True(t, b.exists("/b"))
		assert.Equal(t, leader, c.Leader())
	})
}

func TestLeaderIsKilled(t *testing.T) {
	inCluster(t, func(t *testing.T, c *zktest.Cluster, leader, f1, f2 int) {
		a := begin(t, c.Member(f1), 4*time.Second)
		a.create("/mine", wire.FlagEphemeral)
		zxid := a.zxid
		killed := time.Now()
		require.NoError(t, c.Member(leader).Stop())
		assertOver(t, a)
		assert.Zero(t, time.Since(killed), "a follower notices at once")
		require.NoError(t, c.WaitLeader(context.Background()))
		assert.Equal(t, 350*time.Millisecond, time.Since(killed))
		again, err := a.again(c.Member(c.Leader()))
		require.NoError(t, err)
		require.Equal(t, a.session, again.session)
		assert.True(t, again.exists("/mine"))
		again.create("/next", 0)
		assert.Greater(t, again.zxid>>32, zxid>>32, "another epoch")
		require.NoError(t, c.Member(leader).Restart())
		require.NoError(t, c.WaitServing(context.Background()))
		fresh := begin(t, c.Member(leader), 4*time.Second)
		assert.True(t, fresh.exists("/next"))

		now := c.Leader()
		c.Elect(f1)
		require.NoError(t, c.WaitServing(context.Background()))
		assert.Equal(t, f1, c.Leader())
		assert.NotEqual(t, f1, now)
	})
}

func TestElectionOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.StartCluster(t, 1, zktest.InMemory())
		c.Elect(0)
		assert.Equal(t, -1, c.Leader())
		require.NoError(t, c.WaitServing(t.Context()))
		assert.Equal(t, 0, c.Leader())
	})
}

func TestFrozenLeaderIsReplaced(t *testing.T) {
	inCluster(t, func(t *testing.T, c *zktest.Cluster, leader, f1, f2 int) {
		a := begin(t, c.Member(leader), 20*time.Second)
		c.Member(leader).Freeze()
		frozen := time.Now()
		a.send(wire.OpCreate, createReq("/a"))
		require.NoError(t, c.WaitLeader(context.Background()))
		assert.InDelta(t, 5*time.Second, time.Since(frozen), float64(time.Second))
		c.Member(leader).Thaw()
		assertOver(t, a)
		require.NoError(t, c.WaitServing(context.Background()))
		assert.False(t, begin(t, c.Member(leader), 10*time.Second).exists("/a"))
	})
}

func TestSessionMovesAndTheOldConnectionCannotWrite(t *testing.T) {
	inCluster(t, func(t *testing.T, c *zktest.Cluster, leader, f1, f2 int) {
		a := begin(t, c.Member(f1), 10*time.Second)
		a.create("/mine", wire.FlagEphemeral)
		b, err := a.again(c.Member(f2))
		require.NoError(t, err)
		require.Equal(t, a.session, b.session)
		assert.True(t, a.exists("/mine"), "reads go on")
		_, err = a.call(wire.OpCreate, createReq("/x"), nil)
		require.ErrorIs(t, err, io.EOF, "session moved")
		assert.False(t, b.exists("/x"))
		assert.True(t, b.exists("/mine"))
	})
}

func TestReadOnlyMinority(t *testing.T) {
	inCluster(t, func(t *testing.T, c *zktest.Cluster, leader, f1, f2 int) {
		a := begin(t, c.Member(f1), 10*time.Second)
		a.create("/a", 0)
		require.NoError(t, c.Member(leader).Stop())
		require.NoError(t, c.Member(f2).Stop())
		time.Sleep(5 * time.Second)
		plain := dial(t, c.Member(f1))
		require.Error(t, plain.hello(10*time.Second, 0, nil), "not without the flag")
		known := dial(t, c.Member(f1))
		require.Error(t, known.helloReadOnly(a.session, a.password), "nor with a session that others know")
		reader := dial(t, c.Member(f1))
		require.NoError(t, reader.helloReadOnly(0, make([]byte, 16)))
		assert.True(t, reader.exists("/a"))
		code, err := reader.call(wire.OpCreate, createReq("/b"), nil)
		require.NoError(t, err)
		assert.Equal(t, wire.CodeNotReadOnly, code)
		code, err = reader.call(wire.OpSync, &wire.PathRequest{Path: "/"}, nil)
		require.NoError(t, err)
		assert.Equal(t, wire.CodeNotReadOnly, code)
		require.NoError(t, c.Member(f2).Restart())
		assertOver(t, reader)
		require.NoError(t, c.WaitLeader(context.Background()))
		back, err := a.again(c.Member(f2))
		require.NoError(t, err)
		require.NotZero(t, back.session, "sessions have had their full timeout from the election")
		back.create("/b", 0)
	}, zktest.ReadOnlyMode())
}

func (c *client) helloReadOnly(session int64, password []byte) error {
	c.write(&wire.ConnectRequest{Timeout: 10000, SessionID: session, Password: password, HasReadOnly: true, ReadOnly: true})
	frame, err := c.read()
	if err != nil {
		return err
	}
	var res wire.ConnectResponse
	d := wire.NewDecoder(frame)
	res.Decode(d)
	require.NoError(c.t, d.Err())
	require.True(c.t, res.ReadOnly)
	c.r = bufio.NewReader(c.nc)
	return nil
}

// Everything at once, in virtual time and over TCP: no goroutine is left, and
// members that serve in the end hold the same data.
func TestClusterStress(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		c := zktest.StartCluster(t, 5, append(opts, zktest.Tick(20*time.Millisecond), zktest.ElectionTime(5*time.Millisecond), zktest.ReadOnlyMode())...)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for i := range 60 {
			m := c.Member(i % 5)
			switch i % 12 {
			case 0:
				require.NoError(t, m.Stop())
			case 1:
				c.Partition([]int{0, 1}, []int{2, 3})
			case 3, 9:
				c.Heal()
			case 4:
				m.Freeze()
			case 6:
				m.Thaw()
			case 7:
				c.Lag(i%5, time.Millisecond)
			case 8:
				c.PartitionOneWay(i%5, (i+1)%5)
			case 10:
				require.NoError(t, m.Restart())
			case 11:
				c.Elect(i % 5)
			}
			visit(ctx, c.Member(i*7%5), "/x")
		}
		c.Heal()
		c.Thaw()
		require.NoError(t, c.Restart())
		for i := range 5 {
			c.Lag(i, 0)
		}
		require.NoError(t, c.WaitServing(ctx))
		var dumps [5]bytes.Buffer
		for i := range dumps {
			require.NoError(t, c.Member(i).Dump(&dumps[i]))
			assert.Equal(t, dumps[0].String(), dumps[i].String())
		}
	})
}

// The leader has agreed, the follower does not know yet, and the connection ends.
func TestConnectionEndsWhileItsSessionIsTakenUp(t *testing.T) {
	inCluster(t, func(t *testing.T, c *zktest.Cluster, _, f1, f2 int) {
		a := begin(t, c.Member(f2), 10*time.Second)
		c.Lag(f1, time.Second)
		next := dial(t, c.Member(f1))
		go func() { _ = next.hello(10*time.Second, a.session, a.password) }()
		time.Sleep(100 * time.Millisecond)
		c.Member(f1).DisconnectAll()
		time.Sleep(2 * time.Second)
		assert.Equal(t, -1, c.MemberOf(a.session))
		c.Lag(f1, 0)
		again, err := a.again(c.Member(f1))
		require.NoError(t, err)
		assert.Equal(t, a.session, again.session)
		assert.Equal(t, f1, c.MemberOf(a.session))
	})
}

// What a leader and its follower have said about sessions waits with everything
// else, and is heard as soon as the members can talk again.
func TestPingsWaitForAPartitionToHeal(t *testing.T) {
	for name, part := range map[string]func(c *zktest.Cluster, leader, f int) (heal func()){
		"partition": func(c *zktest.Cluster, leader, f int) func() {
			c.Partition([]int{leader, 3 - leader - f}, []int{f})
			return c.Heal
		},
		"to the follower": func(c *zktest.Cluster, leader, f int) func() {
			c.PartitionOneWay(leader, f)
			return c.Heal
		},
		"to the leader": func(c *zktest.Cluster, leader, f int) func() {
			c.PartitionOneWay(f, leader)
			return c.Heal
		},
		"leader stands still": func(c *zktest.Cluster, leader, _ int) func() {
			c.Member(leader).Freeze()
			return c.Member(leader).Thaw
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *zktest.Cluster, leader, f1, _ int) {
				time.Sleep(200 * time.Millisecond) // between two pings, which come each half second
				a := begin(t, c.Member(f1), 2*time.Second)
				stop := a.live(100 * time.Millisecond)
				heal := part(c, leader, f1)
				time.Sleep(2600 * time.Millisecond) // it is due at the next tick
				heal()
				time.Sleep(time.Second)
				stop()
				assert.Equal(t, f1, c.MemberOf(a.session), "its leader has heard of it")
			}, zktest.SyncLimit(5))
		})
	}
}

// A member that a cluster does not have would be in nobody's way, and nothing be tested.
func TestMembersThatAreNotThere(t *testing.T) {
	inCluster(t, func(t *testing.T, c *zktest.Cluster, _, _, _ int) {
		for name, wrong := range map[string]func(){
			"Member": func() { c.Member(3) }, "Partition": func() { c.Partition([]int{1}, []int{2, 3}) }, "Lag": func() { c.Lag(3, time.Second) },
			"PartitionOneWay, from": func() { c.PartitionOneWay(3, 0) }, "PartitionOneWay, to": func() { c.PartitionOneWay(0, 3) }, "Elect": func() { c.Elect(3) },
		} {
			assert.PanicsWithValue(t, "zktest: no member 3: a cluster of 3 has the members 0 to 2", wrong, name)
		}
		assert.Panics(t, func() { c.Member(-1) })
	})
}
