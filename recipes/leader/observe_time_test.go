package leader_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// observed is what Observe yields, in order.
type observed struct {
	mu   sync.Mutex
	all  []leader.Observation
	err  error
	over chan struct{}
}

// observe observes in a goroutine, which calls body for each observation.
func observe(ctx context.Context, latch *leader.Latch, body func(leader.Observation)) *observed {
	o := &observed{over: make(chan struct{})}
	go func() {
		defer close(o.over)
		for now, err := range latch.Observe(ctx) {
			o.mu.Lock()
			if o.err = err; err == nil {
				o.all = append(o.all, now)
			}
			o.mu.Unlock()
			if err == nil {
				body(now)
			}
		}
	}()
	return o
}

func (o *observed) ids() (ids []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, one := range o.all {
		switch {
		case !one.Known:
			ids = append(ids, "not known")
		case one.Leader == nil:
			ids = append(ids, "nobody")
		default:
			ids = append(ids, one.Leader.ID)
		}
	}
	return ids
}

func (o *observed) last() leader.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[len(o.all)-1]
}

func TestObserving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		ctx, cancel := context.WithCancel(t.Context())
		o := observe(ctx, leader.NewLatch(c, "/app/e"), func(leader.Observation) {})
		synctest.Wait()
		assert.Equal(t, []string{"nobody"}, o.ids(), "the path is not there")
		other := kit.Connect(t, srv)
		require.NoError(t, other.EnsurePath(t.Context(), "/app/e"))
		time.Sleep(time.Minute)
		a, err := leader.NewLatch(other, "/app/e", leader.ID("a")).Await(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, []string{"nobody", "a"}, o.ids())
		assert.Equal(t, a.Number(), o.last().Leader.Number)
		assert.Equal(t, other.SessionID(), o.last().Leader.Session)
		assert.Equal(t, a.Path(), o.last().Leader.Path)
		assert.True(t, o.last().Leader.Leads)
		assert.WithinDuration(t, time.Now(), o.last().Since, 2*time.Second)
		assert.Contains(t, o.last().String(), "a leads")
		b := stands(t.Context(), t, leader.NewLatch(kit.Connect(t, srv), "/app/e", leader.ID("b")))
		synctest.Wait()
		before := srv.Counters().Notifications
		for range 10 { // candidates behind the leader
			ctx, cancel := context.WithCancel(t.Context())
			behind := leader.NewLatch(kit.Connect(t, srv), "/app/e")
			go func() { _, _ = behind.Await(ctx) }()
			synctest.Wait()
			cancel()
			synctest.Wait()
		}
		assert.Equal(t, []string{"nobody", "a"}, o.ids())
		assert.Zero(t, srv.Counters().Notifications-before, "nobody is told of who stands behind")
		require.NoError(t, a.Release())
		next := <-b
		synctest.Wait()
		require.NoError(t, next.Release())
		synctest.Wait()
		assert.Equal(t, []string{"nobody", "a", "b", "nobody"}, o.ids())
		cancel()
		<-o.over
		require.ErrorIs(t, o.err, context.Canceled)
		synctest.Wait()
		assert.Empty(t, srv.Watches())
	})
}

// An observer says that it does not know, and finds what has changed meanwhile.
func TestObservingThroughAnOutage(t *testing.T) {
	for name, expires := range map[string]bool{"same session": false, "another session": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				a, err := leader.NewLatch(other, "/e", leader.ID("a")).Await(t.Context())
				require.NoError(t, err)
				o := observe(t.Context(), leader.NewLatch(c, "/e"), func(leader.Observation) {})
				time.Sleep(time.Second)
				session := c.SessionID()
				srv.Stall(session, zktest.BothWays)
				time.Sleep(sessionTimeout * 7 / 10)
				assert.Equal(t, []string{"a", "not known"}, o.ids())
				assert.Equal(t, "not known", o.last().String())
				require.NoError(t, a.Release())
				b, err := leader.NewLatch(other, "/e", leader.ID("b")).Await(t.Context())
				require.NoError(t, err)
				if expires {
					require.NoError(t, srv.ExpireSession(session))
				}
				srv.Unstall(session)
				time.Sleep(sessionTimeout)
				assert.Equal(t, []string{"a", "not known", "b"}, o.ids())
				require.NoError(t, b.Release())
				time.Sleep(time.Second)
				assert.Equal(t, []string{"a", "not known", "b", "nobody"}, o.ids())
				require.NoError(t, c.Close())
				<-o.over
				require.ErrorIs(t, o.err, framework.ErrClosed)
			})
		})
	}
}

// At a read-only server an observer sleeps, and goes on once there is a majority.
func TestObservingAtAReadOnlyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.StartCluster(t, 3, zktest.InMemory(), zktest.ReadOnlyMode())
		minority := (srv.Leader() + 1) % 3
		c := kit.Connect(t, &srv.Server, func(cfg *framework.Config) {
			cfg.CanBeReadOnly, cfg.ConnectString = true, srv.Member(minority).ConnectString()
		})
		ctx := &countingContext{Context: t.Context()}
		o := observe(ctx, leader.NewLatch(c, "/e"), func(leader.Observation) {})
		time.Sleep(time.Second)
		srv.Partition([]int{minority}, []int{(minority + 1) % 3, (minority + 2) % 3})
		time.Sleep(time.Minute)
		require.Equal(t, listeners.ReadOnly, c.State())
		before := ctx.asked.Load()
		time.Sleep(time.Minute)
		assert.Less(t, ctx.asked.Load()-before, int64(600), "it looks each second")
		srv.Heal()
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"nobody", "not known", "nobody"}, o.ids())
		require.NoError(t, c.Close())
		<-o.over
	})
}

// countingContext counts how often somebody waits for its end.
type countingContext struct {
	context.Context //nolint:containedctx // it is one
	asked           atomic.Int64
}

func (c *countingContext) Done() <-chan struct{} { c.asked.Add(1); return c.Context.Done() }

// An observer that is slow misses states, but never the last one.
func TestASlowObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		ctx, cancel := context.WithCancel(t.Context())
		o := observe(ctx, leader.NewLatch(kit.Connect(t, srv), "/e"), func(leader.Observation) { time.Sleep(time.Minute) })
		c := kit.Connect(t, srv)
		for range 200 {
			time.Sleep(700 * time.Millisecond)
			term, err := leader.NewLatch(c, "/e").Await(t.Context())
			require.NoError(t, err)
			require.NoError(t, term.Release())
		}
		last, err := leader.NewLatch(c, "/e", leader.ID("last")).Await(t.Context())
		require.NoError(t, err)
		time.Sleep(3 * time.Minute)
		assert.Less(t, len(o.ids()), 10)
		assert.Equal(t, "last", o.last().Leader.ID)
		cancel()
		<-o.over
		require.NoError(t, last.Release())
	})
}

// The leader goes between the list and the look at its node: the next one is found.
func TestObservingALeaderThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		other := kit.Connect(t, srv)
		a, err := leader.NewLatch(other, "/e", leader.ID("a")).Await(t.Context())
		require.NoError(t, err)
		b := stands(t.Context(), t, leader.NewLatch(kit.Connect(t, srv), "/e", leader.ID("b")))
		time.Sleep(time.Second)
		c := kit.Connect(t, srv)
		srv.On(zktest.Match{Session: c.SessionID(), Op: "getData", Nth: 1}, zktest.Delay(time.Second))
		o := observe(t.Context(), leader.NewLatch(c, "/e"), func(leader.Observation) {})
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, a.Release())
		term := <-b
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"b"}, o.ids())
		require.NoError(t, term.Release())
		require.NoError(t, c.Close())
		<-o.over
	})
}

// Somebody begins to stand between the look at an election without candidates and the watch
// on it: before the watch stands, or before its parent is there.
func TestObservingACandidateThatComes(t *testing.T) {
	for _, op := range []string{"getChildren2", "exists"} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				if op != "exists" {
					require.NoError(t, c.EnsurePath(t.Context(), "/e"))
				}
				n := 0
				asked := srv.On(zktest.Match{Session: c.SessionID(), Path: "/e", Func: func(r zktest.Request) bool {
					if strings.HasPrefix(r.Op, "getChildren") {
						n++
						return op != "exists" && n == 2
					}
					return r.Op == op
				}}, zktest.Call(func(zktest.Request) {
					_, err := leader.NewLatch(other, "/e", leader.ID("a")).Await(t.Context())
					assert.NoError(t, err)
				}))
				o := observe(t.Context(), leader.NewLatch(c, "/e"), func(leader.Observation) {})
				time.Sleep(time.Minute)
				assert.Equal(t, 1, asked.Fired())
				assert.Equal(t, []string{"a"}, o.ids())
				require.NoError(t, c.Close())
				<-o.over
			})
		})
	}
}

// Children that are no candidates do not lead, and do not keep an observer from hearing of one
// that is. Candidates of another kind are refused.
func TestObservingBesideOtherChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/e/config"))
		o := observe(t.Context(), leader.NewLatch(c, "/e"), func(leader.Observation) {})
		time.Sleep(time.Minute)
		looks := srv.On(zktest.Match{Session: c.SessionID(), Path: "/e"}, zktest.Call(func(zktest.Request) {}))
		time.Sleep(time.Minute)
		assert.Zero(t, looks.Fired(), "it waits, and does not ask again and again")
		looks.Remove()
		term, err := leader.NewLatch(other, "/e", leader.ID("a")).Await(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, []string{"nobody", "a"}, o.ids())
		for _, err := range leader.NewSelector(c, "/e").Observe(t.Context()) {
			require.ErrorIs(t, err, locks.ErrInvalidLock)
		}
		require.NoError(t, term.Release())
		require.NoError(t, c.Close())
		<-o.over
	})
}

// The path of an election is one of the client's namespace.
func TestObservingInANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		root := kit.Connect(t, srv)
		c := root.UsingNamespace("ns")
		term, err := leader.NewLatch(c, "/e", leader.ID("a")).Await(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		o := observe(ctx, leader.NewLatch(c, "/e"), func(leader.Observation) {})
		synctest.Wait()
		require.Equal(t, []string{"a"}, o.ids())
		assert.Equal(t, term.Path(), o.last().Leader.Path)
		assert.Equal(t, []string{"/ns" + term.Path()}, srv.Ephemerals(0))
		cancel()
		<-o.over
		require.NoError(t, term.Release())
	})
}

// A refusal ends the observation with its error.
func TestObservingWithoutRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/e", nil, framework.Persistent, framework.ACLs(zk.WorldACL(zk.PermCreate)...))
		require.NoError(t, err)
		o := observe(t.Context(), leader.NewLatch(c, "/e"), func(leader.Observation) {})
		<-o.over
		require.ErrorIs(t, o.err, framework.ErrNoAuth)
		assert.Empty(t, o.ids())
	})
}
