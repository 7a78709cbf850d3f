package leader_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// everySweep has a part of all sweeps run, such as 3/16, and not what is picked.
var everySweep = flag.String("sweeps", "", "sweep a part, such as 3/16, of all elections for all failures, and not what is picked")

// sweptElection is a candidate whose life is swept, and who else stands.
type sweptElection struct {
	selector bool // or a latch
	alone    bool // nobody else stands
	opts     []leader.Option
}

func (e sweptElection) stand(c *framework.Client, opts ...leader.Option) candidate {
	if e.selector {
		return leader.NewSelector(c, "/e", opts...)
	}
	return leader.NewLatch(c, "/e", opts...)
}

func healthy(context.Context) error { return nil }

var sweptElections = map[string]sweptElection{
	"latch":           {},
	"latch, alone":    {alone: true},
	"latch, options":  {opts: []leader.Option{leader.EndOnSuspended(), leader.ReleaseWait(0), leader.HealthCheck(time.Second, healthy)}},
	"selector":        {selector: true},
	"selector, alone": {selector: true, alone: true},
}

// survived is whether a candidate goes on to the end of its life in spite of a failure.
func survived(failure string) bool {
	switch failure {
	case "cut before", "cut after", "part of the reply", "expired", "nodes deleted":
		return true
	}
	return false
}

// forced is whether a failure can end a term so that the servers do not wait for its leader.
func forced(failure string) bool { return failure == "expired" || failure == "nodes deleted" }

// picked is what is swept in full each time.
func picked(failure, kind string) bool {
	return failure == "cut after" && kind == "latch" || failure == "expired" && kind == "selector, alone"
}

// Each request in the life of a candidate fails in turn, in each way in which a
// request can fail. Afterwards a candidate leads, no two terms went on at once, and
// nothing is left.
func TestEachRequestOfAnElectionFails(t *testing.T) {
	part, parts := 1, 1
	if *everySweep != "" {
		_, err := fmt.Sscanf(*everySweep, "%d/%d", &part, &parts)
		require.NoError(t, err)
	}
	all, total := kit.Failures(), 0
	for i, name := range slices.Sorted(maps.Keys(all)) {
		for k, kind := range slices.Sorted(maps.Keys(sweptElections)) {
			if *everySweep == "" && !picked(name, kind) {
				continue
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				tried := 0
				for nth, hit := 1, true; hit; nth++ {
					if (i+k+nth)%parts != part%parts {
						continue
					}
					synctest.Test(t, func(t *testing.T) { hit = sweepLife(t, sweptElections[kind], nth, name, all[name]) })
					if t.Failed() {
						t.Fatalf("at request %d", nth)
					}
					if hit {
						tried++
					}
					require.Less(t, nth, 200)
				}
				total += tried
				_, _ = fmt.Fprintf(t.Output(), "sweep: elections: %-18s %-16s %d\n", name, kind, tried)
			})
		}
	}
	_, _ = fmt.Fprintf(t.Output(), "sweep: elections: %d in all, 0 leaks\n", total)
}

// sweepLife lives one life of a candidate, and has something happen at one request of
// it. It returns false if there was no such request.
func sweepLife(t *testing.T, e sweptElection, nth int, name string, happens kit.Failure) (hit bool) {
	t.Helper()
	srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
	c, other := kit.Connect(t, srv), kit.Connect(t, srv)
	require.NoError(t, c.EnsurePath(t.Context(), "/e"))
	j := &termChecker{t: t}
	j.force(forced(name))
	others, stopOthers := context.WithCancel(t.Context())
	defer stopOthers()
	var wg sync.WaitGroup
	if !e.alone {
		wg.Go(func() { rule(others, t, e.stand(other, leader.ID("other")), j) })
		time.Sleep(time.Second)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	planned := srv.On(zktest.Match{Session: c.SessionID(), Nth: nth, Func: kit.At(name)}, happens(t, srv, c, stop))
	began := time.Now()
	err := life(ctx, c, e, j)
	require.Less(t, time.Since(began), 5*time.Minute, "it does not come to an end: %v", err)
	if survived(name) && !errors.Is(err, locks.ErrLockLost) { // which is the last term's, before it began
		require.NoError(t, err, "a candidate goes on")
	}
	if e.alone {
		wg.Go(func() { rule(others, t, e.stand(other, leader.ID("other")), j) })
	}
	terms := j.count()
	time.Sleep(sessionTimeout + 2*time.Second)
	assert.Greater(t, j.count(), terms, "nobody leads after %v", err)
	stopOthers()
	wg.Wait()
	time.Sleep(45 * time.Second) // more than a session, and the longest pause of a background job
	kit.NothingLeft(t, srv, "after %v", err)
	for now, work := stacks(), []string{"/recipes/leader.", "/recipes/locks.", "/recipes/internal/"}; len(work) > 0; work = work[1:] {
		assert.NotContains(t, now, work[0], "goroutines left after %v", err)
	}
	return planned.Fired() > 0
}

// rule leads in one short term after another until ctx ends.
func rule(ctx context.Context, t *testing.T, c candidate, j *termChecker) {
	t.Helper()
	err := c.Run(ctx, func(ctx context.Context, term *leader.Term) error {
		j.begins(term)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return nil
	})
	assert.ErrorIs(t, err, context.Canceled)
}

// life is all that a candidate does. It observes, stands, leads and gives way. It writes
// under a term, fails, stands for one term only, and leaves.
func life(ctx context.Context, c *framework.Client, e sweptElection, j *termChecker) error {
	candidate := e.stand(c, e.opts...)
	watching, enough := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer enough()
	wg.Go(func() {
		for range candidate.Observe(watching) {
		}
	})
	terms := 0
	err := candidate.Run(ctx, func(ctx context.Context, term *leader.Term) error {
		j.begins(term)
		terms++
		switch terms {
		case 1:
			term.GiveWay(50 * time.Millisecond)
		case 2:
			tx := term.Transaction()
			tx.Set("/e", []byte("x"), framework.AnyVersion)
			_, _ = tx.Commit(ctx)
		case 3:
			_, _ = candidate.Participants(ctx)
			return errWork
		default:
			return leader.ErrLeave
		}
		return nil
	})
	if err != nil {
		return err
	}
	term, err := candidate.Await(ctx)
	if err != nil {
		return err
	}
	j.begins(term)
	_ = term.Release() // a deletion that is not confirmed goes on in the background
	return nil
}

// stacks are what all goroutines do.
func stacks() string {
	buf := make([]byte, 64<<10)
	return string(buf[:runtime.Stack(buf, true)])
}
