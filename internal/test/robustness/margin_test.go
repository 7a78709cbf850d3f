//go:build realzk

package robustness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/recipes/locks"
)

var trials = flag.Int("trials", 1, "how often TestMargin breaks an ensemble in each way for each session timeout; with more than 1, long ones are tried, too")

// A margin is how long before the grant to another client a hold had ended.
// Each trial has holders of both grades of belief on one follower, so that those
// without proof writes are the control in the same trials.
const (
	holdersOfEach = 3
	ticksOfT      = 5  // how many ticks a session lasts
	ticksOfSync   = 10 // how long a follower without a leader serves
)

// margins are the results of all trials of a kind.
type margins struct {
	proved, control []time.Duration
	kept            int // nobody else was granted the lock, and the hold went on
	void            int // trials in which a hold had ended before
}

// breakage is a way to break an ensemble while a holder is connected to
// follower. fail returns a function that mends it.
type breakage struct {
	name    string
	fail    func(t *testing.T, e *realzk.Ensemble, leader, follower int, timeout time.Duration) (mend func())
	control bool // without proof writes a hold outlasts the grant, whatever the moment
}

var breakages = []breakage{
	{"follower cut off", func(t *testing.T, e *realzk.Ensemble, _, follower int, _ time.Duration) func() {
		require.NoError(t, e.Partition(follower))
		return func() { require.NoError(t, e.Heal(follower)) }
	}, true},
	// The followers wait for it, and when it goes on it takes for silent whom it
	// has not heard of. What comes of that the follower tells its client at the
	// same moment as others, unless it is cut off just then.
	{"leader stopped, then the follower cut off", func(t *testing.T, e *realzk.Ensemble, leader, follower int, timeout time.Duration) func() {
		require.NoError(t, e.Pause(leader))
		<-time.After(timeout * 3 / 2)
		require.NoError(t, e.Partition(follower))
		require.NoError(t, e.Resume(leader))
		return func() { require.NoError(t, e.Heal(follower)) }
	}, true},
	{"leader stopped for a while", func(t *testing.T, e *realzk.Ensemble, leader, _ int, timeout time.Duration) func() {
		require.NoError(t, e.Pause(leader))
		<-time.After(timeout * 3 / 2)
		require.NoError(t, e.Resume(leader))
		return func() {}
	}, false},
	// The new leader gives every session its full time again.
	{"leader stopped until another leads", func(t *testing.T, e *realzk.Ensemble, leader, _ int, _ time.Duration) func() {
		require.NoError(t, e.Pause(leader))
		return func() { require.NoError(t, e.Resume(leader)) }
	}, false},
}

// With proof writes a hold's context ends before the lock is granted to another
// client, whatever becomes of the follower that the holder is connected to, and
// of the leader. Without, it does not.
func TestMargin(t *testing.T) {
	t.Run("leaders cut off", leaderMargin)
	for _, way := range breakages {
		for _, timeout := range []time.Duration{2 * time.Second, 10 * time.Second} {
			if timeout > sessionTimeout && *trials == 1 && way.name != breakages[0].name {
				continue // takes a minute each
			}
			t.Run(fmt.Sprintf("%s, session timeout %v", way.name, timeout), func(t *testing.T) {
				t.Parallel() // they wait most of the time
				e := realzk.StartT(t, realzk.Options{Servers: 3, Tick: timeout / ticksOfT, SyncLimit: ticksOfSync, Partitions: true, MaxSessionTimeout: 10 * timeout})
				var all margins
				for done := 0; done < *trials; {
					if trial(t, e, timeout, way, &all) {
						done++
						continue
					}
					all.void++
					require.Less(t, all.void, 5+*trials/2, "holds end before anything is broken: too busy a machine")
				}
				t.Logf("%s, session timeout %v, %d trials of %d holders: %s; without proof writes: %s, %d kept; %d more begun in vain",
					way.name, timeout, *trials, holdersOfEach, spread(all.proved), spread(all.control), all.kept, all.void)
				require.Len(t, all.proved, *trials*holdersOfEach)
				assert.Positive(t, slices.Min(all.proved), "the hold ended before the grant")
				if way.control {
					require.NotEmpty(t, all.control, "the control: nobody else was granted the lock")
					assert.Negative(t, slices.Min(all.control), "the control")
				}
			})
		}
	}
}

// spread says what the least, the median and the greatest are.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	after := 0
	for _, m := range all {
		if m <= 0 {
			after++
		}
	}
	return fmt.Sprintf("margin min %v, median %v, max %v, %d of %d violations",
		ms(all[0]), ms(all[len(all)/2]), ms(all[len(all)-1]), after, len(all))
}

// trial breaks the ensemble once, and mends it. It reports false, and has broken
// nothing, if a hold ended by itself before that.
func trial(t *testing.T, e *realzk.Ensemble, timeout time.Duration, way breakage, all *margins) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 20*timeout)
	defer cancel()
	leader, err := e.Leader(ctx)
	require.NoError(t, err)
	follower := (leader + 1) % 3
	patient := func(cfg *framework.Config) {
		cfg.ConnectString, cfg.SessionTimeout = e.Addr((leader+2)%3), 8*timeout
	}
	other := kit.Connect(t, e, patient)
	var pairs []*pair
	for i := range 2 * holdersOfEach {
		proof := []framework.SessionLease{framework.LeaseByQuorum, framework.LeaseByServer}[i%2]
		c := kit.Connect(t, e, func(cfg *framework.Config) {
			cfg.ConnectString, cfg.SessionTimeout, cfg.SessionLease = e.Addr(follower), timeout, proof
		})
		p := &pair{lease: proof, holder: c}
		pairs = append(pairs, p)
		path := fmt.Sprintf("/margin/%d", i)
		p.hold, err = locks.NewInterProcessMutex(c, path).Acquire(ctx)
		require.NoError(t, err)
		require.Equal(t, timeout, c.SessionTimeout())
		p.watch(ctx, t, locks.NewInterProcessMutex(other, path))
		<-time.After(rand.N(timeout / 5)) // each at another moment of its proof
	}
	<-time.After(timeout/2 + rand.N(timeout/2))
	began := !slices.ContainsFunc(pairs, func(p *pair) bool { return p.hold.Err() != nil })
	if began {
		mend := way.fail(t, e, leader, follower, timeout)
		waiting, enough := context.WithTimeout(ctx, 5*timeout)
		defer enough()
		for _, p := range pairs {
			p.await(waiting)
		}
		mend()
	}
	for _, p := range pairs {
		_ = p.hold.Release()
		require.NoError(t, p.holder.Close())
	}
	for _, p := range pairs {
		p.wg.Wait()
		switch {
		case !began:
		case p.ended.IsZero():
			require.Equal(t, framework.LeaseByServer, p.lease, "the hold has not ended")
			all.kept++
		case p.lease == framework.LeaseByQuorum:
			require.False(t, p.granted.IsZero())
			all.proved = append(all.proved, p.granted.Sub(p.ended))
		default:
			all.control = append(all.control, p.granted.Sub(p.ended))
		}
	}
	require.NoError(t, other.Close())
	require.NoError(t, e.AwaitServing(ctx))
	return began
}

// pair is a hold, and somebody who waits for the same lock.
type pair struct {
	lease  framework.SessionLease
	holder *framework.Client
	hold   *locks.Hold
	wg     sync.WaitGroup
	seen   chan struct{} // one for the end, one for the grant

	ended, granted time.Time // read after wg
}

func (p *pair) watch(ctx context.Context, t *testing.T, m *locks.InterProcessMutex) {
	p.seen = make(chan struct{}, 2)
	held := p.hold.Context()
	p.wg.Go(func() {
		<-held.Done()
		if now := time.Now(); !errors.Is(context.Cause(held), locks.ErrReleased) {
			p.ended = now
		}
		p.seen <- struct{}{}
	})
	p.wg.Go(func() {
		h, err := m.Acquire(ctx)
		p.granted = time.Now()
		if assert.NoError(t, err) {
			if err := h.Release(); !errors.Is(err, locks.ErrReleasePending) { // a leader just elected
				assert.NoError(t, err)
			}
		}
		p.seen <- struct{}{}
	})
}

// await returns when the hold has ended and the lock has passed on.
func (p *pair) await(ctx context.Context) {
	for range 2 {
		select {
		case <-p.seen:
		case <-ctx.Done():
			return
		}
	}
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
