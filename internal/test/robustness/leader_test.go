//go:build realzk

package robustness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/recipes/leader"
)

// How many leaders are cut off, by what they go by. Those without proof writes are the
// control.
var cutOff = map[framework.SessionLease]int{framework.LeaseByQuorum: 20, framework.LeaseByServer: 4}

// candidate is what a Latch and a Selector have in common.
type candidate interface {
	Run(ctx context.Context, lead func(ctx context.Context, term *leader.Term) error) error
}

// election is a leader that is cut off, and who leads next.
type election struct {
	lease framework.SessionLease
	wg    sync.WaitGroup

	began, over  chan struct{} // when the first one leads, and when its context has ended
	ended, grant time.Time     // read after wg
}

// leaderMargin tests that the context of a leader that is cut off ends before the next
// candidate leads, for each of twenty leaders. Without proof writes it does not.
func leaderMargin(t *testing.T) {
	t.Parallel() // as its siblings
	e := realzk.StartT(t, realzk.Options{
		Servers: 3, Tick: sessionTimeout / ticksOfT, SyncLimit: ticksOfSync, Partitions: true, MaxSessionTimeout: 10 * sessionTimeout,
	})
	var margins map[framework.SessionLease][]time.Duration
	for void := 0; margins == nil; void++ {
		require.Less(t, void, 5, "terms end before anything is broken: too busy a machine")
		margins = cutLeadersOff(t, e)
	}
	proved := margins[framework.LeaseByQuorum]
	t.Logf("leaders cut off, session timeout %v, %d trials: %s; without proof writes: %s",
		sessionTimeout, len(proved), spread(proved), spread(margins[framework.LeaseByServer]))
	assert.Len(t, proved, cutOff[framework.LeaseByQuorum])
	assert.Positive(t, slices.Min(proved), "a leader goes on beside the next one")
	assert.Negative(t, slices.Min(margins[framework.LeaseByServer]), "the control")
}

// cutLeadersOff cuts the follower of many leaders off, and returns how long after the end
// of each term the next one began. It is nil if a term ended by itself before that.
func cutLeadersOff(t *testing.T, e *realzk.Ensemble) map[framework.SessionLease][]time.Duration {
	t.Helper()
	const timeout = sessionTimeout
	ctx, cancel := context.WithTimeout(t.Context(), 30*timeout)
	defer cancel()
	led, err := e.Leader(ctx)
	require.NoError(t, err)
	follower := (led + 1) % 3
	next := kit.Connect(t, e, func(cfg *framework.Config) {
		cfg.ConnectString, cfg.SessionTimeout = e.Addr((led+2)%3), 8*timeout
	})
	defer next.Close()
	var all []*election
	for proof, n := range cutOff {
		for range n {
			c := kit.Connect(t, e, func(cfg *framework.Config) {
				cfg.ConnectString, cfg.SessionTimeout, cfg.SessionLease = e.Addr(follower), timeout, proof
			})
			defer c.Close()
			el := &election{lease: proof, began: make(chan struct{}), over: make(chan struct{})}
			all = append(all, el)
			el.hold(ctx, t, c, next)
			<-time.After(rand.N(timeout / 10)) // each at another moment of its proof
		}
	}
	<-time.After(timeout)
	void := slices.ContainsFunc(all, func(el *election) bool {
		select {
		case <-el.over:
			return true
		default:
			return false
		}
	})
	if void {
		cancel()
	} else {
		require.NoError(t, e.Partition(follower))
		<-time.After(4 * timeout)
		require.NoError(t, e.Heal(follower)) // where the leaders of the control hear of it
	}
	margins := make(map[framework.SessionLease][]time.Duration)
	for _, el := range all {
		el.wg.Wait()
		margins[el.lease] = append(margins[el.lease], el.grant.Sub(el.ended))
	}
	if void {
		return nil
	}
	return margins
}

// hold has one client lead, and another one stand behind it. It returns when the first
// one leads.
func (el *election) hold(ctx context.Context, t *testing.T, first, next *framework.Client) {
	t.Helper()
	id := first.SessionID() // it may lose that before the next one stands
	path := fmt.Sprintf("/leaders/%x", id)
	stand := func(c *framework.Client) candidate {
		if id%2 == 0 { // every other one
			return leader.NewLatch(c, path)
		}
		return leader.NewSelector(c, path)
	}
	run := func(c *framework.Client, lead func(ctx context.Context)) {
		el.wg.Go(func() {
			err := stand(c).Run(ctx, func(ctx context.Context, _ *leader.Term) error {
				lead(ctx)
				return leader.ErrLeave
			})
			if ctx.Err() == nil {
				assert.NoError(t, err)
			}
		})
	}
	run(first, func(ctx context.Context) {
		close(el.began)
		<-ctx.Done()
		el.ended = time.Now()
		close(el.over)
	})
	select {
	case <-el.began:
	case <-ctx.Done():
		require.FailNow(t, "nobody leads")
	}
	run(next, func(context.Context) { el.grant = time.Now() })
}

// mortal is a dialer whose process has crashed once it is killed: its connections are cut
// and it makes no others.
type mortal struct {
	mu    sync.Mutex // guards the fields below
	dead  bool
	conns []net.Conn
}

func (m *mortal) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil, errors.Join(errors.New("crashed"), conn.Close())
	}
	m.conns = append(m.conns, conn)
	return conn, nil
}

func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	for _, conn := range m.conns {
		_ = conn.Close()
	}
}

// Fifty leaders crash: the servers end their sessions after the session timeout, and the
// next ones lead.
func TestLeaderCrashes(t *testing.T) {
	t.Parallel() // it waits most of the time
	const tick = sessionTimeout / ticksOfT
	e := realzk.StartT(t, realzk.Options{Servers: 3, Tick: tick, SyncLimit: ticksOfSync, MaxSessionTimeout: 10 * sessionTimeout})
	ctx, cancel := context.WithTimeout(t.Context(), 30*sessionTimeout)
	defer cancel()
	next := kit.Connect(t, e, func(cfg *framework.Config) { cfg.SessionTimeout = 8 * sessionTimeout })
	defer next.Close()
	var all []*election
	var lives []*mortal
	for range 50 {
		m := new(mortal)
		c := kit.Connect(t, e, func(cfg *framework.Config) {
			cfg.SessionTimeout, cfg.DialContext, cfg.CloseTimeout = sessionTimeout, m.dial, time.Millisecond
		})
		defer c.Close()
		el := &election{began: make(chan struct{}), over: make(chan struct{})}
		el.hold(ctx, t, c, next)
		all, lives = append(all, el), append(lives, m)
	}
	killed := make([]time.Time, len(all))
	for i, m := range lives {
		<-time.After(rand.N(tick)) // at any moment between two ticks
		killed[i] = time.Now()
		m.kill()
	}
	passed := make([]time.Duration, len(all))
	for i, el := range all {
		el.wg.Wait()
		passed[i] = el.grant.Sub(killed[i])
	}
	slices.Sort(passed)
	t.Logf("%d leaders crashed, session timeout %v, tick %v: the next one leads after %v, median %v, at most %v",
		len(all), sessionTimeout, tick, ms(passed[0]), ms(passed[len(all)/2]), ms(passed[len(all)-1]))
	assert.Less(t, passed[len(all)-1], 2*sessionTimeout)
}
