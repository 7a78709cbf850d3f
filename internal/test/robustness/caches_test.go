//go:build realzk

package robustness

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/check"
	"github.com/paddock-zk/paddock/internal/test/faultnet"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/recipes/cache"
)

var (
	cachesFor  = flag.Duration("caches", 8*time.Second, "how long TestCachesByTheLogs writes and breaks things")
	cachesSeed = flag.Uint64("caches-seed", 0, "chooses what TestCachesByTheLogs breaks; 0 chooses a seed")
)

// copied is what a cache knows of a node.
type copied struct {
	path, data       string
	created, changed int64
	version          int32
	owner            int64
}

// sum is the state of a subtree: how many nodes there are, and a number that says which.
type sum struct {
	nodes int
	of    uint64
}

var sumSeed = maphash.MakeSeed()

func (s *sum) add(n copied)  { s.nodes, s.of = s.nodes+1, s.of+maphash.Comparable(sumSeed, n) }
func (s *sum) take(n copied) { s.nodes, s.of = s.nodes-1, s.of-maphash.Comparable(sumSeed, n) }

func copiedOf(e cache.Entry[string]) copied {
	return copied{e.Path, e.Value, e.Created, e.Changed, e.Version, e.Owner}
}

func sumOf(s *cache.Snapshot[string]) (all sum) {
	for e := range s.All() {
		all.add(copiedOf(e))
	}
	return all
}

// observed is a cache, and what it has shown.
type observed struct {
	name  string
	top   string
	depth int
	limit bool // it may stop, since the tree is too large for it
	// member is that of its client, from 1, which cannot go elsewhere when that is killed. 0 for
	// any.
	member int
	opts   []cache.Option

	cache   *cache.Cache[string]
	shown   []shown // snapshots
	stepped []shown // what the steps lead to
	late    lateness
}

type shown struct {
	zxid int64
	sum  sum
}

// lateness is the longest time without a new snapshot.
type lateness struct{ calm, broken time.Duration }

const left = "left" // the name of nodes that are not selected

// keeps is whether a cache is to have a node.
func (o *observed) keeps(path string) bool {
	below, ok := strings.CutPrefix(path, o.top)
	return ok && (below == "" || below[0] == '/') && strings.Count(below, "/") <= o.depth &&
		(o.opts == nil || !strings.Contains(below+"/", "/"+left+"/"))
}

// steps collects what the steps lead to, until the cache is closed.
func (o *observed) steps(ctx context.Context, t *testing.T) {
	var now sum
	for step, err := range o.cache.Steps(ctx) {
		if err != nil {
			return
		}
		if step.Restart != nil {
			now = sumOf(step.Restart)
		}
		for _, change := range step.Changes {
			if change.Old != nil {
				now.take(copiedOf(*change.Old))
			}
			if change.New != nil {
				now.add(copiedOf(*change.New))
				assert.NoError(t, change.New.Err)
			}
		}
		o.stepped = append(o.stepped, shown{step.Zxid, now})
	}
}

// snapshots collects snapshots until ctx ends.
func (o *observed) snapshots(ctx context.Context, calm *atomic.Bool) {
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	var last *cache.Snapshot[string]
	var since time.Time
	for ctx.Err() == nil {
		isCalm := calm.Load()
		now := o.cache.Snapshot()
		if !since.IsZero() && isCalm {
			o.late.calm = max(o.late.calm, time.Since(since))
		} else if !since.IsZero() {
			o.late.broken = max(o.late.broken, time.Since(since))
		}
		if now != last {
			last = now
			if now.Zxid() != 0 {
				o.shown, since = append(o.shown, shown{now.Zxid(), sumOf(now)}), time.Now()
			}
		}
		<-tick.C
	}
}

// judge compares what was shown with the tree as the transactions have made it, and counts
// what was right and what was wrong.
func (o *observed) judge(t *testing.T, log []check.Txn) (right, wrong int) {
	t.Helper()
	for _, all := range [][]shown{o.shown, o.stepped} {
		assert.True(t, slices.IsSortedFunc(all, func(a, b shown) int { return cmp.Compare(a.zxid, b.zxid) }), "%s: zxids grow", o.name)
		tree, at := make(map[string]copied), 0
		var now sum
		for _, s := range all {
			for ; at < len(log) && log[at].Zxid <= s.zxid; at++ {
				for _, c := range log[at].Changes {
					if !o.keeps(c.Path) {
						continue
					}
					n, there := tree[c.Path]
					if there {
						now.take(n)
						delete(tree, c.Path)
					}
					switch c.Kind {
					case check.Deleted:
						continue
					case check.Created:
						n = copied{path: c.Path, created: log[at].Zxid, owner: c.Owner}
					case check.DataSet:
						n.version++
					}
					n.data, n.changed = c.Data, log[at].Zxid
					tree[c.Path] = n
					now.add(n)
				}
			}
			if s.sum == now {
				right++
				continue
			}
			if wrong++; wrong < 4 {
				t.Errorf("%s at %#x: %d nodes, the logs have %d", o.name, s.zxid, s.sum.nodes, now.nodes)
			}
		}
	}
	return right, wrong
}

// limited ends a connection after some bytes, in the midst of what is read.
type limited struct {
	net.Conn
	left int
}

func (c *limited) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	if c.left -= n; c.left == 0 {
		_ = c.Close()
	}
	return n, err
}

// frail is a network whose connections end after a random number of bytes while it is on.
type frail struct {
	*faultnet.Net
	on *atomic.Bool
}

func (f frail) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := f.Net.DialContext(ctx, network, addr)
	if err != nil || !f.on.Load() || rand.IntN(3) == 0 {
		return c, err
	}
	return &limited{c, 1 + rand.IntN(300_000)}, nil
}

// Caches follow trees that are written at full speed, while everything goes wrong: members are
// killed, connections end at any byte, sessions are ended. What each snapshot shows at its zxid
// is the tree as the servers' logs of transactions have it, and so is what the steps lead to.
func TestCachesByTheLogs(t *testing.T) {
	seed := *cachesSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	e := realzk.StartT(t, realzk.Options{Servers: 3, Tick: tick, JVMArgs: []string{"-Xmx256m"}})
	var frailty, calm atomic.Bool
	calm.Store(true)
	breakable := func(addrs string) (*framework.Client, frail) {
		f := frail{faultnet.New(nil), &frailty}
		t.Cleanup(f.Close)
		return kit.Dial(t, framework.Config{ConnectString: addrs, SessionTimeout: 2 * sessionTimeout, DialContext: f.DialContext}), f
	}

	writing, stopWriting := context.WithCancel(t.Context())
	defer stopWriting()
	var writers sync.WaitGroup
	var writes atomic.Int64
	type broken struct {
		*framework.Client
		frail
	}
	var victims []broken
	for i := range uint64(10) {
		var c *framework.Client
		if i < 3 { // their sessions end, and their ephemeral nodes with them
			var f frail
			c, f = breakable(e.ConnectString())
			victims = append(victims, broken{c, f})
		} else {
			c = kit.Connect(t, e)
		}
		writers.Go(func() { writeTree(writing, c, rand.New(rand.NewPCG(seed, i)), &writes) })
	}

	everything := []*observed{
		{name: "a subtree at member 1", top: "/app", depth: 99, member: 1},
		{name: "one in it at member 1", top: "/app/b", depth: 99, member: 1},
		{name: "one node at member 2", top: "/app/hot", depth: 0, member: 2},
		{name: "children", top: "/app/a", depth: 1},
		{name: "two levels at member 3", top: "/app", depth: 2, member: 3},
		{name: "some", top: "/app", depth: 99, opts: []cache.Option{
			cache.Select(func(path string) bool { return !strings.HasSuffix(path, "/"+left) }), cache.History(20),
		}},
		{name: "a limit", top: "/app/c", depth: 99, limit: true},
	}
	var observers sync.WaitGroup
	watching, stopWatching := context.WithCancel(t.Context())
	defer stopWatching()
	var c *framework.Client
	for i, o := range everything {
		if i != 1 && i != 6 { // those share a client with the one before
			addrs := e.ConnectString()
			if o.member != 0 {
				addrs = e.Addr(o.member - 1)
			}
			var f frail
			c, f = breakable(addrs)
			victims = append(victims, broken{c, f})
		}
		opts := append([]cache.Option{cache.Depth(o.depth)}, o.opts...)
		if o.limit {
			opts = append(opts, cache.MaxNodes(25))
		}
		var err error
		o.cache, err = cache.Start(c, o.top, func(_ string, data []byte) (string, error) { return string(data), nil }, opts...)
		require.NoError(t, err)
		defer o.cache.Close()
		observers.Go(func() { o.steps(t.Context(), t) })
		observers.Go(func() { o.snapshots(watching, &calm) })
	}

	// A quarter of the time nothing breaks.
	<-time.After(*cachesFor / 4)
	calm.Store(false)
	frailty.Store(true)
	faults, until := make(counts), time.Now().Add(*cachesFor*3/4)
	var breaking sync.WaitGroup
	var mu sync.Mutex
	count := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		faults[what]++
	}
	breaking.Go(func() {
		r := rand.New(rand.NewPCG(seed, 101))
		for time.Now().Before(until) {
			v := victims[r.IntN(len(victims))]
			switch r.IntN(4) {
			case 0:
				if v.Expire(t.Context(), v.SessionID()) == nil {
					count("sessions ended")
				}
			case 1:
				v.Refuse()
				v.CutAll()
				<-time.After(between(r, 10*time.Millisecond, 300*time.Millisecond))
				v.Accept()
				count("outages")
			default:
				v.CutAll()
				count("connections cut")
			}
			<-time.After(between(r, 0, 200*time.Millisecond))
		}
	})
	breaking.Go(func() {
		r := rand.New(rand.NewPCG(seed, 102))
		for round := 0; round == 0 || time.Now().Before(until); round++ {
			i := r.IntN(e.Size())
			assert.NoError(t, e.Kill(i))
			count("members killed")
			<-time.After(between(r, 0, sessionTimeout))
			assert.NoError(t, e.Restart(t.Context(), i))
			assert.NoError(t, e.AwaitServing(t.Context()))
			<-time.After(min(time.Until(until), between(r, 0, 2*sessionTimeout)))
		}
	})
	breaking.Wait()
	frailty.Store(false)
	for _, v := range victims {
		v.CutAll() // those that would end after some bytes
	}
	stopWriting()
	writers.Wait()
	require.NoError(t, e.AwaitServing(t.Context()))
	for _, o := range everything {
		if o.limit {
			continue
		}
		kit.Until(t, o.name+" has what was written", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := o.cache.Fresh(ctx)
			return err == nil && o.cache.Status().Current
		})
		assert.Zero(t, o.cache.Status().Holes, o.name)
	}
	<-time.After(100 * time.Millisecond) // the last snapshots are looked at
	stopWatching()
	for _, o := range everything {
		o.cache.Close()
	}
	observers.Wait()

	log := readLogs(t, e)
	require.NotEmpty(t, log)
	t.Logf("%d writes, %d transactions in the servers' logs\n%s", writes.Load(), len(log), faults)
	snapshots, wrong := 0, 0
	for _, o := range everything {
		_, failed := o.judge(t, log)
		snapshots, wrong = snapshots+len(o.shown)+len(o.stepped), wrong+failed
		t.Logf("%-22s: %6d snapshots and %6d steps, %d wrong; longest time without a new snapshot %v, with faults %v",
			o.name, len(o.shown), len(o.stepped), failed, ms(o.late.calm), ms(o.late.broken))
		if !o.limit { // that one may begin when the tree is too large already
			require.NotEmpty(t, o.shown, o.name)
		}
	}
	t.Logf("%d judged, %d wrong", snapshots, wrong)
}

// writeTree writes without a pause. A tenth of the writes goes to one node.
func writeTree(ctx context.Context, c *framework.Client, r *rand.Rand, writes *atomic.Int64) {
	for i := 0; ctx.Err() == nil; i++ {
		path := fmt.Sprintf("/app/%c", 'a'+r.IntN(3))
		for level := 0; level < 3 && r.IntN(4) > 0; level++ {
			path += []string{"/x", "/y", "/z", "/" + left, fmt.Sprint("/", r.IntN(20))}[r.IntN(5)]
		}
		data := fmt.Appendf(nil, "%d-%d", c.SessionID(), i)
		if r.IntN(100) == 0 {
			data = append(data, make([]byte, 5000)...)
		}
		var err error
		switch kind := r.IntN(20); kind {
		case 0, 1:
			path = "/app/hot"
			if _, err = c.Set(ctx, path, data, framework.AnyVersion); err != nil {
				_, err = c.Create(ctx, path, data, framework.Persistent, framework.Parents())
			}
		case 2, 3, 4, 5:
			_, err = c.Create(ctx, path, data, framework.Persistent, framework.Parents())
		case 6, 7:
			_, err = c.Create(ctx, path+"/e", data, framework.Ephemeral)
		case 8, 9:
			err = c.Delete(ctx, path, framework.AnyVersion)
		case 10:
			if r.IntN(100) == 0 {
				path = "/app"
			}
			err = c.Delete(ctx, path, framework.AnyVersion, framework.Recursive())
		case 11, 12, 13: // replaced, and others with it
			tx := c.Transaction()
			tx.Delete(path, framework.AnyVersion)
			tx.Create(path, data, framework.Persistent)
			tx.Create(path+"/new", data, framework.Persistent)
			if kind > 11 {
				tx.Delete(path+"/new", framework.AnyVersion)
				tx.Set(path, data[:1], 0)
			}
			_, err = tx.Commit(ctx)
		default:
			_, err = c.Set(ctx, path, data, framework.AnyVersion)
		}
		if err == nil {
			writes.Add(1)
		}
	}
}
