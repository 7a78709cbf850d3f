//go:build realzk

package differential

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// members are three servers, of either kind.
type members struct {
	addrs  []string
	leader func() int
	kill   func(i int)
	cut    func(i int) // from the two others
	heal   func()
	ready  func(which ...int) // waits until they serve, or all do
}

// Both kinds of ensemble do the same where that does not depend on when
// members apply what others write.
func TestEnsemblesDoTheSame(t *testing.T) {
	const tick = 500 * time.Millisecond
	const laterEpoch = "z+8589934" // 2<<32 and a little more: of the second epoch after the first
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	var e *realzk.Ensemble
	var onReal string
	for range 3 { // a busy ensemble may elect another leader before its leader's death, and twice after it
		e = realzk.StartT(t, realzk.Options{Servers: 3, Tick: tick, Partitions: true})
		cutOff, reelected := -1, false
		onReal = ensembleTranscript(t, members{
			addrs: e.Addrs(),
			leader: func() int {
				i, err := e.Leader(ctx)
				require.NoError(t, err)
				return i
			},
			kill: func(i int) {
				now, err := e.Leader(ctx)
				reelected = err != nil || now != i
				require.NoError(t, e.Kill(i))
			},
			cut:   func(i int) { cutOff = i; require.NoError(t, e.Partition(i)) },
			heal:  func() { require.NoError(t, e.Heal(cutOff)) },
			ready: func(which ...int) { require.NoError(t, e.AwaitServing(ctx, which...)) },
		})
		if !reelected && !strings.Contains(onReal, laterEpoch) {
			break
		}
	}

	version, _ := nearest(t, e)
	c := zktest.StartCluster(t, 3, zktest.Tick(tick), zktest.Version(version))
	compare(t, onReal, ensembleTranscript(t, members{
		addrs:  strings.Split(c.ConnectString(), ","),
		leader: c.Leader,
		kill:   func(i int) { require.NoError(t, c.Member(i).Stop()) },
		cut:    func(i int) { c.Partition([]int{i}, []int{(i + 1) % 3, (i + 2) % 3}) },
		heal:   c.Heal,
		ready:  func(...int) { require.NoError(t, c.WaitServing(ctx)) },
	}))
	t.Logf("\n%s", onReal)
}

// alone keeps other connections from being asked what they heard.
func (r *run) alone(c *conn) *conn {
	r.conns = []*conn{c}
	return c
}

// silent reports whether nothing comes for d.
func (c *conn) silent(d time.Duration) bool {
	require.NoError(c.r.t, c.nc.SetReadDeadline(time.Now().Add(d)))
	_, err := c.br.Peek(1)
	require.NoError(c.r.t, c.nc.SetReadDeadline(time.Now().Add(20*time.Second)))
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func ensembleTranscript(t *testing.T, m members) string {
	t.Helper()
	leader := m.leader()
	first, second := (leader+1)%3, (leader+2)%3
	return transcript(t, m.addrs[leader], "/ensemble", nil, func(r *run) {
		r.addr = m.addrs[first]
		a := r.alone(r.connect("a"))
		r.note("the first byte of a session is the member's number: " + boolean(a.session>>56 == int64(first+1)))
		a.do(wire.OpSync, path("/"))
		a.do(wire.OpCreate, create(r.at("/mine"), wire.FlagEphemeral))
		r.addr = m.addrs[second]
		b := r.alone(a.again("b"))
		b.do(wire.OpSync, path("/"))
		b.do(wire.OpExists, get(r.at("/mine")))
		r.note("the connection that the session has left")
		r.alone(a)
		a.do(wire.OpExists, get(r.at("/mine")))
		a.write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: 99, Op: wire.OpCreate}, create(r.at("/stale"), 0)))
		_, err := a.read()
		r.note("a write ends it: " + boolean(err != nil))
		r.alone(b)
		b.do(wire.OpSync, path("/"))
		b.do(wire.OpExists, get(r.at("/stale")))
		b.do(wire.OpCreate, create(r.at("/moved"), wire.FlagEphemeral))

		r.note("a follower without its leader")
		r.addr = m.addrs[first]
		d := r.alone(r.connect("d"))
		d.do(wire.OpSync, path("/"))
		m.cut(first)
		d.do(wire.OpExists, get(r.at("/moved")))
		d.write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: 99, Op: wire.OpCreate}, create(r.at("/unheard"), 0)))
		r.note("no answer to a write: " + boolean(d.silent(700*time.Millisecond)))
		_, err = d.read()
		r.note("then the end: " + boolean(err != nil))
		d.drop()
		late := r.dial("late")
		late.hello(wire.ConnectRequest{Timeout: 5000, Password: make([]byte, 16), HasReadOnly: true})
		m.heal()
		m.ready()
		d2 := r.alone(d.again("d2"))
		d2.do(wire.OpSync, path("/"))
		d2.do(wire.OpExists, get(r.at("/unheard")))

		r.note("the leader dies")
		before := b.zxid
		m.kill(leader)
		_, err = b.read()
		r.note("its followers' connections end: " + boolean(err != nil))
		b.drop()
		m.ready(first, second)
		r.base = 0 // zxids of another epoch are not shown
		c := r.alone(b.again("c"))
		c.do(wire.OpExists, get(r.at("/moved")))
		c.exchange(wire.OpSync, path("/"))
		c.exchange(wire.OpCreate, create(r.at("/next"), 0))
		r.note("another epoch: " + boolean(c.zxid>>32 == before>>32+1))
		ahead := r.dial("ahead")
		ahead.hello(wire.ConnectRequest{Timeout: 5000, LastZxidSeen: c.zxid + 1000, Password: make([]byte, 16), HasReadOnly: true})
	})
}

func boolean(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
