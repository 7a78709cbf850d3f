package locks_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// result is what one of several acquisitions has come to.
type result struct {
	hold *locks.Hold
	err  error
	took time.Duration
}

// crowd takes n different locks at the same moment, each in a goroutine of its own.
func crowd(ctx context.Context, c *framework.Client, n int) []result {
	all := make([]result, n)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			began := time.Now()
			all[i].hold, all[i].err = locks.NewInterProcessMutex(c, nth(i)).Acquire(ctx)
			all[i].took = time.Since(began)
		})
	}
	wg.Wait()
	return all
}

func nth(i int) string { return fmt.Sprintf("/l/%d", i) }

// releaseAll gives all of them back at the same moment, and returns how long that took.
func releaseAll(t *testing.T, all []result) time.Duration {
	t.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	for i, o := range all {
		if assert.NoError(t, o.err) {
			wg.Go(func() { errs[i] = o.hold.Release() })
		}
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	return time.Since(began)
}

// ensureLocks makes the parents of n locks.
func ensureLocks(t *testing.T, c *framework.Client, n int) {
	t.Helper()
	for i := range n {
		require.NoError(t, c.EnsurePath(t.Context(), nth(i)))
	}
}

const (
	batchTrip = 20 * time.Millisecond // a round trip over a long way
	nearTrip  = 200 * time.Microsecond
)

// behindTwo starts the acquisition of each of n locks. The first two are on their way when
// the others come, which wait for each other.
func behindTwo(n int, acquire func(i int)) *sync.WaitGroup {
	wg := new(sync.WaitGroup)
	for i := range n {
		wg.Go(func() {
			if i > 1 {
				time.Sleep(nearTrip / 4)
			}
			acquire(i)
		})
	}
	return wg
}

// Many locks cost one round trip each and a few requests in all.
func TestManyLocksTakeOneRoundTrip(t *testing.T) {
	const n = 60
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(batchTrip/2))
		c := kit.Connect(t, srv)
		ensureLocks(t, c, n)
		releaseAll(t, crowd(t.Context(), c, n)) // now it is known that the parents exist
		before, stats := srv.Requests(), c.Stats()
		all := crowd(t.Context(), c, n)
		for i, o := range all {
			assert.Equal(t, batchTrip, o.took, "lock %d", i)
		}
		assert.Equal(t, batchTrip, releaseAll(t, all))
		requests, after := 0, srv.Requests()
		for op := range after {
			requests += after[op] - before[op]
		}
		assert.Less(t, requests, 2*n, "instead of %d; some leave before the others come", 3*n)
		now := c.Stats()
		assert.GreaterOrEqual(t, now.Batched-stats.Batched, int64(n), "of %d locks and releases", 2*n)
		assert.LessOrEqual(t, now.Batches-stats.Batches, int64(n/3))
		assert.Zero(t, now.BatchesUndone)
	})
}

// Over a long way nobody waits for others, unless very much is on its way, and then for no
// more than a millisecond.
func TestNobodyWaitsLongForOthers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		n    int
		wait time.Duration
	}{"some": {30, 0}, "many": {300, time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(batchTrip/2))
				c := kit.Connect(t, srv)
				ensureLocks(t, c, tc.n)
				releaseAll(t, crowd(t.Context(), c, tc.n))
				var wg sync.WaitGroup
				all := make([]result, tc.n)
				for i := range tc.n { // one after the other
					wg.Go(func() {
						time.Sleep(time.Duration(i) * 50 * time.Microsecond)
						began := time.Now()
						all[i].hold, all[i].err = locks.NewInterProcessMutex(c, nth(i)).Acquire(t.Context())
						all[i].took = time.Since(began)
					})
				}
				wg.Wait()
				for i, o := range all {
					assert.GreaterOrEqual(t, o.took, batchTrip, "lock %d", i)
					assert.LessOrEqual(t, o.took, batchTrip+tc.wait, "lock %d", i)
				}
				releaseAll(t, all)
			})
		})
	}
}

// Parents that are missing are made in the transaction with the nodes below them. The few
// locks that leave first go the way of one alone.
func TestParentsOfManyLocksAreMadeTogether(t *testing.T) {
	const n = 60
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(nearTrip/2))
		acl := zk.DigestACL(zk.PermAll, "u", "p")
		c := kit.Connect(t, srv, func(cfg *framework.Config) {
			cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("u:p")}}
			cfg.ACL = func(string) []framework.ACL { return acl }
		})
		require.NoError(t, c.EnsurePath(t.Context(), "/l"))
		asked := func(take func()) (requests int) {
			before := srv.Requests()
			take()
			for op, n := range srv.Requests() {
				requests += n - before[op]
			}
			return requests
		}
		var all []result
		assert.LessOrEqual(t, asked(func() { all = crowd(t.Context(), c, n) }), 2*n, "instead of more than %d", 6*n)
		for i := range n {
			got, _, err := c.GetACL(t.Context(), nth(i))
			require.NoError(t, err)
			assert.Equal(t, acl, got, "as the client makes others")
		}
		releaseAll(t, all)
		srv.SweepContainers()
		gone, _, err := c.Exists(t.Context(), nth(n-1))
		require.NoError(t, err)
		assert.False(t, gone, "it was a container")

		// What the client knew of the parents is not true any more.
		assert.LessOrEqual(t, asked(func() { all = crowd(t.Context(), c, n) }), 2*n)
		releaseAll(t, all)
		assert.Empty(t, srv.Ephemerals(0))
	})
}

// Who asks whether parents exist does not read their data.
func TestParentsWithMuchData(t *testing.T) {
	const n, much = 40, 100 << 10
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c, op := kit.Connect(t, srv), kit.Connect(t, srv)
		require.NoError(t, op.EnsurePath(t.Context(), "/l"))
		for i := range n {
			_, err := op.Create(t.Context(), nth(i), make([]byte, much), framework.Persistent)
			require.NoError(t, err)
		}
		before := srv.Counters()
		releaseAll(t, crowd(t.Context(), c, n))
		assert.Less(t, srv.Counters().BytesSent-before.BytesSent, int64(much))
		assert.Positive(t, c.Stats().Batches)
	})
}

// A batch is no larger than the servers take.
func TestBatchesKeepToMaxRequest(t *testing.T) {
	const n, most = 60, 8 << 10
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond), zktest.MaxFrame(most))
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.MaxRequest = most })
		states := kit.CountStates(c)
		for range 2 { // parents missing, and known
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					h, err := locks.NewInterProcessMutex(c, fmt.Sprint("/", strings.Repeat("x", 400), "/", i)).Acquire(t.Context())
					if assert.NoError(t, err) {
						time.Sleep(time.Second)
						assert.NoError(t, h.Release())
					}
				})
			}
			wg.Wait()
		}
		synctest.Wait()
		assert.Equal(t, 1, *states, "the connection was not lost")
		assert.Positive(t, c.Stats().Batches)
	})
}

// What the servers refuse to one is told to that one, and the others do not notice.
func TestOneOfManyIsRefused(t *testing.T) {
	const n, bad = 40, 17
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(nearTrip/2))
		c, admin := kit.Connect(t, srv), kit.Connect(t, srv, func(cfg *framework.Config) {
			cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("u:p")}}
		})
		ensureLocks(t, c, n)
		releaseAll(t, crowd(t.Context(), c, n))
		_, err := admin.SetACL(t.Context(), nth(bad), zk.DigestACL(zk.PermAll, "u", "p"), framework.AnyVersion)
		require.NoError(t, err)
		for range 5 {
			all := crowd(t.Context(), c, n)
			require.ErrorIs(t, all[bad].err, framework.ErrNoAuth)
			assert.ErrorContains(t, all[bad].err, "CREATE on "+nth(bad))
			all = slices.Delete(all, bad, bad+1)
			for _, o := range all {
				assert.LessOrEqual(t, o.took, 20*nearTrip)
			}
			releaseAll(t, all)
		}
		assert.LessOrEqual(t, c.Stats().BatchesUndone, int64(1), "the refusal is remembered")
		_, err = admin.SetACL(t.Context(), nth(bad), zk.WorldACL(zk.PermAll), framework.AnyVersion)
		require.NoError(t, err)
		releaseAll(t, crowd(t.Context(), c, n))
		assert.Empty(t, srv.Ephemerals(0))
	})
}

// Tokens of one lock rise, also if one client has asked for several of its nodes at one
// moment: each node data has a node of its own.
func TestTokensOfManyRise(t *testing.T) {
	t.Parallel()
	const n = 20
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(nearTrip/2))
		c := kit.Connect(t, srv)
		ensureLocks(t, c, n)
		var tokens [n][]int64 // of each lock, as its holders came
		var wg sync.WaitGroup
		for i := range n {
			for _, data := range []string{"a", "b", "c"} {
				lock := locks.NewInterProcessMutex(c, nth(i), locks.NodeData([]byte(data)))
				wg.Go(func() {
					for range 5 {
						h, err := lock.Acquire(t.Context())
						if assert.NoError(t, err) {
							tokens[i] = append(tokens[i], h.FencingToken())
							assert.NoError(t, h.Release())
						}
					}
				})
			}
		}
		wg.Wait()
		for i, all := range tokens {
			assert.Len(t, all, 15)
			assert.True(t, slices.IsSorted(all), "lock %d: %v", i, all)
			assert.Len(t, slices.Compact(slices.Clone(all)), len(all), "lock %d: %v", i, all)
		}
		assert.Positive(t, c.Stats().Batches)
	})
}

// Some servers that speak the protocol have no containers. They refuse a request that is to
// make one, or end the connection, also if it is one of several operations.
func TestManyLocksWithoutContainers(t *testing.T) {
	t.Parallel()
	const n = 40
	parent := regexp.MustCompile(`^/l/\d+$`)
	hit := 0
	for name, fault := range map[string]zktest.Fault{"refused": zktest.Fail(-6), "the connection ends": zktest.CutBefore()} {
		for _, trip := range []time.Duration{nearTrip, batchTrip} {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(trip/2))
				c := kit.Connect(t, srv)
				require.NoError(t, kit.Connect(t, srv).EnsurePath(t.Context(), "/l"))
				srv.On(zktest.Match{Op: "createContainer"}, fault)
				together := srv.On(zktest.Match{Op: "multi", Func: func(r zktest.Request) bool {
					return c.Stats().Unsupported == nil && len(r.Paths) > 1 && slices.ContainsFunc(r.Paths, parent.MatchString)
				}}, fault)
				for range 4 {
					releaseAll(t, crowd(t.Context(), c, n))
				}
				hit += together.Fired()
				assert.Equal(t, []string{"createContainer"}, c.Stats().Unsupported)
				assert.LessOrEqual(t, srv.Requests()["connect"], 12, "%s, %v", name, trip)
				assert.Empty(t, srv.Ephemerals(0))
			})
		}
	}
	assert.Positive(t, hit)
}

func TestNoBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(batchTrip/2))
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.NoBatches = true })
		ensureLocks(t, c, 20)
		before := srv.Requests()
		releaseAll(t, crowd(t.Context(), c, 20))
		after := srv.Requests()
		assert.Zero(t, after["multiRead"]-before["multiRead"])
		assert.Equal(t, 20, after["create2"]-before["create2"])
		assert.Equal(t, 20, after["delete"]-before["delete"])
		assert.Zero(t, c.Stats().Batches)
	})
}

// batchSweep takes many locks at once and gives them back, while something happens, and
// looks whether anything is left behind. Half of the parents exist, and two of the locks
// are taken.
func batchSweep(t *testing.T, meddle func(*zktest.Server, *framework.Client) context.Context) {
	const n = 8
	srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
	c, other := kit.Connect(t, srv), kit.Connect(t, srv)
	require.NoError(t, c.EnsurePath(t.Context(), "/l"))
	ensureLocks(t, c, n/2)
	for i := range 2 {
		h, err := locks.NewInterProcessMutex(other, nth(i)).Acquire(t.Context())
		require.NoError(t, err)
		time.AfterFunc(20*time.Millisecond, func() { _ = h.Release() })
	}
	errStuck := errors.New("waited for nothing")
	ctx, cancel := context.WithTimeoutCause(meddle(srv, c), 5*time.Minute, errStuck)
	defer cancel()
	var wg sync.WaitGroup
	for i := range n {
		lock := locks.NewInterProcessMutex(c, nth(i))
		wg.Go(func() {
			for range 2 {
				h, err := lock.Acquire(ctx)
				assert.True(t, (h == nil) != (err == nil), "a hold or an error, never both: %v, %v", h, err)
				if h != nil {
					_ = h.Release() // may go on in the background
				}
			}
		})
	}
	wg.Wait()
	require.NotEqual(t, errStuck, context.Cause(ctx))
	time.Sleep(45 * time.Second) // more than a session, and the longest pause of a background job
	kit.NothingLeft(t, srv)
	next, cancelNext := context.WithTimeout(t.Context(), time.Minute)
	defer cancelNext()
	releaseAll(t, crowd(next, other, n))
}

// Everything that can happen at a request of a batch happens at each in turn.
func TestEachRequestOfABatchFails(t *testing.T) {
	t.Parallel()
	tried := make(map[[2]string]int)
	for name, happens := range kit.Failures() {
		tries := kit.At(name)
		if !*everySweep && !strings.HasPrefix(name, "cut") && !picked(name, "batch", "acquire") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			hit := true
			for nth := range kit.Requests(t, 100, *everySweep) {
				synctest.Test(t, func(t *testing.T) {
					var rule *zktest.Rule
					batchSweep(t, func(srv *zktest.Server, c *framework.Client) context.Context {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						t.Cleanup(cancel)
						rule = srv.On(zktest.Match{Session: c.SessionID(), Nth: nth, Func: tries}, happens(t, srv, c, cancel))
						return ctx
					})
					hit = rule.Fired() > 0
				})
				require.False(t, t.Failed(), "at request %d", nth)
				if !hit {
					break
				}
				tried[[2]string{name, "batch"}]++
			}
			require.False(t, hit, "a batch makes 100 requests")
		})
	}
	kit.Tried(t, "batches, failed", tried)
}

// The caller gives up at any moment: also while its request waits for others.
func TestBatchIsCancelledAtAnyMoment(t *testing.T) {
	t.Parallel()
	for moment := range kit.Moments(t, 60, *everySweep) {
		synctest.Test(t, func(t *testing.T) {
			batchSweep(t, func(*zktest.Server, *framework.Client) context.Context {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(moment)*250*time.Microsecond+1)
				t.Cleanup(cancel)
				return ctx
			})
		})
		require.False(t, t.Failed(), "at moment %d", moment)
	}
}

// A caller gives up while the servers refuse the batch. Its request is not sent again.
func TestWithdrawnFromARefusedBatch(t *testing.T) {
	const n, bad, gone = 20, 7, 11
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(nearTrip/2))
		c := kit.Connect(t, srv)
		ensureLocks(t, c, n)
		releaseAll(t, crowd(t.Context(), c, n))
		require.NoError(t, c.Delete(t.Context(), nth(bad), framework.AnyVersion)) // refuses one batch
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		created := srv.On(zktest.Match{Path: nth(gone) + "/*", Session: c.SessionID(), Op: "multi"},
			zktest.Call(func(zktest.Request) { cancel() }))
		all := make([]result, n)
		contexts := slices.Repeat([]context.Context{t.Context()}, n)
		contexts[gone] = ctx
		behindTwo(n, func(i int) {
			all[i].hold, all[i].err = locks.NewInterProcessMutex(c, nth(i)).Acquire(contexts[i])
		}).Wait()
		require.ErrorIs(t, all[gone].err, context.Canceled)
		releaseAll(t, slices.Delete(all, gone, gone+1))
		time.Sleep(time.Minute)
		assert.Equal(t, int64(1), c.Stats().BatchesUndone)
		assert.Equal(t, 1, created.Fired(), "it is not sent again")
		assert.Empty(t, srv.Ephemerals(0))
	})
}

// What waits for others when the connection ends goes on with the next one.
func TestWaitingForOthersEndsWithTheConnection(t *testing.T) {
	const n = 20
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(nearTrip/2))
		c := kit.Connect(t, srv)
		ensureLocks(t, c, n)
		releaseAll(t, crowd(t.Context(), c, n))
		srv.Freeze()
		all := make([]result, n)
		wg := behindTwo(n, func(i int) {
			all[i].hold, all[i].err = locks.NewInterProcessMutex(c, nth(i)).Acquire(t.Context())
		})
		time.Sleep(time.Second)
		id := c.SessionID()
		srv.Thaw()
		require.NoError(t, srv.Disconnect(id))
		began := time.Now()
		wg.Wait()
		assert.Less(t, time.Since(began), 5*time.Second)
		releaseAll(t, all)
		assert.Empty(t, srv.Ephemerals(0))
	})
}

// After a lost reply each acquisition finds its own node.
func TestReplyToABatchIsLost(t *testing.T) {
	const n = 20
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(nearTrip/2))
		c := kit.Connect(t, srv)
		ensureLocks(t, c, n)
		releaseAll(t, crowd(t.Context(), c, n))
		lost := srv.On(zktest.Match{Op: "multi", Session: c.SessionID(), Nth: 1, Func: func(r zktest.Request) bool { return len(r.Paths) > n/2 }}, zktest.CutAfter())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		all := make([]result, n)
		behindTwo(n, func(i int) {
			all[i].hold, all[i].err = locks.NewInterProcessMutex(c, nth(i)).Acquire(ctx)
		}).Wait()
		assert.Equal(t, 1, lost.Fired())
		assert.Len(t, srv.Ephemerals(0), n, "no node was made twice")
		releaseAll(t, all)
		assert.Empty(t, srv.Ephemerals(0))
	})
}

// Contexts end at the instant at which a batch is refused, with another goroutine behind
// each of them in the local queue.
func TestContextsEndWithARefusal(t *testing.T) {
	t.Parallel()
	const n, rounds = 40, 20
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond), zktest.SweepInterval(0))
		c, op := kit.Connect(t, srv), kit.Connect(t, srv)
		ensureLocks(t, op, n)
		take := func(ctx context.Context, path string) error {
			h, err := locks.NewInterProcessMutex(c, path).Acquire(ctx)
			if err != nil {
				return err
			}
			return h.Release()
		}
		for r := range rounds {
			gone := fmt.Sprint("/no/", r) // the client knows the path, and does not know that it is gone
			require.NoError(t, take(t.Context(), gone))
			require.NoError(t, op.Delete(t.Context(), gone, framework.AnyVersion))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
			var wg sync.WaitGroup
			for i := range n {
				if i == n/2 { // the goroutines at both ends may get away before there is a batch
					wg.Go(func() { assert.NoError(t, take(t.Context(), gone)) })
				}
				wg.Go(func() { _ = take(ctx, nth(i)) })
				wg.Go(func() {
					time.Sleep(time.Millisecond)
					next, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					assert.NoError(t, take(next, nth(i)), "round %d", r)
				})
			}
			wg.Wait()
			cancel()
			require.False(t, t.Failed())
		}
		time.Sleep(time.Second)
		assert.Empty(t, srv.Ephemerals(0))
		assert.Positive(t, c.Stats().BatchesUndone)
	})
}
