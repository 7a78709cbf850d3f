package locks_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// broken is a cluster while it is being broken, and who is connected to it.
type broken struct {
	*zktest.Cluster
	*rand.Rand
	leader, follower int // the latter serves the holder
}

// between is a time chosen at random, in parts of the session timeout.
func (b *broken) between(least, most float64) time.Duration {
	return time.Duration((least + (most-least)*b.Float64()) * float64(marginTimeout))
}

// stall makes the leader stand still for a while.
func (b *broken) stall(least, most float64) {
	b.Member(b.leader).Freeze()
	time.Sleep(b.between(least, most))
	b.Member(b.leader).Thaw()
}

// cutOff parts the follower from the others.
func (b *broken) cutOff() {
	third := 3 - b.leader - b.follower
	b.Partition([]int{b.follower}, []int{b.leader, third})
}

// loseAnswers loses what the follower says to the leader.
func (b *broken) loseAnswers() { b.PartitionOneWay(b.follower, b.leader) }

// soon is a moment after a stall, while the leader catches up.
func (b *broken) soon() { time.Sleep(time.Duration(b.Int64N(int64(15 * time.Millisecond)))) }

// The worst that is allowed: ticks of half of the session timeout, and sessions that
// end exactly one timeout after the leader has heard of them last.
const (
	marginTimeout = 4 * time.Second
	marginTick    = marginTimeout / 2
)

// busy reads and writes now and then, until the hold ends.
func busy(ctx context.Context, c *framework.Client, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	for ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(ctx, marginTimeout/4)
		if random.IntN(3) == 0 {
			_, _ = c.Create(ctx, "/x", nil, framework.Persistent, framework.OrSet())
		} else {
			_, _, _ = c.Exists(ctx, "/x")
		}
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(random.Int64N(int64(marginTimeout / 4)))):
		}
	}
}

var marginTrials = flag.Int("margins", 1, "how often TestMargins breaks a cluster in each way")

var marginFaults = []struct {
	name string
	do   func(b *broken)
}{
	{"follower cut off", func(b *broken) { b.cutOff() }},
	{"leader stalls, then the follower is cut off", func(b *broken) {
		b.stall(0.05, 0.9)
		b.soon()
		b.cutOff()
	}},
	{"leader stalls, then answers to it are lost", func(b *broken) {
		b.stall(0.05, 0.9)
		b.soon()
		b.loseAnswers()
	}},
	{"the same, and the way to the follower is slow", func(b *broken) {
		b.Lag(b.follower, b.between(0, 0.3))
		b.stall(0.05, 0.9)
		b.soon()
		b.loseAnswers()
	}},
	{"the way to the follower slows down, then answers are lost", func(b *broken) {
		b.Lag(b.follower, b.between(0, 0.35))
		time.Sleep(b.between(0, 0.5))
		b.loseAnswers()
	}},
	{"leader stalls, and answers are lost while its ping is on its way", func(b *broken) {
		lag := b.between(0, 0.1)
		b.Lag(b.follower, lag)
		b.stall(0.27, 0.55)
		time.Sleep(time.Duration(b.Float64() * float64(lag)))
		b.loseAnswers()
	}},
}

// tolerated is by how much later than its answers a leader's ping may be that is
// overdue. With several trials later ones are tried as well, and what comes of it is shown.
const tolerated = 200 * time.Millisecond

// A hold ends before the lock is granted to another owner, whatever happens in an
// ensemble. A leader that has stood still may also be late with its pings.
func TestMargins(t *testing.T) {
	t.Parallel()
	row := 0
	for _, rule := range []struct {
		name   string
		change func(*framework.Config)
		late   []time.Duration
		safe   bool
	}{
		{"by quorum", func(*framework.Config) {}, []time.Duration{0, marginTimeout / 100, tolerated, 2 * tolerated}, true},
		{"by quorum, tick stated", func(cfg *framework.Config) { cfg.ServerTick = marginTick }, []time.Duration{0, tolerated}, true},
		{"the control: by server", kit.ByServer, []time.Duration{0}, false},
	} {
		for _, late := range rule.late {
			if late > tolerated && *marginTrials == 1 { // nothing is promised
				continue
			}
			row++
			for i, fault := range marginFaults {
				if !*everySweep && *marginTrials == 1 && (i+row)%3 != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s, pings late by %v, %s", rule.name, late, fault.name), func(t *testing.T) {
					var margins []time.Duration
					violations, void := 0, 0
					enough := func(trial int) bool { return len(margins) >= *marginTrials || trial >= 6**marginTrials }
					if !rule.safe {
						enough = func(trial int) bool { return violations > 0 || trial >= 6 }
					}
					for trial := 0; !enough(trial); trial++ {
						m, ok := margin(t, uint64(trial), rule.change, late, fault.do)
						if !ok {
							void++
							continue
						}
						margins = append(margins, m)
						if m <= 0 {
							violations++
						}
					}
					require.NotEmpty(t, margins)
					slices.Sort(margins)
					t.Logf("%d violations in %d trials, margin least %.3f T, median %.3f T; %d more without a hold or a grant", violations, len(margins),
						float64(margins[0])/float64(marginTimeout), float64(margins[len(margins)/2])/float64(marginTimeout), void)
					switch {
					case !rule.safe:
						assert.NotZero(t, violations, "the control finds nothing")
					case late <= tolerated:
						assert.Zero(t, violations)
					}
				})
			}
		}
	}
}

// margin breaks a cluster once. It returns how long before the grant to another
// client a hold had ended, and whether there were a hold and a grant.
func margin(t *testing.T, seed uint64, change func(*framework.Config), late time.Duration, fault func(*broken)) (margin time.Duration, ok bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 1))
		cl := zktest.StartCluster(t, 3, zktest.InMemory(), zktest.Tick(marginTick), zktest.ExpireEvery(time.Millisecond/2), zktest.LatePings(late),
			zktest.SyncLimit(20), zktest.SessionTimeouts(time.Second, time.Hour), zktest.Latency(time.Duration(random.Int64N(int64(20*time.Millisecond)))))
		b := &broken{cl, random, cl.Leader(), 0}
		b.follower = (b.leader + 1 + random.IntN(2)) % 3
		at := func(member int, timeout time.Duration) func(*framework.Config) {
			return func(cfg *framework.Config) {
				cfg.ConnectString, cfg.SessionTimeout = cl.Member(member).ConnectString(), timeout
			}
		}
		time.Sleep(b.between(0, 1))
		holder, other := kit.Connect(t, &cl.Server, at(b.follower, marginTimeout), change), kit.Connect(t, &cl.Server, at(b.leader, time.Hour))
		h, err := locks.NewInterProcessMutex(holder, "/l").Acquire(t.Context())
		require.NoError(t, err)
		held := h.Context()
		ctx, cancel := context.WithTimeout(t.Context(), 10*marginTimeout)
		defer cancel()
		granted := make(chan time.Time, 1)
		go func() {
			defer close(granted)
			if n, err := locks.NewInterProcessMutex(other, "/l").Acquire(ctx); err == nil {
				granted <- time.Now()
				_ = n.Release()
			}
		}()
		if random.IntN(2) == 0 { // what the user sends is evidence as well
			go busy(held, holder, random.Uint64())
		}
		time.Sleep(b.between(0.3, 3))
		if held.Err() != nil {
			return
		}
		ended := make(chan time.Time, 1)
		context.AfterFunc(held, func() { ended <- time.Now() })
		fault(b)
		if at := <-granted; !at.IsZero() {
			margin, ok = at.Sub(<-ended), true
		}
		cl.Heal()
	})
	return margin, ok
}
