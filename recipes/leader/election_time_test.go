package leader_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// candidate is what a Latch and a Selector have in common.
type candidate interface {
	ID() string
	Path() string
	Term() *leader.Term
	Await(ctx context.Context) (*leader.Term, error)
	Participants(ctx context.Context) ([]leader.Participant, error)
	Observe(ctx context.Context) iter.Seq2[leader.Observation, error]
	Run(ctx context.Context, lead func(ctx context.Context, term *leader.Term) error) error
}

// both runs a test with each layout, in a bubble of its own.
func both(t *testing.T, test func(t *testing.T, stand func(c *framework.Client, opts ...leader.Option) candidate, kind string)) {
	for kind, stand := range map[string]func(*framework.Client, ...leader.Option) candidate{
		"latch-": func(c *framework.Client, opts ...leader.Option) candidate { return leader.NewLatch(c, "/e", opts...) },
		"lock-": func(c *framework.Client, opts ...leader.Option) candidate {
			return leader.NewSelector(c, "/e", opts...)
		},
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, stand, kind) })
		})
	}
}

// stands waits for a term in a goroutine.
func stands(ctx context.Context, t *testing.T, c candidate) <-chan *leader.Term {
	t.Helper()
	got := make(chan *leader.Term, 1)
	go func() {
		term, err := c.Await(ctx)
		assert.NoError(t, err)
		got <- term
	}()
	return got
}

// soon is the term of a candidate that stands. That it takes long is a failure.
func soon(t *testing.T, next <-chan *leader.Term) *leader.Term {
	t.Helper()
	select {
	case term := <-next:
		return term
	case <-time.After(sessionTimeout):
		require.Fail(t, "nobody leads")
		return nil
	}
}

// The nodes are Curator's, and one term ends before the next one begins.
func TestTermAfterTerm(t *testing.T) {
	both(t, func(t *testing.T, stand func(*framework.Client, ...leader.Option) candidate, kind string) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		a, b := stand(c, leader.ID("a")), stand(kit.Connect(t, srv), leader.ID("b"))
		assert.Equal(t, "a", a.ID())
		assert.Equal(t, "/e", a.Path())
		first, err := a.Await(t.Context())
		require.NoError(t, err)
		assert.Regexp(t, `^/e/_c_[-0-9a-f]{36}-`+kind+`0000000000$`, first.Path())
		data, stat, err := c.Get(t.Context(), first.Path())
		require.NoError(t, err)
		assert.Equal(t, "a", string(data))
		assert.Equal(t, stat.Czxid, first.Number())
		assert.Equal(t, c.SessionID(), stat.EphemeralOwner)
		second := stands(t.Context(), t, b)
		time.Sleep(time.Minute)
		all, err := b.Participants(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 2)
		assert.Equal(t, leader.Participant{
			ID: "a", Leads: true, Path: first.Path(), Session: c.SessionID(), Number: first.Number(), Since: all[0].Since,
		}, all[0])
		assert.Equal(t, "b", all[1].ID)
		assert.False(t, all[1].Leads)
		assert.Equal(t, locks.Held, first.State())
		require.NoError(t, first.Release())
		require.ErrorIs(t, first.Release(), locks.ErrReleased)
		require.ErrorIs(t, context.Cause(first.Context()), locks.ErrReleased)
		next := <-second
		assert.Less(t, first.Number(), next.Number())
		assert.Equal(t, all[1].Number, next.Number())
		require.NoError(t, next.Release())
		synctest.Wait()
		kit.NothingLeft(t, srv)
	})
}

// When a candidate in the middle leaves, nobody leads by it, and the one behind it does when
// the leader has gone.
func TestACandidateInTheMiddleLeaves(t *testing.T) {
	both(t, func(t *testing.T, stand func(*framework.Client, ...leader.Option) candidate, _ string) {
		srv := zktest.Start(t, zktest.InMemory())
		first, err := stand(kit.Connect(t, srv)).Await(t.Context())
		require.NoError(t, err)
		middle, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		second := stand(kit.Connect(t, srv))
		go func() {
			_, err := second.Await(middle)
			left <- err
		}()
		time.Sleep(time.Second)
		last := stands(t.Context(), t, stand(kit.Connect(t, srv)))
		time.Sleep(time.Second)
		leave()
		require.ErrorIs(t, <-left, context.Canceled)
		time.Sleep(time.Minute)
		assert.Empty(t, last)
		assert.Equal(t, locks.Held, first.State())
		require.NoError(t, first.Release())
		require.NoError(t, (<-last).Release())
	})
}

// A latch and a mutex are not in each other's queue; a selector is in that of a mutex.
func TestASelectorStandsWithAMutex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		hold, err := locks.NewInterProcessMutex(kit.Connect(t, srv), "/e").Acquire(t.Context())
		require.NoError(t, err)
		c := kit.Connect(t, srv)
		_, err = leader.NewLatch(c, "/e").Await(t.Context())
		require.ErrorIs(t, err, locks.ErrInvalidLock, "the path is a mutex's")
		next := stands(t.Context(), t, leader.NewSelector(c, "/e"))
		time.Sleep(time.Minute)
		assert.Empty(t, next)
		require.NoError(t, hold.Release())
		require.NoError(t, (<-next).Release())
	})
}

// To lead where nobody does is one round trip, and to follow a leader is none after the
// event.
func TestRoundTrips(t *testing.T) {
	both(t, func(t *testing.T, stand func(*framework.Client, ...leader.Option) candidate, _ string) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/e"))
		a, b := stand(c), stand(kit.Connect(t, srv))
		time.Sleep(time.Second) // the session is young: its lease is to be proved first
		began := time.Now()
		first, err := a.Await(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2*d, time.Since(began), "one round trip")
		var led time.Time
		next := make(chan *leader.Term, 1)
		go func() {
			term, err := b.Await(t.Context())
			led = time.Now()
			assert.NoError(t, err)
			next <- term
		}()
		time.Sleep(time.Second)
		applied := time.Now().Add(d)
		require.NoError(t, first.Release())
		require.NoError(t, (<-next).Release())
		assert.Equal(t, d, led.Sub(applied), "the event")
	})
}

// faults are ways in which the leader's term ends without the leader's will. Each returns
// what the cause of its context matches.
var faults = map[string]func(t *testing.T, srv *zktest.Server, c *framework.Client, term *leader.Term) error{
	"crash": func(_ *testing.T, srv *zktest.Server, c *framework.Client, _ *leader.Term) error {
		srv.Stall(c.SessionID(), zktest.BothWays)
		return locks.ErrLockLost
	},
	"expiry": func(t *testing.T, srv *zktest.Server, c *framework.Client, _ *leader.Term) error {
		t.Helper()
		require.NoError(t, srv.ExpireSession(c.SessionID()))
		return locks.ErrLockLost
	},
	"node deleted": func(t *testing.T, srv *zktest.Server, _ *framework.Client, term *leader.Term) error {
		t.Helper()
		require.NoError(t, kit.Connect(t, srv).Delete(t.Context(), term.Path(), framework.AnyVersion))
		return locks.ErrNodeDeleted
	},
	"close": func(t *testing.T, _ *zktest.Server, c *framework.Client, _ *leader.Term) error {
		t.Helper()
		require.NoError(t, c.Close())
		return framework.ErrClosed
	},
}

// The context of a term ends first, whatever ends the term, and the next candidate
// leads in time.
func TestTheNextLeaderAfterAFault(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, stand func(*framework.Client, ...leader.Option) candidate, _ string) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c := kit.Connect(t, srv)
				first, err := stand(c).Await(t.Context())
				require.NoError(t, err)
				next := stands(t.Context(), t, stand(kit.Connect(t, srv)))
				time.Sleep(time.Minute)
				var ended time.Time
				stop := context.AfterFunc(first.Context(), func() { ended = time.Now() })
				defer stop()
				began := time.Now()
				want := fault(t, srv, c, first)
				term := <-next
				took := time.Since(began)
				synctest.Wait()
				assert.Less(t, took, sessionTimeout+2*time.Second)
				require.ErrorIs(t, context.Cause(first.Context()), want)
				if name == "crash" {
					assert.Less(t, ended, began.Add(took), "the old term ended before the next one began")
				}
				assert.NotEqual(t, locks.Held, first.State())
				assert.Less(t, first.Number(), term.Number())
				_ = first.Release()
				require.NoError(t, term.Release())
			})
		})
	}
}

// A candidate that gives up leaves nothing, wherever the creation of its node had come.
func TestGivingUpToStand(t *testing.T) {
	for _, fault := range []struct {
		name  string
		fault zktest.Fault
	}{
		{"waits", zktest.Delay(0)},
		{"creation is slow", zktest.Delay(20 * time.Second)},
		{"creation is cut before", zktest.CutBefore()},
		{"creation is cut after", zktest.CutAfter()},
	} {
		t.Run(fault.name, func(t *testing.T) {
			both(t, func(t *testing.T, stand func(*framework.Client, ...leader.Option) candidate, _ string) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				first, err := stand(kit.Connect(t, srv)).Await(t.Context())
				require.NoError(t, err)
				c := kit.Connect(t, srv)
				srv.On(zktest.Match{Session: c.SessionID(), Op: "create2", Nth: 1}, fault.fault)
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				_, err = stand(c).Await(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				time.Sleep(time.Minute)
				assert.Equal(t, []string{first.Path()}, srv.Ephemerals(0))
				require.NoError(t, first.Release())
			})
		})
	}
}

// The reply to the creation is lost: the node is found, and no second one is made.
func TestALostReplyAtCreation(t *testing.T) {
	both(t, func(t *testing.T, stand func(*framework.Client, ...leader.Option) candidate, _ string) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/e"))
		srv.On(zktest.Match{Session: c.SessionID(), Op: "create2", Nth: 1}, zktest.CutAfter())
		srv.On(zktest.Match{Session: c.SessionID(), Op: "multi", Nth: 1}, zktest.CutAfter())
		term, err := stand(c).Await(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, []string{term.Path()}, srv.Ephemerals(0))
		require.NoError(t, term.Release())
	})
}

// A refusal is returned, by Run as well: nobody waits in silence.
func TestNoAuth(t *testing.T) {
	both(t, func(t *testing.T, stand func(*framework.Client, ...leader.Option) candidate, _ string) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/e", nil, framework.Persistent, framework.ACLs(zk.WorldACL(zk.PermRead)...))
		require.NoError(t, err)
		_, err = stand(c).Await(t.Context())
		require.ErrorIs(t, err, framework.ErrNoAuth)
		assert.Contains(t, err.Error(), "await leadership /e")
		err = stand(c).Run(t.Context(), func(context.Context, *leader.Term) error { return nil })
		require.ErrorIs(t, err, framework.ErrNoAuth)
	})
}

// A context of a term cannot wait for the next one.
func TestAwaitUnderATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		latch := leader.NewLatch(kit.Connect(t, zktest.Start(t, zktest.InMemory())), "/e")
		assert.Nil(t, latch.Term())
		term, err := latch.Await(t.Context())
		require.NoError(t, err)
		assert.Same(t, term, latch.Term())
		_, err = latch.Await(term.Context())
		require.ErrorIs(t, err, locks.ErrDeadlock)
		term.GiveWay(0)
		assert.Nil(t, latch.Term())
		require.ErrorIs(t, context.Cause(term.Context()), leader.ErrSteppedDown)
		require.NoError(t, term.Release())
	})
}

// A hundred candidates and two hundred terms: two candidates hear of each change, the terms
// go round, and nothing is left.
func TestNoHerd(t *testing.T) {
	const candidates, terms = 50, 100
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		j := &termChecker{t: t}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		led := make(map[string]int) // guarded by leading
		for i := range candidates {
			latch := leader.NewLatch(kit.Connect(t, srv), "/e", leader.ID(fmt.Sprint(i)))
			wg.Go(func() {
				err := latch.Run(ctx, func(_ context.Context, term *leader.Term) error {
					j.begins(term)
					led[latch.ID()]++
					if j.count() == terms {
						cancel()
					}
					time.Sleep(time.Second)
					return nil
				})
				assert.ErrorIs(t, err, context.Canceled)
			})
			synctest.Wait()
		}
		before := srv.Counters().Notifications
		time.Sleep(50*time.Second + time.Millisecond)
		synctest.Wait()
		// Three events for each term. The next candidate hears that the leader's node is
		// gone, and so does the one behind, which prepares. The leader watches its own
		// node, so it hears of the end that it has caused.
		assert.LessOrEqual(t, srv.Counters().Notifications-before, int64(3*50))
		wg.Wait()
		assert.GreaterOrEqual(t, j.count(), terms)
		for id, n := range led {
			assert.InDelta(t, terms/candidates, n, 1, "terms of %s", id)
		}
		assert.Len(t, led, candidates)
		synctest.Wait()
		kit.NothingLeft(t, srv)
	})
}

// Candidates that fail in any way, one after another: at each beginning of a term all
// others are over.
func TestTermsThroughFaults(t *testing.T) {
	both(t, func(t *testing.T, stand func(*framework.Client, ...leader.Option) candidate, _ string) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		j := &termChecker{t: t}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var clients []*framework.Client
		for range 5 {
			c := kit.Connect(t, srv)
			clients = append(clients, c)
			wg.Go(func() {
				err := stand(c).Run(ctx, func(ctx context.Context, term *leader.Term) error {
					j.begins(term)
					<-ctx.Done()
					return ctx.Err()
				})
				assert.ErrorIs(t, err, context.Canceled)
			})
		}
		time.Sleep(time.Second)
		for i := range 24 {
			terms := j.count()
			j.mu.Lock()
			leads := j.terms[terms-1]
			j.mu.Unlock()
			var session int64
			for _, c := range clients {
				if c.SessionID() == 0 {
					continue
				}
				for _, path := range srv.Ephemerals(c.SessionID()) {
					if path == leads.Path() {
						session = c.SessionID()
					}
				}
			}
			require.NotZero(t, session, "fault %d: %v, %v, %v", i, leads, context.Cause(leads.Context()), srv.Ephemerals(0))
			// By force, two clients may hear of one change at two moments.
			j.force(i%4 <= 1)
			switch i % 4 {
			case 0:
				require.NoError(t, srv.ExpireSession(session))
			case 1:
				require.NoError(t, clients[0].Delete(t.Context(), leads.Path(), framework.AnyVersion))
			case 2:
				srv.Stall(session, zktest.BothWays)
			case 3:
				leads.GiveWay(time.Second)
			}
			time.Sleep(sessionTimeout + 2*time.Second)
			assert.Greater(t, j.count(), terms, "nobody leads after fault %d", i)
			srv.Unstall(session)
		}
		cancel()
		wg.Wait()
		time.Sleep(time.Minute)
		kit.NothingLeft(t, srv)
	})
}
