package cache

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
)

// read is the answer to the read of a node.
func nodeRead(path, data string, changed int64, children int32) framework.ReadResult {
	return framework.ReadResult{
		Read: framework.Read{Path: path}, Data: []byte(data), Stat: &framework.Stat{Czxid: 1, Mzxid: changed, NumChildren: children},
	}
}

func noNode(path string) framework.ReadResult {
	return framework.ReadResult{Read: framework.Read{Path: path}, Err: framework.ErrNoNode}
}

func answer(zxid int64, results ...framework.ReadResult) framework.Event {
	return framework.Event{Type: framework.Answered, Zxid: zxid, Results: results}
}

// loaded is a core with two nodes, at state 10.
func loaded(t *testing.T) *core[string] {
	t.Helper()
	c := newCore("/a", all, text)
	assert.Empty(t, c.take(framework.Event{Type: framework.Established, Zxid: 10}))
	assert.Equal(t, []framework.Read{{Path: "/a"}}, c.asks())
	assert.Empty(t, c.take(answer(10, nodeRead("/a", "1", 1, 1))))
	assert.Equal(t, []framework.Read{{Path: "/a", Children: true}}, c.asks())
	assert.Empty(t, c.take(answer(10, framework.ReadResult{Read: framework.Read{Path: "/a", Children: true}, Names: []string{"b"}})))
	assert.Equal(t, []framework.Read{{Path: "/a/b"}}, c.asks())
	snapshots := c.take(answer(10, nodeRead("/a/b", "2", 2, 0)))
	require.Len(t, snapshots, 1)
	assert.Equal(t, int64(10), snapshots[0].Zxid())
	assert.Equal(t, 2, snapshots[0].Len())
	return c
}

// If no transaction was made in an outage, nothing is read again. That holds only if the copy
// is that of the last state which was seen: a server may be behind what another one has told.
func TestOutageWithoutATransaction(t *testing.T) {
	for name, tc := range map[string]struct {
		before []framework.Event
		again  int64
		keeps  bool
	}{
		"nothing has changed":     {nil, 10, true},
		"something has":           {nil, 11, false},
		"a node was taken out":    {[]framework.Event{{Type: framework.NodeDeleted, Path: "/a/b"}}, 10, false},
		"a node is not known":     {[]framework.Event{{Type: framework.NodeDataChanged, Path: "/a/b"}}, 10, false},
		"another outage came too": {[]framework.Event{{Type: framework.Gap, Zxid: 10}, {Type: framework.Established, Zxid: 12}}, 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := loaded(t)
			for _, ev := range tc.before {
				c.take(ev)
			}
			c.take(framework.Event{Type: framework.Gap, Zxid: 10})
			assert.Empty(t, c.asks())
			assert.Empty(t, c.take(framework.Event{Type: framework.Established, Zxid: tc.again}))
			if tc.keeps {
				assert.Empty(t, c.asks())
			} else {
				assert.Equal(t, framework.Read{Path: "/a"}, c.asks()[0])
			}
			assert.Equal(t, tc.keeps, c.level)
		})
	}
}

// After an outage the nodes of the last snapshot are read at once. The lists are read of nodes
// that were made again, or have had children made or deleted, and of no others.
func TestWhatIsListedAfterAnOutage(t *testing.T) {
	inner := func(path string, czxid, pzxid int64) framework.ReadResult {
		r := nodeRead(path, "", czxid, 1)
		r.Stat.Czxid, r.Stat.Pzxid = czxid, pzxid
		return r
	}
	for name, tc := range map[string]struct {
		again framework.ReadResult
		lists []framework.Read
	}{
		"the same children": {inner("/a", 1, 10), nil},
		"a child was made":  {inner("/a", 1, 11), []framework.Read{{Path: "/a", Children: true}}},
		"it was made again": {inner("/a", 11, 11), []framework.Read{{Path: "/a", Children: true}}},
		"it has none":       {nodeRead("/a", "", 1, 0), nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := loaded(t)
			c.take(framework.Event{Type: framework.Gap})
			c.take(framework.Event{Type: framework.Established, Zxid: 12})
			assert.Equal(t, []framework.Read{{Path: "/a"}, {Path: "/a/b"}}, c.asks())
			snapshots := c.take(answer(12, tc.again, nodeRead("/a/b", "3", 11, 0)))
			assert.Equal(t, tc.lists, c.asks())
			if tc.lists != nil {
				assert.Empty(t, snapshots)
				c.take(answer(12, framework.ReadResult{Read: tc.lists[0], Names: []string{"b", "c"}}))
				assert.Equal(t, []framework.Read{{Path: "/a/c"}}, c.asks())
				snapshots = c.take(answer(12, nodeRead("/a/c", "4", 11, 0)))
			}
			require.Len(t, snapshots, 1)
			e, _ := snapshots[0].Get("/a/b")
			assert.Equal(t, "3", e.Value)
			assert.Equal(t, 2+len(tc.lists), snapshots[0].Len())
			assert.Equal(t, c.published.Len(), c.size())
			assert.Zero(t, c.carried)
		})
	}
}

// Nodes that are gone since the last snapshot do not count as part of a subtree that may be
// too large.
func TestSizeAfterAnOutage(t *testing.T) {
	c := loaded(t)
	c.take(framework.Event{Type: framework.Gap})
	c.take(framework.Event{Type: framework.Established, Zxid: 12})
	assert.Zero(t, c.size())
	assert.Zero(t, c.bytes)
	c.take(framework.Event{Type: framework.NodeDeleted, Path: "/a/b"})
	assert.Zero(t, c.size())
	assert.Zero(t, c.bytes)
	require.Len(t, c.take(answer(13, nodeRead("/a", "345", 11, 0))), 1)
	assert.Equal(t, 1, c.size())
	assert.Equal(t, len("/a")+len("345"), c.bytes)
	assert.Empty(t, c.loaded)
}

// A read that was under way before an outage is not waited for: a deletion alone shows.
func TestReadThatAnOutageEnds(t *testing.T) {
	c := loaded(t)
	c.check()
	assert.Len(t, c.asks(), 3)
	c.take(framework.Event{Type: framework.Gap, Zxid: 10})
	c.take(framework.Event{Type: framework.Established, Zxid: 10})
	assert.True(t, c.level, "nothing has changed")
	c.take(framework.Event{Type: framework.NodeDeleted, Path: "/a/b"})
	assert.Equal(t, []framework.Read{{Path: "/a"}}, c.asks())
}

// A server that is behind what another one has shown brings no snapshot, and is asked again.
func TestServerThatIsBehind(t *testing.T) {
	c := loaded(t)
	c.take(framework.Event{Type: framework.Gap})
	c.take(framework.Event{Type: framework.Established, Zxid: 8})
	c.asks()
	assert.Empty(t, c.take(answer(8, nodeRead("/a", "0", 1, 0), noNode("/a/b"))))
	assert.False(t, c.level)
	c.again()
	assert.Equal(t, []framework.Read{{Path: "/a"}}, c.asks())
	c.take(framework.Event{Type: framework.NodeDataChanged, Path: "/a"})
	assert.Len(t, c.take(answer(12, nodeRead("/a", "3", 11, 0))), 1)
	assert.True(t, c.level)
}

// A read that the client or the server turns away says nothing of the node.
func TestReadThatIsTurnedAway(t *testing.T) {
	for _, reason := range []error{framework.ErrNotConnected, framework.ErrEndsConnection} {
		c := loaded(t)
		c.take(framework.Event{Type: framework.NodeDataChanged, Path: "/a/b"})
		assert.Equal(t, []framework.Read{{Path: "/a/b"}}, c.asks())
		refused := framework.ReadResult{Read: framework.Read{Path: "/a/b"}, Err: reason}
		assert.Empty(t, c.take(answer(11, refused)), "it would have the old value")
		require.ErrorIs(t, c.why, reason)
		assert.Empty(t, c.asks(), "not at once")
		c.again()
		assert.Equal(t, []framework.Read{{Path: "/a/b"}}, c.asks())
		snapshots := c.take(answer(12, nodeRead("/a/b", "3", 12, 0)))
		require.Len(t, snapshots, 1)
		e, _ := snapshots[0].Get("/a/b")
		assert.Equal(t, "3", e.Value)
		require.NoError(t, c.why)
	}
}

// A tree that was made at once is the one that was made by one entry after another, and other
// trees stay as they are.
func TestTreeMadeAtOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3)) //nolint:gosec // a test
	for n := range 200 {
		var first, second, renewed []*Entry[int]
		var before, stale, want tree[int]
		for i := range r.IntN(max(300, 20*n)) {
			e := &Entry[int]{Path: fmt.Sprintf("/%d/%c%d", i%7, "-/."[r.IntN(3)], i)}
			if want = want.put(e); r.IntN(3) == 0 {
				before, first = before.put(e), append(first, e)
				if r.IntN(3) == 0 {
					old := *e
					old.Value = -1
					stale, renewed = stale.put(&old), append(renewed, e)
				} else {
					stale = stale.put(e)
				}
			} else {
				second = append(second, e)
			}
		}
		now := before.put(second...)
		assert.Equal(t, want.len(), now.len())
		assert.Equal(t, slices.Collect(want.under("/")), slices.Collect(now.under("/")))
		assert.Equal(t, len(first), before.len())
		assert.Len(t, slices.Collect(before.under("/")), len(first))
		diff(want, now, func(a, b *Entry[int]) { t.Errorf("%v and %v", a, b) })
		diff(now, stale.put(slices.Concat(second, renewed)...), func(a, b *Entry[int]) { t.Errorf("%v and %v", a, b) })
		for _, e := range second {
			now = now.without(e.Path)
		}
		diff(before, now, func(a, b *Entry[int]) { t.Errorf("%v and %v", a, b) })
	}
}

// A tree is a map in an order, old trees stay, and a difference is what has changed.
func TestTree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	paths := []string{"/"}
	for _, a := range []string{"a", "a-b", "a.b", "ab", "z"} {
		paths = append(paths, "/"+a)
		for _, b := range []string{"x", "x y", "ü"} {
			paths = append(paths, "/"+a+"/"+b, "/"+a+"/"+b+"/0")
		}
	}
	var now tree[int]
	model := map[string]int{}
	type old struct {
		tree  tree[int]
		model map[string]int
	}
	var olds []old
	for i := range 5000 {
		path := paths[r.IntN(len(paths))]
		if r.IntN(2) == 0 {
			now = now.put(&Entry[int]{Path: path, Value: i})
			model[path] = i
		} else {
			now = now.without(path)
			delete(model, path)
		}
		if r.IntN(20) == 0 {
			olds = append(olds, old{now, maps.Clone(model)})
		}
	}
	in := func(list []string) []string { return slices.SortedFunc(slices.Values(list), compare) }
	for i, o := range olds {
		s := &Snapshot[int]{top: "/", tree: o.tree}
		require.Equal(t, len(o.model), s.Len())
		for _, top := range paths {
			var under, below, got []string
			for path, v := range o.model {
				e, ok := s.Get(path)
				require.True(t, ok)
				require.Equal(t, v, e.Value)
				if isUnder(path, top) {
					under = append(under, path)
				}
			}
			for e := range s.Under(top) {
				got = append(got, e.Path)
			}
			require.Equal(t, in(under), got)
			got = nil
			for e := range s.Children(top) {
				got = append(got, e.Path)
			}
			// The topmost nodes below: a parent may be missing in this test.
			for _, path := range in(under) {
				if path != top && (len(below) == 0 || !isUnder(path, below[len(below)-1])) {
					below = append(below, path)
				}
			}
			require.Equal(t, below, got)
			_, ok := o.model[top]
			_, has := s.Get(top)
			require.Equal(t, ok, has)
		}
		if i == 0 {
			continue
		}
		replayed := maps.Clone(olds[i-1].model)
		last := ""
		for _, c := range changes(olds[i-1].tree, o.tree) {
			if last != "" {
				require.Negative(t, compare(last, c.Path))
			}
			if last = c.Path; c.New == nil {
				delete(replayed, c.Path)
			} else {
				replayed[c.Path] = c.New.Value
			}
		}
		for path, v := range replayed { // what the transactions say is not part of this test
			if o.model[path] != v {
				e := o.tree.get(path)
				require.NotNil(t, e)
				require.True(t, e.same(olds[i-1].tree.get(path)))
			}
		}
	}
	assert.Negative(t, compare("/a/b", "/a-b"))
	assert.True(t, isUnder("/a/b", "/") && !isUnder("/ab", "/a"))
}

// A node takes little memory besides its path and data, also after the load.
func TestMemory(t *testing.T) {
	const n, data, most = 50_000, 96, 120
	c := newCore("/a", all, Bytes)
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC() // what the first one has found is free now
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	c.take(framework.Event{Type: framework.Established, Zxid: 10})
	c.take(answer(10, nodeRead("/a", "", 1, n)))
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("node-%06d", i)
	}
	c.take(answer(10, framework.ReadResult{Read: framework.Read{Path: "/a", Children: true}, Names: names}))
	readAll := func() {
		for reads := c.asks(); len(reads) > 0; reads = c.asks() {
			ev := answer(10)
			for _, read := range reads {
				ev.Results = append(ev.Results, nodeRead(read.Path, strings.Repeat("x", data), 1, 0))
			}
			c.take(ev)
		}
	}
	readAll()
	assert.Equal(t, n+1, c.published.Len())
	for _, name := range names { // all of them have an event at once
		c.take(framework.Event{Type: framework.NodeDataChanged, Path: "/a/" + name})
	}
	assert.Len(t, c.dirty, n)
	readAll()
	assert.True(t, c.exact())
	each := int(heap()-before)/n - data - len("/a/node-000000")
	t.Logf("%d bytes a node", each)
	assert.LessOrEqual(t, each, most)
	runtime.KeepAlive(c)
}

// After an outage the nodes of the last snapshot are read again in pieces. There is no snapshot
// before all are. What happens to them in the meantime is as if they had been looked at.
func TestManyNodesAreReadAgainInPieces(t *testing.T) {
	const n = 5*mostLooked + 7
	path := func(i int) string { return fmt.Sprintf("/a/%05d", i) }
	c := newCore("/a", all, text)
	c.take(framework.Event{Type: framework.Established, Zxid: 10})
	c.asks()
	c.take(answer(10, nodeRead("/a", "1", 1, n)))
	c.asks()
	list := framework.ReadResult{Read: framework.Read{Path: "/a", Children: true}}
	for i := range n {
		list.Names = append(list.Names, path(i)[3:])
	}
	c.take(answer(10, list))
	for reads := c.asks(); len(reads) > 0; reads = c.asks() {
		var results []framework.ReadResult
		for _, r := range reads {
			results = append(results, nodeRead(r.Path, "2", 2, 0))
		}
		c.take(answer(10, results...))
	}
	require.Equal(t, n+1, c.published.Len())
	old := c.published

	c.take(framework.Event{Type: framework.Gap})
	c.take(framework.Event{Type: framework.Established, Zxid: 12})
	assert.LessOrEqual(t, len(c.dirty), mostLooked+1, "others have their turn")
	var lists []framework.Read
	var snapshots []*Snapshot[string]
	read := make(map[string]bool)
	for reads := c.asks(); len(reads) > 0; reads = c.asks() {
		require.Empty(t, snapshots)
		var results []framework.ReadResult
		for _, r := range reads {
			switch {
			case r.Children:
				lists = append(lists, r)
				results = append(results, framework.ReadResult{Read: r, Names: []string{"y"}})
				continue
			case r.Path == path(n-2):
				results = append(results, noNode(r.Path))
			case r.Path == path(n-4): // made again
				results = append(results, nodeRead(r.Path, "4", 13, 1))
				results[len(results)-1].Stat.Czxid = 13
			case r.Path == path(n-1):
				results = append(results, nodeRead(r.Path, "3", 13, 0))
			case r.Path == path(n-5): // a child was made in the outage
				results = append(results, nodeRead(r.Path, "2", 2, 1))
				results[len(results)-1].Stat.Pzxid = 11
			default:
				results = append(results, nodeRead(r.Path, "2", 2, 0))
			}
			require.False(t, read[r.Path], "%s is read twice", r.Path)
			read[r.Path] = true
		}
		snapshots = c.take(answer(14, results...))
		if len(reads) == mostAsked { // the last ones were not looked at yet
			c.take(framework.Event{Type: framework.NodeDataChanged, Path: path(n - 1)})
			c.take(framework.Event{Type: framework.NodeDeleted, Path: path(n - 2)})
			c.take(framework.Event{Type: framework.NodeCreated, Path: path(n-3) + "/x"})
			c.take(framework.Event{Type: framework.NodeDeleted, Path: path(n - 4)})
			c.take(framework.Event{Type: framework.NodeCreated, Path: path(n - 4)})
		}
	}
	assert.Equal(t, []framework.Read{{Path: path(n - 5), Children: true}}, lists)
	require.Len(t, snapshots, 1)
	_, there := snapshots[0].Get(path(n - 2))
	assert.False(t, there)
	for p, want := range map[string]string{path(n - 1): "3", path(n-3) + "/x": "2", path(n - 4): "4", path(n-5) + "/y": "2", path(7): "2"} {
		e, there := snapshots[0].Get(p)
		assert.True(t, there, p)
		assert.Equal(t, want, e.Value, p)
	}
	assert.Equal(t, old.Len()-1+2, snapshots[0].Len())
	assert.Equal(t, snapshots[0].Len(), c.size())
	assert.Zero(t, c.carried)
	assert.Same(t, old.tree.get(path(7)), snapshots[0].tree.get(path(7)), "its memory is there once")
}

// The names of a long list are looked at in pieces. There is no snapshot before the last one,
// and one is asked for if nothing is left to be read. What happens to the nodes in the meantime
// is as if they had been looked at.
func TestLongListIsLookedAtInPieces(t *testing.T) {
	const n = 5*mostLooked + 7
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%05d", i))
	}
	list := framework.ReadResult{Read: framework.Read{Path: "/a", Children: true}, Names: slices.Clone(names)}
	newest, top := "/a/"+names[n-1], []framework.Read{{Path: "/a"}}

	c := newCore("/a", all, text)
	c.take(framework.Event{Type: framework.Established, Zxid: 10})
	c.asks()
	c.take(answer(10, nodeRead("/a", "1", 1, n)))
	c.asks()
	c.take(answer(10, list))
	assert.LessOrEqual(t, len(c.dirty), mostLooked)
	assert.Equal(t, n, c.size(), "the limit of nodes counts all")
	c.take(framework.Event{Type: framework.NodeDataChanged, Path: newest})
	c.take(framework.Event{Type: framework.NodeDeleted, Path: "/a/" + names[n-2]})
	c.take(framework.Event{Type: framework.NodeCreated, Path: newest + "/x"})
	read := make(map[string]bool)
	var snapshots []*Snapshot[string]
	for reads := c.asks(); len(reads) > 0; reads = c.asks() {
		require.Empty(t, snapshots)
		var results []framework.ReadResult
		for _, r := range reads {
			require.False(t, read[r.Path], "%s is read twice", r.Path)
			read[r.Path] = true
			if r.Path == "/a/"+names[n-2] {
				results = append(results, noNode(r.Path))
			} else {
				results = append(results, nodeRead(r.Path, "2", 2, 0))
			}
		}
		snapshots = c.take(answer(12, results...))
	}
	require.Len(t, snapshots, 1)
	assert.Equal(t, n+1, snapshots[0].Len())
	assert.Empty(t, c.names)

	// All names are known.
	c.check()
	for reads := c.asks(); len(reads) > 0; reads = c.asks() {
		var results []framework.ReadResult
		for _, r := range reads {
			if !r.Children {
				results = append(results, nodeRead(r.Path, "2", 2, 0))
			}
		}
		c.take(answer(12, results...))
	}
	list.Names = append(slices.Clone(names[:n-2]), names[n-1])
	c.take(answer(13, list))
	assert.False(t, c.exact())
	assert.Equal(t, top, c.asks())
	snapshots = c.take(answer(14, nodeRead("/a", "1", 1, n-1)))
	require.Len(t, snapshots, 1)
	assert.Equal(t, int64(14), snapshots[0].Zxid())
}
