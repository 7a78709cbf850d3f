package cache

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// judge compares what a cache has shown with the servers' log of transactions.
type judge struct {
	core *core[string] // decides what is kept
	log  []zktest.Transaction
	at   int
	tree map[string]Entry[string]
}

func newJudge(srv *zktest.Server, c *core[string]) *judge {
	return &judge{core: c, log: srv.Transactions(), tree: make(map[string]Entry[string])}
}

// upTo is the tree after a transaction. Calls come in the order of the zxids.
func (j *judge) upTo(zxid int64) map[string]Entry[string] {
	for ; j.at < len(j.log) && j.log[j.at].Zxid <= zxid; j.at++ {
		for _, change := range j.log[j.at].Changes {
			if !j.core.isKept(change.Path) {
				continue
			}
			e := j.tree[change.Path]
			switch change.Kind {
			case zktest.Created:
				e = Entry[string]{Path: change.Path, Created: j.log[j.at].Zxid, Owner: change.Owner}
			case zktest.DataSet:
				e.Version++
			case zktest.Deleted:
				delete(j.tree, change.Path)
				continue
			}
			e.Value, e.Changed = string(change.Data), j.log[j.at].Zxid
			j.tree[change.Path] = e
		}
	}
	return j.tree
}

// seen collects what a cache shows, until it is closed.
type seen struct {
	snapshots []*Snapshot[string]
	steps     []Step[string]
	merged    []Step[string]
}

func (s *seen) watch(ctx context.Context, c *Cache[string], done *sync.WaitGroup) {
	done.Go(func() {
		for {
			c.mu.Lock()
			now, changed, closed := c.now, c.changed, c.closed
			c.mu.Unlock()
			if n := len(s.snapshots); n == 0 || s.snapshots[n-1] != now {
				s.snapshots = append(s.snapshots, now)
			}
			if closed {
				return
			}
			<-changed
		}
	})
	done.Go(func() {
		for step, err := range c.Steps(ctx) {
			if err != nil {
				return
			}
			s.steps = append(s.steps, step)
		}
	})
	done.Go(func() {
		for step, err := range c.Latest(ctx) {
			if err != nil {
				return
			}
			s.merged = append(s.merged, step)
			time.Sleep(7 * time.Millisecond)
		}
	})
}

func plain(e Entry[string]) Entry[string] {
	e.size = 0
	return e
}

func contents(s *Snapshot[string]) map[string]Entry[string] {
	all := make(map[string]Entry[string])
	for e := range s.All() {
		all[e.Path] = plain(e)
	}
	return all
}

// check judges snapshots, and the states that steps lead to.
func (s *seen) check(t *testing.T, srv *zktest.Server, core *core[string]) {
	t.Helper()
	j, last := newJudge(srv, core), int64(0)
	for _, snapshot := range s.snapshots {
		if snapshot.zxid == 0 {
			continue
		}
		require.GreaterOrEqual(t, snapshot.zxid, last, "zxids grow")
		last = snapshot.zxid
		require.Equal(t, j.upTo(last), contents(snapshot), "the snapshot at %#x", last)
	}
	for _, steps := range [][]Step[string]{s.steps, s.merged} {
		j, tree := newJudge(srv, core), make(map[string]Entry[string])
		for _, step := range steps {
			if step.Restart != nil {
				tree = contents(step.Restart)
			}
			for _, change := range step.Changes {
				if old, there := tree[change.Path]; there || change.Old != nil {
					require.Equal(t, old, plain(*change.Old), "the step to %#x", step.Zxid)
				}
				if change.New == nil {
					delete(tree, change.Path)
				} else {
					tree[change.Path] = plain(*change.New)
				}
			}
			require.Equal(t, j.upTo(step.Zxid), tree, "steps to %#x", step.Zxid)
		}
	}
}

var (
	histories    = flag.Uint64("histories", 15, "how many random histories to judge, for each version and kind of server")
	firstHistory = flag.Uint64("first", 0, "the seed of the first history")
)

func text(_ string, data []byte) (string, error) { return string(data), nil }

// Whatever happens, each snapshot is the subtree at its zxid, and steps lead from one to the
// next: the servers' log of transactions is the judge.
func TestEachSnapshotIsTheTreeAtItsZxid(t *testing.T) {
	for name, server := range map[string]func(t *testing.T, opts ...zktest.Option) (*zktest.Server, func(*rand.Rand) bool){
		"one server": func(t *testing.T, opts ...zktest.Option) (*zktest.Server, func(*rand.Rand) bool) {
			t.Helper()
			return zktest.Start(t, opts...), func(*rand.Rand) bool { return true }
		},
		"an ensemble": func(t *testing.T, opts ...zktest.Option) (*zktest.Server, func(*rand.Rand) bool) {
			t.Helper()
			c := zktest.StartCluster(t, 3, opts...)
			return &c.Server, func(r *rand.Rand) bool { // followers are behind, and change
				switch i := r.IntN(3); {
				case r.IntN(8) == 0:
					c.Elect(i)
				default:
					c.Lag(i, time.Duration(r.IntN(100))*time.Millisecond)
				}
				return c.Leader() >= 0
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			snapshots, steps, merged := 0, 0, 0
			for _, version := range zktest.Versions() {
				for seed := *firstHistory; seed < *firstHistory+*histories; seed++ {
					synctest.Test(t, func(t *testing.T) {
						srv, more := server(t, zktest.InMemory(), zktest.Version(version), zktest.TransactionLog(), zktest.Seed(seed),
							zktest.Latency(time.Millisecond), zktest.LatencyBy(zktest.Uniform(0, time.Millisecond)), zktest.ExpireEvery(10*time.Millisecond))
						s := randomHistory(t, srv, more, seed)
						snapshots += len(s.snapshots)
						steps += len(s.steps)
						merged += len(s.merged)
					})
					if t.Failed() {
						t.Fatalf("version %s, seed %d", version, seed)
					}
				}
			}
			t.Logf("%d snapshots, %d steps, and %d that were merged", snapshots, steps, merged)
			require.Greater(t, snapshots, 40*int(*histories))
		})
	}
}

func randomHistory(t *testing.T, srv *zktest.Server, more func(*rand.Rand) bool, seed uint64) *seen {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a test
	client := kit.Connect(t, srv)
	var paths []string
	for _, a := range []string{"/app", "/app/a", "/app/b", "/app/a-b", "/other"} {
		paths = append(paths, a)
		for _, b := range []string{"/x", "/y"} {
			paths = append(paths, a+b)
			for i := range 2 {
				paths = append(paths, fmt.Sprint(a, b, "/", i))
			}
		}
	}
	ctx := t.Context()
	writer := func(seed uint64, client *framework.Client, n int) {
		r := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // a test
		for i := range n {
			path := paths[r.IntN(len(paths))]
			if r.IntN(3) == 0 {
				path = "/app/b/x" // a busy one
			}
			data := fmt.Appendf(nil, "%d-%d", seed, i)
			switch r.IntN(12) {
			case 0, 1, 2, 3:
				_, _ = client.Create(ctx, path, data, framework.Persistent, framework.Parents())
			case 4:
				_, _ = client.Create(ctx, path, data, framework.Ephemeral)
			case 5:
				_ = client.Delete(ctx, path, framework.AnyVersion)
			case 6:
				if r.IntN(4) == 0 {
					path = "/app"
				}
				_ = client.Delete(ctx, path, framework.AnyVersion, framework.Recursive())
			case 7: // replaced, and others with it
				tx := client.Transaction()
				tx.Delete(path, framework.AnyVersion)
				tx.Create(path, data, framework.Persistent)
				tx.Create(path+"/new", data, framework.Persistent)
				tx.Delete(path+"/new", framework.AnyVersion)
				_, _ = tx.Commit(ctx)
			default:
				_, _ = client.Set(ctx, path, data, framework.AnyVersion)
			}
			if r.IntN(8) == 0 {
				time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			}
		}
	}
	writer(seed+100, client, 40)

	depth := []int{0, 1, 2, all, all}[r.IntN(5)]
	opts := []Option{Depth(depth)}
	if r.IntN(3) == 0 { // it is too slow now and then
		opts = append(opts, option(func(o *options) { o.buffer = 2 }), History(20))
	}
	if r.IntN(3) == 0 {
		opts = append(opts, Recheck(20*time.Millisecond))
	}
	judging := newCore[string]("/app", depth, nil)
	if r.IntN(4) == 0 {
		judging.keep = func(path string) bool { return !strings.HasSuffix(path, "/x") }
		opts = append(opts, Select(judging.keep))
	}
	cached := kit.Connect(t, srv)
	c, err := Start(cached, "/app", text, opts...)
	require.NoError(t, err)
	s := new(seen)
	var done, writers sync.WaitGroup
	s.watch(ctx, c, &done)
	for i := range uint64(3) {
		other := kit.Connect(t, srv)
		writers.Go(func() { writer(1000*seed+i, other, 150) })
	}
	writers.Go(func() { // whose sessions end
		for range 5 {
			short, err := framework.Connect(ctx, kit.Config(srv))
			if err == nil {
				writer(seed, short, 10)
				_ = short.Close()
			}
		}
	})
	writing := make(chan struct{})
	go func() {
		writers.Wait()
		close(writing)
	}()
	for calm := false; !calm; {
		select {
		case <-writing:
			calm = true
		case <-time.After(time.Duration(r.IntN(150))*time.Millisecond + 1):
			able := more(r)
			id := cached.SessionID()
			if !slices.ContainsFunc(srv.Sessions(), func(s zktest.Session) bool { return s.ID == id && s.Remote != "" }) {
				continue
			}
			switch r.IntN(6) {
			case 0:
				_ = srv.Disconnect(id)
			case 1:
				if able {
					_ = srv.ExpireSession(id)
				}
			case 2, 3:
				rule := srv.On(zktest.Match{Op: "multiRead", Session: id, Nth: 1 + r.IntN(3)}, zktest.CutReply(1+r.IntN(400)))
				defer rule.Remove()
			}
		}
	}
	last, err := c.Fresh(ctx)
	for framework.Retryable(err) || errors.Is(err, framework.ErrEndsConnection) { // so many replies were cut
		time.Sleep(time.Minute)
		last, err = c.Fresh(ctx)
	}
	require.NoError(t, err)
	time.Sleep(time.Second) // it may be reading everything again
	assert.True(t, c.Status().Current, "%+v", c.Status())
	c.Close()
	done.Wait()
	s.check(t, srv, judging)
	want := newJudge(srv, judging).upTo(1 << 62)
	require.Equal(t, want, contents(last), "the last state")
	time.Sleep(time.Second)
	assert.False(t, slices.ContainsFunc(srv.Watches(), func(w zktest.WatchInfo) bool { return strings.HasPrefix(w.Kind, "persistent") }), "%v", srv.Watches())
	return s
}

// Rights to read come and go, of which servers do not tell. In the end all may be read, and
// the cache is the tree, without a hole.
func TestRightsThatComeAndGo(t *testing.T) {
	for _, version := range zktest.Versions() {
		for seed := range uint64(10) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Version(version), zktest.TransactionLog(), zktest.Seed(seed), zktest.Latency(time.Millisecond))
				r := rand.New(rand.NewPCG(seed, 4)) //nolint:gosec // a test
				owner := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("u:p")}} })
				mine, all := framework.ACL{Perms: 31, Scheme: "auth"}, framework.ACL{Perms: 31, Scheme: "world", ID: "anyone"}
				var paths []string
				for i := range 30 {
					paths = append(paths, fmt.Sprintf("/app/%d", i%3), fmt.Sprintf("/app/%d/%d", i%3, i), fmt.Sprintf("/app/%d/%d/x", i%3, i))
				}
				client := kit.Connect(t, srv)
				c := started(t, client, "/app", text, Recheck(time.Minute), RetryHoles(10*time.Second))
				ctx := t.Context()
				for i := range 400 {
					path, data := paths[r.IntN(len(paths))], fmt.Append(nil, i)
					switch r.IntN(8) {
					case 0, 1, 2:
						_, _ = owner.Create(ctx, path, data, framework.Persistent, framework.Parents(), framework.ACLs([]framework.ACL{mine, all}[r.IntN(2)]))
					case 3:
						_, _ = owner.Set(ctx, path, data, framework.AnyVersion)
					case 4:
						_ = owner.Delete(ctx, path, framework.AnyVersion, framework.Recursive())
					case 5, 6:
						_, _ = owner.SetACL(ctx, path, []framework.ACL{[]framework.ACL{mine, all}[r.IntN(2)]}, framework.AnyVersion)
					default:
						if time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond); r.IntN(4) == 0 {
							_ = srv.Disconnect(client.SessionID())
						}
					}
				}
				for _, path := range append(paths, "/app") {
					_, _ = owner.SetACL(ctx, path, []framework.ACL{all}, framework.AnyVersion)
				}
				time.Sleep(5 * time.Minute)
				judging := newCore[string]("/app", 100, nil)
				require.Equal(t, newJudge(srv, judging).upTo(1<<62), contents(c.Snapshot()), "version %s, seed %d", version, seed)
				assert.Zero(t, c.Status().Holes)
				assert.True(t, c.Status().Current)
				c.Close()
			})
		}
	}
}
