package differential

import "github.com/paddock-zk/paddock/internal/wire"

func addWatch(path string, mode int32) *wire.AddWatchRequest {
	return &wire.AddWatchRequest{Path: path, Mode: mode}
}

func watches(path string, typ int32) *wire.WatchesRequest {
	return &wire.WatchesRequest{Path: path, Type: typ}
}

// upheaval makes every kind of event at and around n.
func (r *run) upheaval(c *conn, n string) {
	c.do(wire.OpCreate, create(n, 0))
	c.do(wire.OpSetData, set(n, "x", -1))
	c.do(wire.OpSetACL, setACL(n, -1, open...))
	c.do(wire.OpCreate, create(n+"/c", 0))
	c.do(wire.OpSetData, set(n+"/c", "x", -1))
	c.do(wire.OpCreate, create(n+"/c/d", 0))
	c.do(wire.OpDelete, del(n+"/c/d", -1))
	c.do(wire.OpDelete, del(n+"/c", -1))
	c.do(wire.OpDelete, del(n, -1))
}

func init() {
	add("watch-once", func(r *run) {
		a, b := r.connect("a"), r.connect("b")
		n := r.at("/n")
		a.do(wire.OpGetData, watch(n))
		a.do(wire.OpGetChildren, watch(n))
		a.do(wire.OpGetChildren2, watch(n))
		a.do(wire.OpExists, watch(n))
		b.do(wire.OpExists, watch(n))
		b.do(wire.OpExists, watch(n))
		r.upheaval(a, n)

		a.do(wire.OpCreate, create(n, 0))
		for _, o := range []wire.Op{wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2} {
			r.note("a watch of each by " + o.String())
			a.do(o, watch(n))
			b.do(o, watch(n))
			b.do(wire.OpSetData, set(n, "x", -1))
			b.do(wire.OpSetData, set(n, "x", -1))
			b.do(wire.OpCreate, create(n+"/c", 0))
			b.do(wire.OpDelete, del(n+"/c", -1))
		}
		r.note("a node with all watches goes")
		a.do(wire.OpGetData, watch(n))
		a.do(wire.OpGetChildren, watch(n))
		b.do(wire.OpGetChildren, watch(n))
		b.do(wire.OpGetChildren, watch(r.root))
		b.do(wire.OpDelete, del(n, -1))
		r.note("a failed write fires nothing")
		a.do(wire.OpExists, watch(n))
		b.do(wire.OpCreate, create(n+"/x", 0))
		b.do(wire.OpMulti, multi(op(wire.OpCreate, create(n, 0)), op(wire.OpCheck, del(n, 5))))
		b.do(wire.OpMulti, multi(op(wire.OpCreate, create(n, 0)), op(wire.OpSetData, set(n, "x", 0)), op(wire.OpDelete, del(n, -1))))
	})
	add("watch-ephemeral", func(r *run) {
		a, b := r.connect("a"), r.connect("b")
		for _, p := range []string{"/e2", "/e1", "/e3"} {
			a.do(wire.OpCreate, create(r.at(p), wire.FlagEphemeral))
			b.do(wire.OpExists, watch(r.at(p)))
		}
		b.do(wire.OpDelete, del(r.at("/e3"), -1))
		b.do(wire.OpDelete, del(r.at("/e2"), -1))
		a.close()
		r.note("a has closed its session")
		b.do(wire.OpGetChildren2, get(r.root))
	})
	add("watch-persistent", func(r *run) {
		a, b := r.connect("a"), r.connect("b")
		n := r.at("/n")
		a.do(wire.OpAddWatch, addWatch(n, wire.AddWatchPersistent))
		b.do(wire.OpAddWatch, addWatch(n, wire.AddWatchPersistentRecursive))
		r.upheaval(a, n)
		r.note("and once more")
		r.upheaval(b, n)
		a.do(wire.OpAddWatch, addWatch(n, 2))
		a.do(wire.OpAddWatch, addWatch(n, -1))
		a.do(wire.OpAddWatch, addWatch("no path", 0))
		a.do(wire.OpAddWatch, addWatch(r.at("/none/deep"), wire.AddWatchPersistentRecursive))
		a.do(wire.OpCreate, create(r.at("/none"), 0))
		a.do(wire.OpCreate, create(r.at("/none/deep"), 0))
		r.note("recursive above recursive")
		b.do(wire.OpAddWatch, addWatch(r.root, wire.AddWatchPersistentRecursive))
		r.upheaval(a, n)
	})
	add("watch-mixed", func(r *run) {
		a := r.connect("a")
		n := r.at("/n")
		for _, first := range []int32{wire.AddWatchPersistent, wire.AddWatchPersistentRecursive} {
			for _, second := range []wire.Op{wire.OpExists, wire.OpGetData, wire.OpGetChildren} {
				r.note("a persistent watch, then one by " + second.String())
				a.do(wire.OpCreate, create(n, 0))
				a.do(wire.OpAddWatch, addWatch(n, first))
				a.do(second, watch(n))
				a.do(wire.OpSetData, set(n, "x", -1))
				a.do(wire.OpSetData, set(n, "x", -1))
				a.do(wire.OpCreate, create(n+"/c", 0))
				a.do(wire.OpDelete, del(n+"/c", -1))
				a.do(wire.OpDelete, del(n, -1))
				a.do(wire.OpRemoveWatches, watches(n, wire.WatchAny))
				a.do(wire.OpRemoveWatches, watches(n, wire.WatchAny))
			}
		}
		r.note("one way over the other")
		a.do(wire.OpAddWatch, addWatch(n, wire.AddWatchPersistent))
		a.do(wire.OpAddWatch, addWatch(n, wire.AddWatchPersistentRecursive))
		r.upheaval(a, n)
		a.do(wire.OpAddWatch, addWatch(n, wire.AddWatchPersistent))
		r.upheaval(a, n)
		r.note("a one-time watch, then a persistent one")
		a.do(wire.OpRemoveWatches, watches(n, wire.WatchAny))
		a.do(wire.OpExists, watch(n))
		a.do(wire.OpAddWatch, addWatch(n, wire.AddWatchPersistent))
		r.upheaval(a, n)
	})
	add("watch-check-remove", func(r *run) {
		a, b := r.connect("a"), r.connect("b")
		n := r.at("/n")
		a.do(wire.OpCreate, create(n, 0))
		sets := []struct {
			op  wire.Op
			req wire.Record
		}{
			{wire.OpGetData, watch(n)}, {wire.OpGetChildren, watch(n)}, {wire.OpExists, watch(n)},
			{wire.OpAddWatch, addWatch(n, wire.AddWatchPersistent)}, {wire.OpAddWatch, addWatch(n, wire.AddWatchPersistentRecursive)},
		}
		for _, s := range sets {
			for typ := int32(0); typ <= 6; typ++ {
				a.do(s.op, s.req)
				a.do(wire.OpCheckWatches, watches(n, typ))
				a.do(wire.OpRemoveWatches, watches(n, typ))
				a.do(wire.OpCheckWatches, watches(n, wire.WatchData))
				a.do(wire.OpCheckWatches, watches(n, wire.WatchChildren))
				a.do(wire.OpCheckWatches, watches(n, wire.WatchAny))
				a.do(wire.OpSetData, set(n, "x", -1))
				a.do(wire.OpCreate, create(n+"/c", 0))
				a.do(wire.OpDelete, del(n+"/c", -1))
				a.do(wire.OpRemoveWatches, watches(n, wire.WatchAny))
			}
		}
		b.do(wire.OpCheckWatches, watches(n, wire.WatchAny))
		b.do(wire.OpRemoveWatches, watches(r.at("/none"), wire.WatchAny))
	})
	add("watch-set", func(r *run) {
		a, b := r.connect("a"), r.connect("b")
		for _, p := range []string{"/same", "/changed", "/childless", "/gone", "/parent"} {
			a.do(wire.OpCreate, create(r.at(p), 0))
		}
		seen := a.zxid
		a.do(wire.OpSetData, set(r.at("/changed"), "x", -1))
		a.do(wire.OpCreate, create(r.at("/parent/c"), 0))
		a.do(wire.OpDelete, del(r.at("/gone"), -1))
		all := []string{r.at("/same"), r.at("/changed"), r.at("/gone"), r.at("/parent"), r.at("/never")}
		req := wire.SetWatchesRequest{RelativeZxid: seen, Data: all, Exist: all, Child: all}
		b.do(wire.OpSetWatches, &req)
		b.do(wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: seen})
		for _, p := range all {
			a.do(wire.OpCreate, create(p, 0))
			a.do(wire.OpSetData, set(p, "y", -1))
			a.do(wire.OpCreate, create(p+"/x", 0))
		}
		c := r.connect("c")
		c.do(wire.OpSetWatches2, &wire.SetWatches2Request{
			SetWatchesRequest:   wire.SetWatchesRequest{RelativeZxid: r.base + 1000, Data: all[:1], Exist: []string{r.at("/later")}, Child: all[1:2]},
			Persistent:          all[2:3],
			PersistentRecursive: all[3:4],
		})
		for _, p := range append(all, r.at("/later")) {
			a.do(wire.OpCreate, create(p, 0))
			a.do(wire.OpSetData, set(p, "y", -1))
			a.do(wire.OpCreate, create(p+"/y", 0))
			a.do(wire.OpSetData, set(p, "z", -1))
		}
	})
	// No node can have such a name: what is asked about comes back.
	add("watch-set-text", func(r *run) {
		a := r.connect("a")
		for _, p := range []string{"/é", "/\uffff", "/\U0001F600", "/a\U0001F600\U0010FFFFb"} {
			a.do(wire.OpSetWatches, &wire.SetWatchesRequest{Data: []string{p}, Child: []string{p}})
		}
		r.note("what is no UTF-8")
		for _, p := range []string{
			"/\xff", "/\xe9", "/\xe9a", "/\x80\x80", "/\xc3", "/\xc0\x80", "/\xe2\x82", "/\xe2\x82a", "/\xe0\x80\x80", "/\xed\xa0\xbd", "/\xed\xa0\xbd\xed\xb8\x80",
			"/\xf0\x9f\x98", "/\xf0\x9f\x98a", "/\xf0\x9fa", "/\xf0\x80\x80\x80", "/\xf4\x90\x80\x80", "/\xf5\x80\x80\x80", "/\xf8\x88\x80\x80\x80",
		} {
			a.do(wire.OpSync, path(p))
		}
	})
	add("watch-reconnect", func(r *run) {
		a, b := r.connect("a"), r.connect("b")
		n := r.at("/n")
		a.do(wire.OpExists, watch(n))
		a.drop()
		again := a.again("a2")
		b.do(wire.OpCreate, create(n, 0))
		again.do(wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: a.zxid, Exist: []string{n}})
	})
}
