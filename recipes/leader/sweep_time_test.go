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

// failure is something that happens at a request of the candidate's.
type failure struct {
	// fault is what happens. stop is what ends the context of the candidate.
	fault func(t *testing.T, srv *zktest.Server, c *framework.Client, stop func()) zktest.Fault
	// survived is whether the candidate goes on to the end of its life in spite of it.
	survived bool
	// forced is whether it can end a term so that the servers do not wait for its leader.
	forced bool
	// at is at which requests it can happen; nil for all.
	at func(zktest.Request) bool
}

func always(f zktest.Fault) func(*testing.T, *zktest.Server, *framework.Client, func()) zktest.Fault {
	return func(*testing.T, *zktest.Server, *framework.Client, func()) zktest.Fault { return f }
}

// failures are the ways in which a request can fail. It is cut before or after it was
// applied, its reply is cut short, or it is refused with one of the codes that a
// client can see. Or meanwhile the caller gives up, the client is closed, its session
// expires or an operator deletes its nodes.
func failures() map[string]failure {
	all := map[string]failure{
		"cut before":        {fault: always(zktest.CutBefore()), survived: true},
		"cut after":         {fault: always(zktest.CutAfter()), survived: true},
		"part of the reply": {fault: always(zktest.CutReply(7)), survived: true},
		"cancelled": {fault: func(_ *testing.T, _ *zktest.Server, _ *framework.Client, stop func()) zktest.Fault {
			return zktest.Call(func(zktest.Request) { stop() })
		}},
		"closed": {fault: func(_ *testing.T, _ *zktest.Server, c *framework.Client, _ func()) zktest.Fault {
			return zktest.Call(func(zktest.Request) { go func() { _ = c.Close() }() })
		}},
		"expired": {survived: true, forced: true, fault: func(_ *testing.T, srv *zktest.Server, c *framework.Client, _ func()) zktest.Fault {
			id := c.SessionID()
			return zktest.Call(func(zktest.Request) { _ = srv.ExpireSession(id) })
		}},
		"nodes deleted": {survived: true, forced: true, fault: func(t *testing.T, srv *zktest.Server, c *framework.Client, _ func()) zktest.Fault {
			t.Helper()
			id, operator := c.SessionID(), connect(t, srv)
			return zktest.Call(func(zktest.Request) {
				for _, node := range srv.Ephemerals(id) {
					_ = operator.Delete(context.Background(), node, framework.AnyVersion)
				}
			})
		}},
	}
	for _, code := range []int32{-4, -5, -6, -7, -8, -101, -102, -110, -112, -118, -119, -122, -127} {
		f := failure{fault: always(zktest.Fail(code))}
		if code == -101 { // nothing can be done about a server that says of a node it has that it is gone
			f.at = func(r zktest.Request) bool { return r.Op != "delete" && r.Op != "multi" }
		}
		all[fmt.Sprint("code ", code)] = f
	}
	return all
}

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
	all, total := failures(), 0
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
					synctest.Test(t, func(t *testing.T) { hit = sweepLife(t, sweptElections[kind], nth, all[name]) })
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
func sweepLife(t *testing.T, e sweptElection, nth int, happens failure) (hit bool) {
	t.Helper()
	srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
	c, other := connect(t, srv), connect(t, srv)
	require.NoError(t, c.EnsurePath(t.Context(), "/e"))
	j := &judge{t: t}
	j.force(happens.forced)
	others, stopOthers := context.WithCancel(t.Context())
	defer stopOthers()
	var wg sync.WaitGroup
	if !e.alone {
		wg.Go(func() { rule(others, t, e.stand(other, leader.ID("other")), j) })
		time.Sleep(time.Second)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	matches := func(r zktest.Request) bool {
		return r.Op != "ping" && r.Op != "connect" && (happens.at == nil || happens.at(r))
	}
	planned := srv.On(zktest.Match{Session: c.SessionID(), Nth: nth, Func: matches}, happens.fault(t, srv, c, stop))
	began := time.Now()
	err := life(ctx, c, e, j)
	require.Less(t, time.Since(began), 5*time.Minute, "it does not come to an end: %v", err)
	if happens.survived && !errors.Is(err, locks.ErrLockLost) { // which is the last term's, before it began
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
	assert.Empty(t, srv.Ephemerals(0), "nodes left after %v", err)
	assert.Empty(t, srv.Watches(), "watches left after %v", err)
	for now, work := stacks(), []string{"/recipes/leader.", "/recipes/locks.", "/recipes/internal/"}; len(work) > 0; work = work[1:] {
		assert.NotContains(t, now, work[0], "goroutines left after %v", err)
	}
	return planned.Fired() > 0
}

// rule leads in one short term after another until ctx ends.
func rule(ctx context.Context, t *testing.T, c candidate, j *judge) {
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
func life(ctx context.Context, c *framework.Client, e sweptElection, j *judge) error {
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
